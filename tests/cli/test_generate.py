import json
import signal
import subprocess
import sys

import pytest
import small_generators as generators
from commands import run_here
from terminal import on_a_terminal

from sixfold.decoding.options import SamplingOptions
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions

COMMAND = [sys.executable, "-m", "sixfold", "generate"]
DRAWN = SamplingOptions(temperature=1.0)
PROMPT = "Once upon a time"
# The warning is about `pty.fork`; the child does nothing but `exec`.
pytestmark = pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    generators.llama(folder)
    return generators.model_file(folder, folder / "small.safetensors")


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    generators.gpt2(folder, n_positions=400)
    return generators.model_file(folder, folder / "chat.safetensors", chat_template=generators.CHATML)


@pytest.fixture(scope="module")
def generator(model):
    with Generator(model, "cpu") as generator:
        yield generator


def text_of(generator, prompt, **options):
    return generator.generate([prompt], GenerateOptions(**options))[0][0].text


def test_it_prints_the_likeliest_continuation_of_a_text(capsys, model, generator):
    output = run_here(capsys, "generate", PROMPT, "--model", model, "--max-tokens", 12)
    assert output.out == text_of(generator, PROMPT, max_tokens=12) + "\n"
    assert output.err == ""


@pytest.mark.parametrize(
    ("words", "sampling"),
    [
        (["--seed", 3], SamplingOptions(seed=3)),
        (["--temperature", 0.7], SamplingOptions(temperature=0.7)),
        (["--top-k", 5, "--temperature", 2], SamplingOptions(top_k=5, temperature=2.0)),
        (["--top-p", 0.5, "--min-p", 0.2], SamplingOptions(top_p=0.5, min_p=0.2)),
        (["--top-k", 9, "--temperature", 0], SamplingOptions(top_k=9, temperature=0.0)),
        (["--repetition-penalty", 1.5], SamplingOptions(temperature=0.0, repetition_penalty=1.5)),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_every_option_of_sampling_arrives(capsys, model, generator, words, sampling):
    output = run_here(capsys, "generate", PROMPT, "--model", model, "--max-tokens", 12, *words)
    assert output.out == text_of(generator, PROMPT, max_tokens=12, sampling=sampling) + "\n"


def test_several_texts_are_apart(capsys, model, generator):
    output = run_here(capsys, "generate", PROMPT, "--model", model, "--max-tokens", 8, "--n", 3)
    texts = generator.generate([PROMPT], GenerateOptions(max_tokens=8, n=3, sampling=DRAWN))[0]
    assert output.out == "\n---\n".join(text.text for text in texts) + "\n"
    assert len({text.text for text in texts}) == 3


def test_json_has_every_token_with_its_probability_and_the_likeliest(capsys, model, generator):
    words = ["generate", PROMPT, "--model", model, "--max-tokens", 8, "--json"]
    (expected,) = generator.generate([PROMPT], GenerateOptions(max_tokens=8, likeliest=2))[0]
    content = json.loads(run_here(capsys, *words, "--logprobs", 2).out)
    assert content["prompt"] == PROMPT
    (text,) = content["texts"]
    assert (text["text"], text["finish"], text["stop"]) == (expected.text, "length", None)
    assert [token["id"] for token in text["tokens"]] == [token.id for token in expected.tokens]
    assert text["tokens"][0]["likeliest"][0].keys() == {"id", "text", "logprob"}
    assert [len(token["likeliest"]) for token in text["tokens"]] == [2] * 8
    assert "likeliest" not in json.loads(run_here(capsys, *words).out)["texts"][0]["tokens"][0]


def test_a_stream_is_printed_as_it_is_written(capsys, model, generator):
    words = ["generate", PROMPT, "--model", model, "--max-tokens", 12]
    assert run_here(capsys, *words, "--stream").out == text_of(generator, PROMPT, max_tokens=12) + "\n"
    lines = run_here(capsys, *words, "--stream", "--json", "--n", 2).out.splitlines()
    chunks = list(map(json.loads, lines))
    for sample, text in enumerate(generator.generate([PROMPT], GenerateOptions(12, n=2, sampling=DRAWN))[0]):
        own = [chunk for chunk in chunks if chunk["sample"] == sample]
        assert "".join(chunk["text"] for chunk in own) == text.text
        assert own[-1]["finish"] == "length"
        assert [token["id"] for chunk in own for token in chunk["tokens"]] == [token.id for token in text.tokens]


def test_a_stop_string_ends_the_text(capsys, model, generator):
    whole = text_of(generator, PROMPT, max_tokens=12)
    stop = whole[5:8]
    words = ["generate", PROMPT, "--model", model, "--max-tokens", 12, "--stop", "never there", "--stop", stop]
    assert run_here(capsys, *words).out == whole.partition(stop)[0] + "\n"
    assert run_here(capsys, *words, "--stream").out == whole.partition(stop)[0] + "\n"


def test_a_prompt_comes_from_a_pipe(model, generator):
    command = [*COMMAND, "--model", model, "--max-tokens", "5"]
    for words in (["-"], []):
        process = subprocess.run([*command, *words], input=f"{PROMPT}\n".encode(), capture_output=True, timeout=60)
        assert process.stdout.decode() == text_of(generator, PROMPT, max_tokens=5) + "\n"
    process = subprocess.run(command, input=b"\xff", capture_output=True, timeout=60)
    assert process.stderr.startswith(b"error: standard input: expected UTF-8; got byte 0xff at column 1")


def test_a_conversation_has_the_format_of_the_model(capsys, chat_model):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    with Generator(chat_model, "cpu") as generator:
        expected = text_of(generator, messages, max_tokens=6)
    words = ["generate", "Hi", "--model", chat_model, "--chat", "--system", "Be brief.", "--max-tokens", 6]
    assert run_here(capsys, *words).out == expected + "\n"
    content = json.loads(run_here(capsys, *words, "--json").out)
    assert content["prompt"] == messages


def test_each_line_that_is_typed_is_a_prompt(model, generator):
    command = [*COMMAND, "--model", model, "--max-tokens", 5]
    screen, status = on_a_terminal(command, [b"The\n", b"How are\n", b"\x04"])
    assert status == 0
    assert "sixfold small: type a line and press Enter; Ctrl-C ends a text, Ctrl-D ends" in screen
    for prompt in ("The", "How are"):
        first_line = text_of(generator, prompt, max_tokens=5).split("\n")[0]
        assert f"> |{prompt}\n{first_line}" in screen.replace("\r\n", "\n")


def test_lines_that_are_typed_in_a_conversation_are_turns_of_it(chat_model):
    options = {"max_tokens": 4, "stop": ("\n", "\r", "\t")}
    typed = ["Hi", "Why?", "When?", "", "When?"]
    answers, turns = [], []
    with Generator(chat_model, "cpu") as generator:
        for line in typed:
            turns = [*turns, {"role": "user", "content": line}] if line else []
            if line:
                answers.append(text_of(generator, turns, **options))
                turns.append({"role": "assistant", "content": answers[-1]})
    assert len(set(answers)) == 4
    command = [*COMMAND, "--model", chat_model, "--chat", "--max-tokens", 4]
    command += [word for stop in options["stop"] for word in ("--stop", stop)]
    screen, status = on_a_terminal(command, [*(f"{line}\n".encode() for line in typed), b"\x04"])
    lines = screen.replace("\r\n", "\n").split("\n")
    shown = [
        lines[index + 1] for index, line in enumerate(lines) if line.startswith("> |") and line.endswith(("Hi", "?"))
    ]
    assert (shown, status) == (answers, 0)


def test_an_interrupt_ends_a_command_at_once(model):
    words = ["--model", model, "--max-tokens", "80", "--n", "500", "--stream", "--json"]
    process = subprocess.Popen([*COMMAND, PROMPT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=20)
    assert printed.count(b'"finish": "') < 500
    assert process.returncode == 130
    assert errors == b""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stream", "--n", 2], "--stream: expected one text, or --json"),
        (["--system", "x"], "--system: expected only together with --chat"),
        (["--logprobs", 2], "--logprobs: expected only together with --json"),
        (["--chat"], "chat: expected a model with a chat template"),
        (["--compute", "int3"], "--compute: expected one of int8"),
        (["--top-p", 2], r"sampling.top_p: expected above 0, at most 1; got 2.0"),
        (["--max-tokens", 0], "generate.max_tokens: expected 1 to"),
        (["--temperature", -1], "sampling.temperature: expected 0 or more"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(capsys, model, words, message):
    error = run_here(capsys, "generate", PROMPT, "--model", model, *words, status=2).err
    assert error.startswith(f"error: {message}")


def test_a_model_must_be_named_and_write_texts(capsys):
    for words, message in (
        ([], "error: --model: expected a decoder-only model"),
        (["--model", "zh-en"], "error: write: expected a decoder-only model; got model.kind = 'encoder-decoder'"),
    ):
        assert run_here(capsys, "generate", PROMPT, *words, status=2).err.startswith(message)


def test_a_closed_standard_output_is_no_crash(model):
    command = " ".join([*COMMAND, "Once", "--model", str(model), "--max-tokens", "3"])
    result = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True)
    assert "Traceback" not in result.stderr
    assert result.returncode in (0, 2)


def test_a_gguf_file_is_not_called_damaged(capsys, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    output = run_here(capsys, "generate", "a", "--model", path, status=2)
    assert "got a GGUF file" in output.err
    assert "sixfold import" in output.err
