"""A generator against `transformers`: the same weights, tokenisers and prompts."""

import math
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import small_generators as generators
import torch
import transformers
from small_models import SMALL, in_memory, random_model

from sixfold import modelfile
from sixfold.config import Config, TokenizerConfig
from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.errors import ConfigError, RequestError
from sixfold.explorer.forward import forward, log_softmax
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.interop.huggingface import load_folder
from sixfold.text.learn import train_tokenizer

PROMPTS = ["Once upon a time", "The", "机器学习很", "How are you? I am", "x" * 30]
TOKENS = 24
DRAWN = GenerateOptions(max_tokens=TOKENS, sampling=SamplingOptions(temperature=1.3))


class Peer:
    """The same checkpoint in transformers."""

    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def generate(self, prompt, **settings):
        """Return the ids that follow a prompt; without sampling, the likeliest ones."""
        ids = torch.tensor([self.tokenizer(prompt).input_ids])
        result = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False,
            pad_token_id=0, **settings,
        )  # fmt: skip
        return result[0, ids.size(1) :].tolist()

    @torch.inference_mode()
    def logprobs(self, ids):
        return self.model(torch.tensor([ids])).logits[0].log_softmax(-1)


@pytest.fixture(scope="module", params=generators.MAKERS)
def peer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return Peer(folder, generators.MAKERS[request.param](folder)[0])


@pytest.fixture(scope="module")
def generator(peer):
    with Generator(load_folder(peer.folder), "cpu") as generator:
        yield generator


def ids_of(continuations):
    return [[[token.id for token in each.tokens] for each in samples] for samples in continuations]


def test_greedy_texts_are_those_of_transformers_token_by_token(peer, generator):
    continuations = generator.generate(PROMPTS, GenerateOptions(max_tokens=TOKENS))
    for prompt, (continuation,) in zip(PROMPTS, continuations, strict=True):
        ids = peer.generate(prompt, eos_token_id=list(generator.ends))
        assert [token.id for token in continuation.tokens] == [token for token in ids if token not in generator.ends]
        assert continuation.finish == ("stop" if ids[-1] in generator.ends else "length")
        prompt_ids = generator.encode(prompt)
        whole = generator.tokenizer.decode([*prompt_ids, *ids])
        assert whole == generator.tokenizer.decode(prompt_ids) + continuation.text
        assert "".join(token.text for token in continuation.tokens) == continuation.text


def test_greedy_texts_with_a_penalty_are_those_of_transformers(peer, generator):
    sampling = replace(GREEDY, repetition_penalty=1.4)
    continuations = generator.generate(PROMPTS, GenerateOptions(max_tokens=TOKENS, sampling=sampling))
    plain = generator.generate(PROMPTS, GenerateOptions(max_tokens=TOKENS))
    for prompt, (continuation,) in zip(PROMPTS, continuations, strict=True):
        ids = peer.generate(prompt, repetition_penalty=1.4, eos_token_id=list(generator.ends))
        assert [token.id for token in continuation.tokens] == [token for token in ids if token not in generator.ends]
    assert ids_of(continuations) != ids_of(plain)


def test_any_of_several_tokens_ends_a_text(peer):
    file = load_folder(peer.folder)
    whole = peer.generate(PROMPTS[0])
    ends = (whole[5], whole[9])
    with Generator(replace(file, prompt_format=replace(file.prompt_format, ends=ends)), "cpu") as generator:
        for sampling in (GREEDY, SamplingOptions(temperature=1e-5)):
            options = GenerateOptions(max_tokens=TOKENS, sampling=sampling)
            for prompt, (continuation,) in zip(PROMPTS, generator.generate(PROMPTS, options), strict=True):
                ids = peer.generate(prompt, eos_token_id=list(ends))
                assert [token.id for token in continuation.tokens] == [token for token in ids if token not in ends]


@pytest.mark.parametrize("sampling", [GREEDY, SamplingOptions(temperature=0.5, top_k=5)], ids=["greedy", "sampled"])
def test_log_probabilities_are_those_of_the_model_whatever_is_drawn(peer, generator, sampling):
    options = GenerateOptions(max_tokens=6, likeliest=3, sampling=sampling)
    for prompt, (continuation,) in zip(PROMPTS[:2], generator.generate(PROMPTS[:2], options), strict=True):
        before = generator.encode(prompt)
        rows = peer.logprobs([*before, *(token.id for token in continuation.tokens)])[len(before) - 1 :]
        for row, token in zip(rows, continuation.tokens, strict=False):
            assert token.logprob == pytest.approx(row[token.id].item(), abs=1e-4)
            best = row.topk(3)
            assert [each.id for each in token.likeliest] == best.indices.tolist()
            assert [each.logprob for each in token.likeliest] == pytest.approx(best.values.tolist(), abs=1e-4)
        assert continuation.logprob == pytest.approx(sum(token.logprob for token in continuation.tokens))


def test_the_text_of_a_likely_token_is_what_it_would_add(generator):
    (continuation,) = generator.generate(PROMPTS[:1], GenerateOptions(max_tokens=8, likeliest=4))[0]
    for token in continuation.tokens:
        same = next(each for each in token.likeliest if each.id == token.id)
        assert token.text in ("", same.text) or same.text in token.text  # a token may complete a character


def test_texts_are_scored_like_transformers_does_it(peer, generator):
    for text, tokens in zip(generators.TEXTS, generator.score(generators.TEXTS), strict=True):
        ids = generator.encode(text)
        rows = peer.logprobs(ids)
        assert [token.id for token in tokens] == ids[1:]
        expected = [rows[index, token].item() for index, token in enumerate(ids[1:])]
        assert [token.logprob for token in tokens] == pytest.approx(expected, abs=1e-3)
        assert text.endswith("".join(token.text for token in tokens))


def test_the_torch_engine_scores_alike(generator):
    expected = [[token.logprob for token in tokens] for tokens in generator.score(generators.TEXTS)]
    torch_engine = generator._open_torch()
    ids = [generator.encode(text) for text in generators.TEXTS]
    scores = torch_engine.score([each[:1] for each in ids], [each[1:] for each in ids])
    for logprobs, reference in zip(scores, expected, strict=True):
        assert logprobs[:-1] == pytest.approx(reference, abs=1e-3)


def test_a_seed_decides_the_texts_and_samples_differ(generator):
    drawn = generator.generate(PROMPTS, replace(DRAWN, n=3))
    again = generator.generate(PROMPTS, replace(DRAWN, n=3))  # now most of the prompts is in the engine's slots
    assert ids_of(again) == ids_of(drawn)
    assert [each.logprob for texts in again for each in texts] == pytest.approx(
        [each.logprob for texts in drawn for each in texts], rel=1e-4
    )
    assert len({continuation.text for continuation in drawn[0]}) == 3
    other = replace(DRAWN, sampling=replace(DRAWN.sampling, seed=2))
    assert ids_of(generator.generate(PROMPTS, other)) != ids_of(drawn)


def test_each_prompt_of_a_batch_gets_what_it_gets_alone(generator):
    for options in (GenerateOptions(max_tokens=TOKENS), replace(DRAWN, n=2)):
        alone = [generator.generate([prompt], options)[0] for prompt in PROMPTS]
        assert ids_of(generator.generate(PROMPTS, options)) == ids_of(alone)


def test_a_stream_adds_up_to_the_text(generator):
    for options in (GenerateOptions(max_tokens=TOKENS), replace(DRAWN, n=3)):
        (expected,) = generator.generate(PROMPTS[:1], options)
        chunks = list(generator.stream(PROMPTS[0], options))
        for sample, continuation in enumerate(expected):
            own = [chunk for chunk in chunks if chunk.sample == sample]
            assert "".join(chunk.text for chunk in own) == continuation.text
            assert [token.id for chunk in own for token in chunk.tokens] == [token.id for token in continuation.tokens]
            assert [chunk.finish for chunk in own][-1] == continuation.finish
            assert [chunk.finish for chunk in own][:-1] == [None] * (len(own) - 1)
        assert len(chunks) > 3


def test_the_last_chunk_of_a_stream_says_why_the_text_ended(peer):
    file, whole = load_folder(peer.folder), peer.generate(PROMPTS[0])
    with Generator(replace(file, prompt_format=replace(file.prompt_format, ends=(whole[4],))), "cpu") as generator:
        *_, last = generator.stream(PROMPTS[0], GenerateOptions(max_tokens=TOKENS))
        assert last.finish == "stop"
        assert whole[4] not in [token.id for token in last.tokens]


def test_a_stop_string_ends_a_text_across_the_borders_of_tokens(generator):
    for sampling in (GREEDY, DRAWN.sampling):
        options = GenerateOptions(max_tokens=TOKENS, sampling=sampling)
        (whole,) = generator.generate(PROMPTS[:1], options)[0]
        borders = len(whole.tokens[0].text + whole.tokens[1].text + whole.tokens[2].text)
        for begin, end in ((borders - 1, borders + 1), (2, 3), (0, 2)):
            stop = whole.text[begin:end]
            (cut,) = generator.generate(PROMPTS[:1], replace(options, stop=("never there", stop)))[0]
            assert cut.text == whole.text.partition(stop)[0]
            assert (cut.finish, cut.stop) == ("stop", stop)


def test_a_stream_that_is_closed_ends_the_writing(generator):
    before = threading.active_count()
    stream = generator.stream("Once", replace(DRAWN, max_tokens=80))
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_several_threads_get_what_they_get_alone(generator):
    results = {}
    work = {index: (PROMPTS[index : index + 1], replace(DRAWN, n=1 + index)) for index in range(3)}

    def run(index):
        results[index] = generator.generate(*work[index])

    threads = [threading.Thread(target=run, args=(index,)) for index in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, (prompts, options) in work.items():
        assert ids_of(results[index]) == ids_of(generator.generate(prompts, options))


def test_a_model_of_this_project_reads_bos_before_a_prompt_and_ends_with_eos():
    tokenizer = train_tokenizer(generators.TEXTS * 3, TokenizerConfig(vocab=400))
    shape = tokenizer.fit(replace(SMALL, kind="decoder", positions="rotary", norm_position="pre", tie_output=False))
    model = random_model(shape)
    with torch.no_grad():
        model.output.projection.weight[list(tokenizer.byte_ids)] = 0.0  # they may be no characters
    file = replace(in_memory(shape, model), tokenizer=tokenizer, config=Config(model=shape))
    with Generator(file, "cpu") as generator:
        assert generator.encode("Once") == [shape.bos, *tokenizer.encode("Once")]
        assert generator.encode("") == [shape.bos]
        assert generator.ends == (shape.eos,)
        (continuation,) = generator.generate([""], GenerateOptions(max_tokens=10))[0]
        assert continuation.text == tokenizer.decode([token.id for token in continuation.tokens])


def test_an_empty_prompt_of_gpt2_is_its_only_special_token(tmp_path):
    generators.gpt2(tmp_path)
    with Generator(load_folder(tmp_path), "cpu") as generator:
        assert generator.encode("") == [generator.config.bos]
        assert generator.encode("a") == generator.tokenizer.encode("a")
        assert generator.generate([""], GenerateOptions(max_tokens=5))[0][0].tokens


def test_what_cannot_be_generated_is_refused(generator):
    file = generator.file
    for make, error, message in (
        (lambda: Generator(replace(file, tokenizer=None)), RequestError, "expected a model with a tokeniser"),
        (lambda: Generator(in_memory(SMALL, random_model(SMALL))), RequestError, "expected a decoder-only model"),
        (lambda: generator.generate("Once"), RequestError, "expected a list of prompts; got a text"),
        (lambda: generator.generate(["x " * 200]), RequestError, r"prompt: expected fewer than 96 tokens|source: "),
        (lambda: generator.generate([[{"role": "user", "content": "hi"}]]), RequestError, "with a chat template"),
        (lambda: GenerateOptions(max_tokens=0), ConfigError, r"generate\.max_tokens: expected 1 to 10000000; got 0"),
        (lambda: GenerateOptions(stop=("",)), ConfigError, r"generate\.stop"),
        (lambda: GenerateOptions(n=1001), ConfigError, r"generate\.n: expected 1 to 1000; got 1001"),
    ):
        with pytest.raises(error, match=message):
            make()


def test_numbers_are_those_that_the_model_is_stored_in(peer, tmp_path):
    file = load_folder(peer.folder)
    assert Generator(file, "cpu").compute == "float32"
    modelfile.save(
        tmp_path / "int8.safetensors", file.config, file.weights(), file.tokenizer, storage="int8",
        prompt_format=file.prompt_format,
    )  # fmt: skip
    with Generator(tmp_path / "int8.safetensors", "cpu") as generator:
        assert generator.compute == "int8"
        stored = modelfile.load(tmp_path / "int8.safetensors")
        options = GenerateOptions(max_tokens=8, likeliest=1)
        (drawn,), (likeliest,) = (
            generator.generate(PROMPTS[:1], replace(options, sampling=sampling))[0]
            for sampling in (DRAWN.sampling, GREEDY)
        )
    # What is drawn has the probabilities of the stored weights. CTranslate2 rounds activations to int8 as well.
    ids = [*generator.encode(PROMPTS[0]), *(token.id for token in drawn.tokens)]
    rows = log_softmax(forward(stored, target=np.array([ids]))["logits"][0])[-len(drawn.tokens) - 1 : -1]
    expected = [row[token.id] for row, token in zip(rows, drawn.tokens, strict=True)]
    assert [token.logprob for token in drawn.tokens] == pytest.approx(expected, abs=1e-3)
    assert likeliest.tokens[0].logprob == pytest.approx(rows[0].max(), abs=0.5)


def test_what_may_come_next_has_the_models_probabilities_and_those_of_drawing(generator):
    ids = generator.encode(PROMPTS[0])
    (place,) = generator.generate([ids], GenerateOptions(1, likeliest=generator.config.vocab))[0][0].tokens
    model = {likely.id: likely.logprob for likely in place.likeliest}
    plain = generator.next_tokens(PROMPTS[0], SamplingOptions(), generator.config.vocab)
    assert {token.id: token.logprob for token in plain.tokens} == pytest.approx(model, abs=1e-3)
    assert [token.drawn for token in plain.tokens] == pytest.approx(
        [math.exp(token.logprob) for token in plain.tokens], rel=1e-3
    )
    assert plain.kept == generator.config.vocab
    assert plain.entropy == pytest.approx(
        -sum(math.exp(each) * each / math.log(2) for each in model.values()), rel=1e-3
    )
    cut = generator.next_tokens(PROMPTS[0], SamplingOptions(temperature=0.5, top_k=3), 5, include=[plain.tokens[-1].id])
    assert [token.drawn > 0 for token in cut.tokens] == [True] * 3 + [False] * 3
    powers = [math.exp(2 * token.logprob) for token in cut.tokens[:3]]
    assert [token.drawn for token in cut.tokens[:3]] == pytest.approx([each / sum(powers) for each in powers], rel=1e-4)
    assert cut.tokens[-1].id == plain.tokens[-1].id
    penalised = generator.next_tokens(
        ids, SamplingOptions(repetition_penalty=1e6, temperature=0.0), generator.config.vocab
    )
    (chosen,) = (token for token in penalised.tokens if token.drawn)
    assert chosen.id not in ids


def test_without_torch_a_model_that_needs_it_says_why(tmp_path, monkeypatch):
    generators.mistral(tmp_path)
    file = load_folder(tmp_path)
    monkeypatch.delitem(sys.modules, "sixfold.engines.sampling", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with Generator(file, "cpu") as generator, pytest.raises(RequestError) as caught:
        generator.generate(["The"])
    assert "CTranslate2 cannot run model.sliding_window = 6" in str(caught.value)
