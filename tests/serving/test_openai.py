"""OpenAI's own client against a real server, compared with `Generator` in Python."""

import json
import re
import signal
import threading
import time
from pathlib import Path

import openai
import pytest
import small_generators as generators
from small_servers import Server, in_process, until

from sixfold.decoding.options import SamplingOptions
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.serving.api_keys import make_key
from sixfold.serving.writing import MAX_WRITING

GREEDY = GenerateOptions(max_tokens=12)
QUESTION = [{"role": "user", "content": "How are you?"}]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generators")
    generators.gpt2(folder / "gpt2")
    generators.llama(folder / "llama", max_position_embeddings=40_000)
    return {
        "gpt": generators.model_file(folder / "gpt2", folder / "gpt.safetensors", chat_template=generators.CHATML),
        "llama": generators.model_file(
            folder / "llama", folder / "llama.safetensors", ends=()
        ),  # it writes to its limit
    }


@pytest.fixture(scope="module")
def running(files):
    with Server(*files.values(), max_characters=5000) as server:
        yield server


@pytest.fixture(scope="module")
def client(running):
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def gpt(files):
    with Generator(files["gpt"], "cpu", 1) as generator:
        yield generator


def complete(client, prompt="Once upon", **fields):
    return client.completions.create(model="gpt", prompt=prompt, **{"max_tokens": 12, "temperature": 0} | fields)


def gauge(server, name):
    lines = server.ask("/metrics")[2].decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"sixfold_{name} ")).split()[1])


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["gpt", "llama"]
    assert client.models.retrieve("llama").owned_by == "sixfold"
    with pytest.raises(openai.NotFoundError, match=r"expected one of gpt, llama; got 'gpt-4'"):
        client.models.retrieve("gpt-4")


def test_a_completion_is_what_the_generator_writes_and_its_tokens_are_counted(client, gpt):
    response = complete(client)
    ((expected,),) = gpt.generate(["Once upon"], GREEDY)
    assert response.choices[0].text == expected.text
    assert response.choices[0].finish_reason == "length"
    assert response.usage.completion_tokens == len(expected.tokens) == 12
    assert response.usage.prompt_tokens == len(gpt.encode("Once upon"))
    assert (response.object, response.model) == ("text_completion", "gpt")


def test_prompts_may_be_several_texts_or_token_ids_and_each_may_have_several_texts(client, gpt):
    prompts = ["Once upon", "The quick brown"]
    expected = [texts[0].text for texts in gpt.generate(prompts, GREEDY)]
    assert [choice.text for choice in complete(client, prompts).choices] == expected
    ids = [gpt.encode(prompt) for prompt in prompts]
    assert [choice.text for choice in complete(client, ids).choices] == expected
    assert complete(client, ids[0]).choices[0].text == expected[0]
    drawn = complete(client, prompts, n=2, temperature=1, seed=3).choices
    options = GenerateOptions(12, n=2, sampling=SamplingOptions(seed=3))
    assert [choice.text for choice in drawn] == [
        text.text for texts in gpt.generate(prompts, options) for text in texts
    ]
    assert [choice.index for choice in drawn] == [0, 1, 2, 3]


def test_every_option_of_drawing_has_its_effect(client, gpt):
    fields = {"temperature": 0.8, "top_p": 0.7, "seed": 11, "extra_body": {
        "top_k": 20, "min_p": 0.02, "repetition_penalty": 1.3,
    }}  # fmt: skip
    options = GenerateOptions(12, sampling=SamplingOptions(1.3, 0.8, 20, 0.7, 0.02, 11))
    assert complete(client, **fields).choices[0].text == gpt.generate(["Once upon"], options)[0][0].text
    texts = {complete(client, temperature=1).choices[0].text for _ in range(4)}  # without a seed, each is another
    assert len(texts) == 4


def test_a_stream_adds_up_to_the_completion_and_ends_with_the_usage(client):
    parts = list(complete(client, stream=True, n=2, temperature=1, seed=3, stream_options={"include_usage": True}))
    texts = dict.fromkeys(range(2), "")
    for part in parts[:-1]:
        (choice,) = part.choices
        texts[choice.index] += choice.text
        assert part.usage is None
    whole = complete(client, n=2, temperature=1, seed=3)
    assert list(texts.values()) == [choice.text for choice in whole.choices]
    assert len(parts) > 6
    assert parts[-1].choices == []
    assert parts[-1].usage == whole.usage
    assert [part.choices[0].finish_reason for part in parts[:-1]].count("length") == 2


def test_a_stop_string_ends_a_text_even_where_it_spans_tokens(client, gpt):
    ((whole,),) = gpt.generate(["Once upon"], GREEDY)
    stop = whole.text[2:7]
    for stream in (False, True):
        response = complete(client, stop=[stop, "never there"], stream=stream)
        choices = [part.choices[0] for part in response] if stream else response.choices
        assert "".join(choice.text for choice in choices) == whole.text[: whole.text.index(stop)]
        assert choices[-1].finish_reason == "stop"


def test_a_prompt_is_repeated_with_echo(client, gpt):
    ((expected,),) = gpt.generate(["Once upon"], GREEDY)
    assert complete(client, echo=True).choices[0].text == "Once upon" + expected.text
    parts = [part.choices[0].text for part in complete(client, gpt.encode("Once upon"), echo=True, stream=True)]
    assert "".join(parts) == "Once upon" + expected.text


def test_logprobs_are_those_of_the_model(client, gpt):
    ((expected,),) = gpt.generate(["Once upon"], GenerateOptions(12, likeliest=3))
    logprobs = complete(client, logprobs=3).choices[0].logprobs
    assert logprobs.tokens == [token.text for token in expected.tokens]
    assert logprobs.token_logprobs == pytest.approx([token.logprob for token in expected.tokens], abs=1e-4)
    for offset, token, place in zip(logprobs.text_offset, expected.tokens, logprobs.top_logprobs, strict=True):
        assert expected.text[offset:].startswith(token.text)
        assert set(place) == {likely.text for likely in token.likeliest}
    assert complete(client).choices[0].logprobs is None


def test_a_chat_is_answered_with_the_template_of_the_model(client, gpt):
    ((expected,),) = gpt.generate([QUESTION], GenerateOptions(12, likeliest=2))
    response = client.chat.completions.create(
        model="gpt", messages=QUESTION, max_tokens=12, temperature=0, logprobs=True, top_logprobs=2
    )
    (choice,) = response.choices
    assert (choice.message.role, choice.message.content) == ("assistant", expected.text)
    assert [token.token for token in choice.logprobs.content] == [token.text for token in expected.tokens]
    assert [len(token.top_logprobs) for token in choice.logprobs.content] == [2] * 12
    parts = list(client.chat.completions.create(
        model="gpt", messages=[{"role": "user", "content": [{"type": "text", "text": "How are you?"}]}],
        max_completion_tokens=12, temperature=0, stream=True,
    ))  # fmt: skip
    assert "".join(part.choices[0].delta.content for part in parts) == expected.text
    assert [part.choices[0].delta.role for part in parts] == ["assistant"] + [None] * (len(parts) - 1)
    assert parts[-1].choices[0].finish_reason == "length"


def test_mistakes_of_the_user_are_errors_that_say_what_to_do(client):
    for fields, message in (
        ({"n": 65}, "n: Input should be less than or equal to 64"),
        ({"temperature": -1}, "temperature: Input should be greater than or equal to 0"),
        ({"presence_penalty": 0.5}, "presence_penalty: this server cannot do what it asks for; leave it out"),
        ({"prompt": "word " * 100}, "expected fewer than 96 tokens"),
        ({"prompt": "x" * 6000}, "exceeds text limit"),
        ({"prompt": []}, "expected at least one text or token"),
        ({"prompt": [5, 10**6]}, "prompt: expected ids from 0 to"),
        ({"extra_body": {"temprature": 1}}, "temprature: Extra inputs are not permitted"),
        ({"echo": True, "logprobs": 1}, "expected none together with echo"),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            complete(client, **{"prompt": "a", **fields})
        assert message in caught.value.body["message"], fields
        assert caught.value.body["type"] == "invalid_request_error"
    with pytest.raises(openai.BadRequestError, match="this one has none"):
        client.chat.completions.create(model="llama", messages=QUESTION)
    assert complete(client, user="somebody", presence_penalty=0).choices


def test_a_client_that_gives_up_or_goes_away_stops_the_writing(client, running):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).completions.create(model="llama", prompt="a", max_tokens=3900, temperature=1)
    assert until(lambda: gauge(running, "writing_requests") == 0)
    stream = client.completions.create(model="llama", prompt="a", max_tokens=3900, temperature=1, stream=True)
    assert next(stream).choices
    assert gauge(running, "writing_requests") == 1
    stream.close()
    assert until(lambda: gauge(running, "writing_requests") == 0)


def test_while_all_places_are_taken_others_wait_and_mistakes_are_still_answered(client, running):
    streams = [
        client.completions.create(model="llama", prompt="a", max_tokens=3900, temperature=1, stream=True)
        for _ in range(MAX_WRITING + 2)
    ]
    try:
        assert until(lambda: gauge(running, "writing_requests_waiting") == 2)
        assert gauge(running, "writing_requests") == MAX_WRITING
        with pytest.raises(openai.BadRequestError, match="expected fewer than 96 tokens"):
            complete(client, "word " * 100)
    finally:
        for stream in streams:
            stream.close()
    assert until(lambda: gauge(running, "writing_requests") == 0)
    assert complete(client).choices[0].text


def test_many_clients_at_once_get_what_each_gets_alone(client, gpt):
    texts = {}

    def ask(seed):
        texts[seed] = complete(client, temperature=1, seed=seed).choices[0].text

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for seed in range(24):
        options = GenerateOptions(12, sampling=SamplingOptions(seed=seed))
        assert texts[seed] == gpt.generate(["Once upon"], options)[0][0].text


def test_a_server_without_a_model_that_translates_says_so(running):
    assert running.ask("/languages")[2] == []
    status, _, response = running.ask("/translate", {"q": "hello", "source": "en", "target": "zh"})
    assert status == 400
    assert "error" in response
    status, _, response = running.ask("/api/v1/translate", {"texts": ["hello"]})
    assert (status, response["error"]) == (400, "no model that translates is open")
    assert [model["name"] for model in running.ask("/api/v1/models")[2]["models"]] == ["gpt", "llama"]
    assert running.ask("/frontend/settings")[0] == 200


def test_keys_are_checked_as_the_client_expects(files, tmp_path):
    keys = tmp_path / "keys.toml"
    key = make_key(keys, "ann")
    with in_process(files["gpt"], api_key_file=str(keys)) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            response = client.get("/v1/models", headers=headers)
            assert response.status_code == 401
            assert response.json()["error"]["type"] == "authentication_error"
        assert client.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_what_is_written_by_the_deadline_is_returned(files):
    body = {"model": "llama", "prompt": "a", "max_tokens": 3900, "seed": 1}
    with in_process(files["llama"], deadline=1.0) as client:
        client.post("/v1/completions", json={**body, "max_tokens": 1})  # the engine is open now
        response = client.post("/v1/completions", json=body).json()
        assert response["choices"][0]["finish_reason"] == "length"
        assert 0 < response["usage"]["completion_tokens"] < 3900
        response = client.post("/api/v1/generate", json=body).json()
        assert response["complete"] is False
        assert response["texts"][0]["text"]


def test_written_tokens_count_towards_the_limit_of_requests(files):
    with in_process(files["gpt"], requests_per_minute=10) as client:
        body = {"model": "gpt", "prompt": "a", "max_tokens": 64, "temperature": 0, "n": 4}
        assert client.post("/v1/completions", json=body).status_code == 200  # 4 texts and 8 times 32 tokens
        response = client.post("/v1/completions", json=body)
        assert response.status_code == 429
        assert response.json()["error"]["type"] == "rate_limit_error"
        assert int(response.headers["Retry-After"]) > 0


@pytest.mark.parametrize("temperature", [0, 1], ids=["greedy", "drawn"])
def test_a_server_that_ends_gives_streams_the_time_of_the_deadline_and_ends_them_in_order(files, temperature):
    with Server(files["llama"], deadline=2.0) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=120)
        settings = {"prompt": "a", "max_tokens": 39_000, "temperature": temperature, "stream": True}
        stream = client.completions.create(model="llama", **settings)
        assert next(stream).choices
        start = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        *parts, last = stream
        assert last.choices[0].finish_reason == "length"
        assert len(parts) < 30_000
        assert server.stop(signal.SIGTERM) == 0
        assert time.monotonic() - start < 60
        assert not [line for line in server.log if "raw" in line]


def test_malformed_json_is_called_that(running):
    status, _, response = running.ask("/v1/completions", b'{"model": ', {"Content-Type": "application/json"})
    assert status == 400
    assert response["error"]["message"].startswith("the body is not valid JSON")


def events_of(response):
    blocks = [block.split("\n", 1) for block in response.split("\n\n") if block.startswith("event")]
    return [(kind.removeprefix("event: "), json.loads(values.removeprefix("data: "))) for kind, values in blocks]


def test_the_own_interface_returns_and_streams_all_of_each_token(files, gpt):
    body = {"prompt": "Once upon", "max_tokens": 12, "temperature": 0, "likeliest": 3}
    ((expected,),) = gpt.generate(["Once upon"], GenerateOptions(12, likeliest=3))
    with in_process(files["gpt"]) as client:
        whole = client.post("/api/v1/generate", json=body).json()
        assert whole["prompt_ids"] == gpt.encode("Once upon")
        assert whole["texts"][0]["text"] == expected.text
        first, *texts, last = events_of(client.post("/api/v1/generate/stream", json=body).text)
        chat = client.post("/api/v1/generate", json={**body, "prompt": QUESTION}).json()
    assert chat["prompt_ids"] == gpt.encode(QUESTION)
    assert first == ("prompt", {"model": "gpt", "ids": whole["prompt_ids"], "pieces": first[1]["pieces"]})
    assert "".join(first[1]["pieces"]) == "Once upon"
    assert last == ("done", {})
    assert "".join(values["text"] for _, values in texts) == expected.text
    tokens = [token for _, values in texts for token in values["tokens"]]
    assert [token["id"] for token in tokens] == [token.id for token in expected.tokens]
    assert [len(token["likeliest"]) for token in tokens] == [3] * 12
    # Another token is picked: the prompt is the ids up to it.
    picked = tokens[4]["likeliest"][1]["id"]
    with in_process(files["gpt"]) as client:
        ids = [*whole["prompt_ids"], *(token["id"] for token in tokens[:4]), picked]
        again = client.post("/api/v1/generate", json={**body, "prompt": ids, "max_tokens": 7}).json()
    expected = gpt.generate([ids], GenerateOptions(7))[0][0]
    assert again["texts"][0]["text"] == expected.text


def test_the_guide_shows_what_works(running, gpt, capsys):
    guide = (Path(__file__).parents[2] / "docs/guides/serving.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(from openai.*?)```", guide, re.DOTALL)
    code = code.replace("http://127.0.0.1:5000", running.url).replace('"stories"', '"gpt"')
    exec(compile(code.replace("max_tokens=40", "max_tokens=5, temperature=0"), "serving.md", "exec"), {})
    assert capsys.readouterr().out == gpt.generate(["Tom was a"], GenerateOptions(5))[0][0].text
