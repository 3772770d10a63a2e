"""Runs coroutines in tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run_async(coroutine):
    """Run a coroutine in a thread of its own and return its result.

    In the main thread of a process that has opened a browser the event loop of Playwright is running, and asyncio
    allows no second one there.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
