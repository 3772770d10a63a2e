"""Runs a command on a terminal, where somebody types."""

import os
import pty
import select
import signal
import time
from contextlib import suppress


def on_a_terminal(command, typed):
    """Return what a terminal shows when lines are typed at its prompt; b"\\x03" is Ctrl-C, b"\\x04" is Ctrl-D."""
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(command[0], list(map(str, command)))
    screen = b""
    for keys in typed:
        while not screen.endswith(b"> "):
            assert select.select([terminal], [], [], 30)[0], screen
            screen += os.read(terminal, 1024)
        screen += b"|"
        time.sleep(0.2)  # Ctrl-C between the prompt and the waiting for keys would be noticed with the next key
        os.write(terminal, keys)
    with suppress(OSError):  # on Linux, the other side was closed
        while more := os.read(terminal, 1024) if select.select([terminal], [], [], 30)[0] else b"":
            screen += more
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return screen.decode(), os.waitstatus_to_exitcode(status)
