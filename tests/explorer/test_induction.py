"""Induction heads are named by a measurement: one that is built into a model is found, and nothing else is."""

import numpy as np
import pytest

from sixfold.config import Config, ModelConfig
from sixfold.errors import RequestError
from sixfold.explorer.drawing import Line, svg
from sixfold.explorer.heads import Head
from sixfold.explorer.induction import HALF, MIN_EXCESS, measure_induction
from sixfold.explorer.views_induction import induction, losses
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor
from sixfold.weights import shapes

VOCAB, POSITIONS = 64, 64
# The residual stream: the token that is read, its position, the token before it, and the prediction; each is one-hot.
TOKEN, POSITION, BEFORE, PREDICTION = (slice(64 * part, 64 * part + 64) for part in range(4))
CONFIG = ModelConfig(
    kind="decoder", vocab=VOCAB, d_model=256, heads=4, d_ff=4, decoder_layers=2, positions="learned", norm="rms",
    norm_position="pre", bias=False, tie_output=False, max_length=POSITIONS, scale_embeddings=False,
)  # fmt: skip
PREVIOUS, INDUCTION = Head("decoder", 0, 1), Head("decoder", 1, 2)


def built_model(distance=None):
    """Return a model whose head 0.1 copies the token before, and whose head 1.2 finds the last time of a token.

    With a `distance`, head 1.2 looks that far back instead, whatever the tokens are.
    """
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes(CONFIG).items()}
    for name, weight in weights.items():
        weight += "norm" in name
    one_hot = np.eye(64, dtype=np.float32)
    weights["decoder.embedding.token.weight"][:, TOKEN] = one_hot
    weights["decoder.embedding.position.weight"][:, POSITION] = one_hot
    weights["output.projection.weight"][:, PREDICTION] = 2 * one_hot
    # Position p has the query p and the key p + 1, so that it looks at position p - 1.
    fill(weights, PREVIOUS, (POSITION, one_hot), (POSITION, np.eye(64, k=-1)), BEFORE)
    if distance is None:
        fill(weights, INDUCTION, (TOKEN, one_hot), (BEFORE, one_hot), PREDICTION)
    else:
        fill(weights, INDUCTION, (POSITION, one_hot), (POSITION, np.eye(64, k=-distance)), PREDICTION)
    return ModelFile(Config(model=CONFIG), {name: Tensor.of(weight) for name, weight in weights.items()})


def fill(weights, head, query, key, output):
    """Give a head its query and key, each from a part of the stream, the token as its value, and where that goes."""
    projection = weights[f"{head.module_path}.query_key_value.weight"].reshape(3, 4, 64, 256)
    for role, (part, matrix) in enumerate((query, key, (TOKEN, np.eye(64)))):
        projection[role, head.head, :, part] = matrix * (2 if role < 2 else 0.1)
    weights[f"{head.module_path}.output.weight"][output, 64 * head.head : 64 * head.head + 64] = np.eye(64)


@pytest.fixture(scope="module")
def built():
    return built_model()


@pytest.fixture(scope="module")
def result(built):
    return measure_induction(built)


def test_the_built_head_is_named_and_no_other(result):
    assert [each.head for each in result.induction_heads] == [INDUCTION]
    best = result.heads[0]
    assert best.head == INDUCTION
    assert best.score > 0.95
    assert best.control < 0.05
    previous = {each.head: each.previous for each in result.heads}
    assert previous.pop(PREVIOUS) > 0.95
    assert max(previous.values()) < 0.3
    assert [each.head for each in result.heads if each.is_previous_token] == [PREVIOUS]
    assert (result.rows, result.half) == (8, HALF)


def test_the_repeated_half_is_predicted_until_the_head_is_off(result):
    assert result.first_loss > 3
    assert result.second_loss < 0.1
    ablation = result.ablation
    assert ablation.heads == (INDUCTION,)
    assert ablation.second > 3
    assert ablation.others_count == 1
    assert ablation.others
    assert all(abs(second) < 0.01 for _, second in ablation.others)  # the other heads do nothing
    assert losses(result)[2] == ("second half", "without 1 induction head", result.second_loss + ablation.second)


def test_scores_are_those_of_a_plain_loop_over_a_trace_of_the_weights(built, result):
    """The attention is that of the forward pass; the positions are written out here once more."""
    from sixfold.explorer.forward import forward
    from sixfold.explorer.induction import joined, random_halves

    random = np.random.default_rng(1)
    firsts, unrelated = random_halves(built, 1, random)
    for second, field in ((firsts, "score"), (unrelated, "control")):
        weights = forward(built, None, joined([1], firsts, second))["decoder.layers.1.self_attention.weights"]
        values = [
            weights[row, 2, 1 + HALF + index, 1 + index + 1] for row in range(8) for index in range(HALF - 1)
        ]  # fmt: skip
        assert getattr(result.heads[0], field) == pytest.approx(np.mean(values), abs=1e-5)
    for row in np.concatenate([firsts, unrelated], axis=1):
        assert len(set(row.tolist())) == 2 * HALF
        assert not {0, 1, 2} & set(row.tolist())


def test_a_head_that_only_looks_at_a_distance_is_not_named():
    test = measure_induction(built_model(distance=HALF - 1))
    fixed = next(each for each in test.heads if each.head == INDUCTION)
    assert min(fixed.score, fixed.control) > 0.9
    assert test.induction_heads == []


def test_an_untrained_model_has_none(make_model):
    file, _ = make_model(kind="decoder", max_length=64, positions="rotary", norm_position="pre")
    test = measure_induction(file)
    assert test.induction_heads == []
    assert test.heads[0].excess < MIN_EXCESS / 2
    assert test.ablation is None
    assert abs(test.second_loss - test.first_loss) < 1
    figure = induction(test)
    assert figure.scene.title == "Induction heads: none"
    assert f"No head gives {MIN_EXCESS}" in figure.scene.description
    assert not [part for part in figure.scene.parts if isinstance(part, Line)]
    assert len(losses(test)) == 2


def test_the_same_seed_gives_the_same_result(built, result, make_model):
    assert measure_induction(built).to_dict() == result.to_dict()
    file, _ = make_model(kind="decoder", max_length=64)
    first, same, other = (measure_induction(file, seed).to_dict() for seed in (1, 1, 2))
    assert first == same
    assert first["loss"] != other["loss"]


def test_no_special_token_is_drawn_and_texts_fit_the_model(make_model):
    file, _ = make_model(kind="decoder", max_length=20, positions="learned")
    assert measure_induction(file).half == 9
    for changes, kind in (({"max_length": 8}, "decoder"), ({}, "encoder"), ({}, "encoder-decoder")):
        with pytest.raises(RequestError, match=r"induction: expected a (model with 8 positions|decoder-only model)"):
            measure_induction(make_model(kind=kind, **changes)[0])


def test_the_picture_outlines_what_is_named(result):
    figure = induction(result)
    assert figure.scene.title == "Induction heads: decoder.1.2"
    (outline,) = [part for part in figure.scene.parts if isinstance(part, Line)]
    assert outline.points[0] == outline.points[-1]
    scores, costs = figure.tables
    assert [(row[0], row[-1]) for row in scores.rows if row[-1]] == [
        ("decoder.1.2", "induction head"), ("decoder.0.1", "previous-token head")
    ]  # fmt: skip
    assert len(costs.rows) == 4
    assert "without 1 other head" in svg(figure.scene)
