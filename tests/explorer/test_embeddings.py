import json
from dataclasses import replace

import numpy as np
import pytest
from commands import complaint, run_here

from sixfold import modelfile
from sixfold.errors import RequestError
from sixfold.explorer.embeddings import neighbours, pca_projection, similar, similar_sentences, word_vectors
from sixfold.explorer.forward import forward


def cosine(first, second):
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


@pytest.fixture(scope="module")
def model(make_model):
    return make_model()[0]


@pytest.mark.parametrize("kind", ["encoder-decoder", "encoder", "decoder"])
def test_a_word_of_several_pieces_is_their_mean(make_model, tokenizer, kind):
    model = make_model(kind=kind, share_embeddings=False)[0]
    table = model.weight("decoder.embedding.token.weight" if kind == "decoder" else "encoder.embedding.token.weight")
    ids = [tokenizer.encode(word) for word in ("black", "blackest")]
    assert len(ids[1]) > 1
    np.testing.assert_allclose(
        word_vectors(model, ["black", " blackest"]), [table[pieces].mean(axis=0) for pieces in ids]
    )
    assert similar(model, "black", "blackest") == pytest.approx(cosine(*word_vectors(model, ["black", "blackest"])))
    assert similar(model, "black", "black") == pytest.approx(1)


@pytest.mark.parametrize(("kind", "specials"), [("encoder", (1, 1)), ("decoder", (1, 0)), ("encoder-decoder", (0, 1))])
def test_the_vector_of_a_sentence_is_the_mean_output_over_its_pieces(make_model, tokenizer, kind, specials):
    model = make_model(kind=kind)[0]
    means = []
    for text in ("the black cat", "a dog"):
        ids = tokenizer.encode(text)
        tokens = np.array([[1] * specials[0] + ids + [2] * specials[1]])
        sides = {"encoder": (tokens,), "decoder": (None, tokens), "encoder-decoder": (tokens, np.array([[1]]))}[kind]
        outputs = forward(model, *sides)[f"{'decoder' if kind == 'decoder' else 'encoder'}.output"][0]
        means.append(outputs[specials[0] : specials[0] + len(ids)].mean(axis=0))
    assert similar_sentences(model, "the black cat", "a dog") == pytest.approx(cosine(*means), abs=1e-5)


def test_a_model_of_two_directions_reads_each_language_with_its_tag(trained_models):
    tagged = modelfile.load(trained_models["tagged"])
    ids = [[tagged.tokenizer.tag("en"), *tagged.tokenizer.encode("我爱猫"), 2],
           [tagged.tokenizer.tag("zh"), *tagged.tokenizer.encode("I love cats"), 2]]  # fmt: skip
    outputs = [forward(tagged, np.array([row]), np.array([[1]]))["encoder.output"][0, 1:-1] for row in ids]
    similarity = similar_sentences(tagged, "我爱猫", "I love cats")
    assert similarity == pytest.approx(cosine(*(output.mean(axis=0) for output in outputs)), abs=1e-5)


def test_neighbours_are_the_nearest_pieces_of_text(model, tokenizer):
    nearest = neighbours(model, "the", 300)
    table = model.weight("encoder.embedding.token.weight")
    (own,) = word_vectors(model, ["the"])
    cosines = [neighbour.cosine for neighbour in nearest]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines == pytest.approx([cosine(table[neighbour.id], own) for neighbour in nearest], abs=1e-5)
    assert not {neighbour.id for neighbour in nearest} & {
        *tokenizer.reserved,
        *tokenizer.byte_ids,
        *tokenizer.encode("the"),
    }
    texts = [neighbour.text for neighbour in nearest]
    assert len(texts) == len(set(texts))
    assert {"the", ""}.isdisjoint(texts)
    all_texts = [token.strip() for token in tokenizer.tokens if not token.startswith("<")]
    assert set(texts) == set(all_texts) - {"the", ""}
    assert neighbours(model, "the", 3) == nearest[:3]


def test_a_plane_keeps_the_distances_of_what_lies_in_one(model):
    words = ["the", "dog", "cat"]
    vectors, points = word_vectors(model, words), pca_projection(model, words)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        distance = np.linalg.norm(vectors[first] - vectors[second])
        assert np.linalg.norm(points[first] - points[second]) == pytest.approx(distance, rel=1e-4)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-5)
    assert points[:, 0].var() >= points[:, 1].var()


def test_the_largest_feature_of_each_direction_of_a_plane_is_positive(model):
    words = ["the", "dog", "cat", "saw", "black", "sat"]
    for subset in (words[:3], words[1:4], words[2:], words):
        vectors = word_vectors(model, subset)
        for direction in pca_projection(model, subset).T @ (vectors - vectors.mean(axis=0)):
            assert direction[np.abs(direction).argmax()] > 0


def test_few_words_have_a_plane_too(model):
    assert pca_projection(model, ["dog"]).tolist() == [[0, 0]]
    assert pca_projection(model, ["dog", "cat"])[:, 1].tolist() == pytest.approx([0, 0], abs=1e-5)


def test_what_has_no_vector_is_refused(model):
    for call, message in (
        (lambda: similar(model, "dog", " "), "word: expected some text; got nothing"),
        (lambda: neighbours(model, ""), "word: expected some text"),
        (lambda: neighbours(model, "dog", 0), "count: expected at least 1; got 0"),
        (lambda: pca_projection(model, []), "words: expected at least one"),
        (lambda: similar(replace(model, tokenizer=None), "a", "b"), "expected a model with a tokeniser"),
        (lambda: similar_sentences(model, "the dog", "the dog " * 40), "text: expected at most 40 tokens; got "),
    ):
        with pytest.raises(RequestError, match=message):
            call()


def test_the_command_line_prints_the_same(trained_models, capsys):
    path = trained_models["zh-en"]
    model = modelfile.load(path)
    printed = json.loads(run_here(capsys, "similar", "cats", "dogs", "--model", path, "--json").out)
    assert printed == {"one": "cats", "other": "dogs", "sentences": False, "cosine": similar(model, "cats", "dogs")}
    printed = json.loads(run_here(capsys, "similar", "我", "你爱", "--sentences", "--model", path, "--json").out)
    assert printed["cosine"] == similar_sentences(model, "我", "你爱")
    printed = json.loads(run_here(capsys, "neighbours", "猫", "--count", 3, "--model", path, "--json").out)
    assert printed == [each._asdict() for each in neighbours(model, "猫", 3)]
    table = run_here(capsys, "neighbours", "猫", "--count", 3, "--model", path).out.splitlines()
    assert [line.split()[:2] for line in table] == [[each["text"], f"{each['cosine']:.3f}"] for each in printed]
    assert "[b]cats · [/x]" in run_here(capsys, "similar", "[b]cats", "[/x]", "--model", path).out
    assert "count: expected at least 1" in complaint("neighbours", "cats", "--count", 0, "--model", path)
