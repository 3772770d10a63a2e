"""A trace of a decoder-only model has the numbers of generation, and its views speak of texts, not of translations."""

from dataclasses import replace

import numpy as np
import pytest
import small_generators
from small_models import SMALL, in_memory, random_model

from sixfold import explore
from sixfold.config import TokenizerConfig
from sixfold.errors import RequestError
from sixfold.explorer.beam import free_run
from sixfold.explorer.embeddings import similar_sentences
from sixfold.explorer.pieces import piece_text
from sixfold.explorer.views import VIEWS, view
from sixfold.explorer.views_layout import ViewOptions
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.text.learn import train_tokenizer

TEXT = "The quick brown fox"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of model files: a GPT-2 without tokens before a prompt, a LLaMA with <s>, and an own model with <bos>."""
    folder = tmp_path_factory.mktemp("decoders")
    paths = {}
    for name, make in small_generators.MAKERS.items():
        make(folder / name)
        paths[name] = small_generators.model_file(folder / name, folder / f"{name}.safetensors")
    return paths


@pytest.fixture(scope="module")
def own():
    tokenizer = train_tokenizer(
        ["the quick brown fox saw the lazy dog", "a dog and a fox"] * 9, TokenizerConfig(vocab=310)
    )
    config = tokenizer.fit(
        replace(SMALL, kind="decoder", max_length=40, positions="rotary", norm_position="pre", tie_output=False)
    )
    return replace(in_memory(config, random_model(config)), tokenizer=tokenizer)


@pytest.mark.parametrize("name", ["gpt2", "llama", "own"])
@pytest.mark.parametrize("text", [TEXT, "The", " 我爱\nnaïve cats"])
def test_the_numbers_are_those_of_generation(files, own, name, text):
    model = own if name == "own" else files[name]
    trace = explore(text, model=model)
    with Generator(model, "cpu", 1) as generator:
        assert trace.target.ids == generator.encode(text)
        assert trace.predicted.ids[:-1] == trace.target.ids[1:]
        begin = max(1, len(generator.before))
        (scores,) = generator.score([text])
        logprobs = [np.log(step.probability) for step in trace.steps(1)]
        assert logprobs[begin - 1 : -1] == pytest.approx([token.logprob for token in scores], abs=1e-3)
        ((written,),) = generator.generate([text], GenerateOptions(max_tokens=1, likeliest=3))
        last = trace.steps(3)[-1]
        assert last.rank == 0
        if written.tokens:
            assert written.tokens[0].id == trace.predicted.ids[-1]
            assert np.log(last.probability) == pytest.approx(written.tokens[0].logprob, abs=1e-3)
            assert [choice.id for choice in last.choices] == [likely.id for likely in written.tokens[0].likeliest]


def test_a_search_continues_the_text_until_a_token_that_ends_texts(files, tmp_path):
    trace = explore(TEXT, model=files["llama"])
    steps = free_run(trace)
    assert (steps[0].read, steps[0].wrote) == (trace.target.texts[-1], trace.predicted.texts[-1])
    assert len(steps) > 2
    ends = (free_run(trace)[2].choices[0].id,)
    file = small_generators.model_file(files["llama"].parent / "llama", tmp_path / "a.safetensors", ends=ends)
    shorter = free_run(explore(TEXT, model=file))
    assert len(shorter) == 3
    with Generator(file, "cpu", 1) as generator:
        ((written,),) = generator.generate([TEXT], GenerateOptions(max_tokens=9))
    assert [step.choices[0].id for step in shorter[:-1]] == [token.id for token in written.tokens]


def test_a_row_is_found_by_the_piece_that_it_reads(files):
    trace = explore(TEXT, model=files["gpt2"])
    rows = view("token", [trace], ViewOptions(token="fox")).scene.title
    assert rows == f"Causal self-attention: where “fox → {trace.predicted.texts[-1]}” looks"
    assert view("token", [trace]).scene.title == rows  # the last row sees all others
    words, row_words, column_words = trace.by_word("decoder", trace.attention("decoder", 1, 2))
    assert row_words == column_words == ["The", "quick", "brown", "fox"]
    assert np.triu(words, 1).max() == 0


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_every_view_speaks_of_a_text(files, name):
    trace = explore(TEXT, model=files[name])
    for view_name in {*VIEWS, "masks"} - {"alignment"}:
        shown = view(view_name, [trace])
        words = f"{shown.scene.title} {shown.scene.description} {[table.to_dict() for table in shown.tables]}"
        assert not {"translation", "source", "cross"} & {*words.lower().split()}
    with pytest.raises(RequestError, match="alignment: expected an encoder-decoder; got a model") as error:
        view("alignment", [trace])
    assert "attention, heads and token" in error.value.hint
    for wrong in ({"translation": "x"}, {"source": "en"}, {"target": "en"}):
        with pytest.raises(RequestError, match=f"{next(iter(wrong))}: expected none for a model of the kind 'decoder'"):
            explore(TEXT, model=files[name], **wrong)


def test_a_walk_shows_rotations_and_shared_keys_where_the_model_has_them(files):
    llama, gpt2 = (
        {row[0]: row[1] for row in view("walk", [explore(TEXT, model=files[name])]).tables[0].rows}
        for name in ("llama", "gpt2")
    )
    last = len(explore(TEXT, model=files["llama"]).target) - 1
    assert (llama["Query"], gpt2["Query"]) == (f"q = x W_Q, rotated by {last} · θ", "q = x W_Q + b")
    assert any(equation.startswith("k = x W_K, head 0 of 2, rotated by ") for equation in llama.values())
    assert ("Sum" in llama, "Sum" in gpt2) == (False, True)
    assert (llama["Feed-forward, output"], gpt2["Feed-forward, output"]) == ("h W₂", "h W₂ + b₂")


def test_masks_of_a_batch_of_texts(files):
    traces = [explore(text, model=files["llama"]) for text in ("The", TEXT)]
    (table,) = view("masks", traces).tables
    lengths = [len(trace.target) for trace in traces]
    assert list(table.columns) == ["sentence", "pieces", "padding", "decoder"]
    assert [list(row[:3]) for row in table.rows] == [[0, lengths[0], lengths[1] - lengths[0]], [1, lengths[1], 0]]


def test_pieces_of_published_vocabularies_are_readable(files, own):
    gpt2 = explore("a fox\n我", model=files["gpt2"])
    assert "↵" in gpt2.target.texts
    tokenizer = gpt2.tokenizer
    names = {name: piece_text(tokenizer, index) for index, name in enumerate(tokenizer.tokens)}
    assert (names["Ġfox"], names["own"], names["Ċ"], names["æ"]) == ("▁fox", "own", "↵", "E6")
    assert names["<|endoftext|>"] == "<|endoftext|>"
    assert "↵" in explore("a dog\nand", model=own).target.texts


def test_sentences_are_compared_by_what_generation_reads(files):
    assert similar_sentences(_file(files["llama"]), TEXT, TEXT) == pytest.approx(1, abs=1e-5)
    trace, other = (explore(text, model=files["llama"]) for text in (TEXT, "How are you?"))
    means = [each["decoder.output"][1:].mean(axis=0) for each in (trace, other)]
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert similar_sentences(_file(files["llama"]), TEXT, "How are you?") == pytest.approx(cosine, abs=1e-5)


def _file(path):
    return explore("The", model=path).model
