import json
from dataclasses import replace

import numpy as np
import pytest
from commands import complaint, run_here

from sixfold import modelfile
from sixfold.errors import RequestError
from sixfold.explorer.embeddings import neighbours, pca_projection, similar, similar_sentences, word_vectors
from sixfold.explorer.forward import forward


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.fixture(scope="module")
def model(untaught):
    return untaught()[0]


@pytest.mark.parametrize("kind", ["encoder-decoder", "encoder", "decoder"])
def test_a_word_of_several_pieces_is_their_mean(untaught, tokenizer, kind):
    model = untaught(kind=kind, share_embeddings=False)[0]
    table = model.weight("decoder.embedding.token.weight" if kind == "decoder" else "encoder.embedding.token.weight")
    ids = [tokenizer.encode(word) for word in ("black", "blackest")]
    assert len(ids[1]) > 1
    np.testing.assert_allclose(word_vectors(model, ["black", " blackest"]), [table[each].mean(axis=0) for each in ids])
    assert similar(model, "black", "blackest") == pytest.approx(cosine(*word_vectors(model, ["black", "blackest"])))
    assert similar(model, "black", "black") == pytest.approx(1)


@pytest.mark.parametrize(("kind", "around"), [("encoder", (1, 1)), ("decoder", (0, 0)), ("encoder-decoder", (0, 1))])
def test_sentences_are_what_the_model_makes_of_their_pieces(untaught, tokenizer, kind, around):
    model = untaught(kind=kind)[0]
    means = []
    for text in ("the black cat", "a dog"):
        ids = tokenizer.encode(text)
        whole = np.array([[1] * around[0] + ids + [2] * around[1]])
        sides = {"encoder": (whole,), "decoder": (None, whole), "encoder-decoder": (whole, np.array([[1]]))}[kind]
        outputs = forward(model, *sides)[f"{'decoder' if kind == 'decoder' else 'encoder'}.output"][0]
        means.append(outputs[around[0] : around[0] + len(ids)].mean(axis=0))
    assert similar_sentences(model, "the black cat", "a dog") == pytest.approx(cosine(*means), abs=1e-5)


def test_a_model_of_two_directions_reads_each_language_with_its_tag(learned):
    tagged = modelfile.load(learned["tagged"])
    ids = [[tagged.tokenizer.tag("en"), *tagged.tokenizer.encode("我爱猫"), 2],
           [tagged.tokenizer.tag("zh"), *tagged.tokenizer.encode("I love cats"), 2]]  # fmt: skip
    outputs = [forward(tagged, np.array([each]), np.array([[1]]))["encoder.output"][0, 1:-1] for each in ids]
    found = similar_sentences(tagged, "我爱猫", "I love cats")
    assert found == pytest.approx(cosine(*(each.mean(axis=0) for each in outputs)), abs=1e-5)


def test_neighbours_are_the_nearest_pieces_of_text(model, tokenizer):
    found = neighbours(model, "the", 300)
    table = model.weight("encoder.embedding.token.weight")
    (own,) = word_vectors(model, ["the"])
    cosines = [each.cosine for each in found]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines == pytest.approx([cosine(table[each.id], own) for each in found], abs=1e-5)
    assert not {each.id for each in found} & {*tokenizer.reserved, *tokenizer.byte_ids, *tokenizer.encode("the")}
    texts = [each.text for each in found]
    assert len(texts) == len(set(texts))
    assert {"the", ""}.isdisjoint(texts)
    left = [token.strip() for token in tokenizer.tokens if not token.startswith("<")]
    assert set(texts) == set(left) - {"the", ""}
    assert neighbours(model, "the", 3) == found[:3]


def test_a_plane_keeps_the_distances_of_what_lies_in_one(model):
    words = ["the", "dog", "cat"]
    vectors, points = word_vectors(model, words), pca_projection(model, words)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        far = np.linalg.norm(vectors[one] - vectors[other])
        assert np.linalg.norm(points[one] - points[other]) == pytest.approx(far, rel=1e-4)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-5)
    assert points[:, 0].var() >= points[:, 1].var()


def test_the_largest_feature_of_each_direction_of_a_plane_is_positive(model):
    words = ["the", "dog", "cat", "saw", "black", "sat"]
    for some in (words[:3], words[1:4], words[2:], words):
        vectors = word_vectors(model, some)
        for direction in pca_projection(model, some).T @ (vectors - vectors.mean(axis=0)):
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


def test_the_command_line_says_the_same(learned, capsys):
    path = learned["zh-en"]
    model = modelfile.load(path)
    said = json.loads(run_here(capsys, "similar", "cats", "dogs", "--model", path, "--json").out)
    assert said == {"one": "cats", "other": "dogs", "sentences": False, "cosine": similar(model, "cats", "dogs")}
    said = json.loads(run_here(capsys, "similar", "我", "你爱", "--sentences", "--model", path, "--json").out)
    assert said["cosine"] == similar_sentences(model, "我", "你爱")
    said = json.loads(run_here(capsys, "neighbours", "猫", "--count", 3, "--model", path, "--json").out)
    assert said == [each._asdict() for each in neighbours(model, "猫", 3)]
    table = run_here(capsys, "neighbours", "猫", "--count", 3, "--model", path).out.splitlines()
    assert [line.split()[:2] for line in table] == [[each["text"], f"{each['cosine']:.3f}"] for each in said]
    assert "[b]cats · [/x]" in run_here(capsys, "similar", "[b]cats", "[/x]", "--model", path).out
    assert "count: expected at least 1" in complaint("neighbours", "cats", "--count", 0, "--model", path)
