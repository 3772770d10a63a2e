"""The logit lens equals an independent computation by transformers, and its last row is the model's own prediction."""

from dataclasses import replace

import numpy as np
import pytest
import small_generators
import torch
from small_models import OPTIONS

from sixfold import explore
from sixfold.errors import RequestError
from sixfold.explorer.drawing import Grid, Label, colormap, svg
from sixfold.explorer.lens import layer_logits, lens
from sixfold.explorer.trace import trace_text
from sixfold.explorer.views import html_page, view


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_it_equals_the_hidden_states_of_transformers(tmp_path, name):
    reference, _ = small_generators.MAKERS[name](tmp_path / name)
    trace = explore(
        "The quick brown fox", model=small_generators.model_file(tmp_path / name, tmp_path / "a.safetensors")
    )
    with torch.no_grad():
        states = reference(torch.tensor([trace.target.ids]), output_hidden_states=True).hidden_states
        norm = reference.transformer.ln_f if name == "gpt2" else reference.model.norm
        normed = [*map(norm, states[:-1]), states[-1]]  # the last has been through the norm
        expected = [reference.lm_head(state)[0].numpy() for state in normed]
    logits = list(layer_logits(trace))
    assert len(logits) == len(expected) == 3
    for layer, (ours, theirs) in enumerate(zip(logits, expected, strict=True)):
        np.testing.assert_allclose(ours, theirs, atol=2e-4, err_msg=f"row {layer}")
    assert np.abs(expected[0] - expected[-1]).max() > 1


CASES = [
    *(("decoder", name) for name in OPTIONS if name != "separate vocabularies"),
    *(("encoder-decoder", name) for name in ("no biases", "pre-norm", "final norm", "unequal depths")),
]


@pytest.mark.parametrize(("kind", "option"), CASES)
def test_the_last_row_is_exactly_the_prediction_of_the_model(make_model, kind, option):
    file, _ = make_model(kind=kind, **OPTIONS[option])
    trace = explore("the black cat", "the dog" if kind == "encoder-decoder" else None, file)
    logits = list(layer_logits(trace))
    assert np.array_equal(logits[-1], trace["logits"])
    assert len(logits) == trace.kinds["decoder"] + 1
    found = lens(trace)
    steps = trace.steps(1)
    assert found.ranks[-1].tolist() == [step.rank for step in steps]
    assert found.following[-1].tolist() == [step.probability for step in steps]
    assert found.texts[-1] == [step.choices[0].text for step in steps]
    assert found.probabilities[-1].tolist() == [step.choices[0].probability for step in steps]


def test_the_lens_of_a_model_with_a_layer_less_is_the_row_before(make_model):
    """A pre-norm model without its last layer predicts what the lens shows after the layer before."""
    file, _ = make_model(kind="decoder", norm_position="pre", norm="rms", positions="rotary")
    config = replace(file.config.model, decoder_layers=1)
    names = [name for name in file.tensors if ".layers.1." not in name]
    shorter = replace(
        file, config=replace(file.config, model=config), tensors={name: file.tensors[name] for name in names}
    )
    rows = list(layer_logits(explore("a black cat", model=file)))
    np.testing.assert_allclose(rows[1], explore("a black cat", model=shorter)["logits"], atol=1e-5)


def test_the_note_says_what_is_applied(make_model):
    notes = {
        (position, final): lens(
            trace_text(make_model(kind="decoder", norm_position=position, final_norm=final)[0], "cats")
        ).note
        for position, final in (("pre", False), ("post", False), ("post", True))
    }
    assert notes["pre", False].startswith("Each row: the final norm and the output projection, applied to the residual")
    assert "the output projection alone" in notes["post", False]
    assert "applied to what the layer's own norm returns" in notes["post", True]


def test_cells_show_the_likeliest_piece_and_the_rank_of_what_follows(make_model):
    trace = explore("the black cat saw a dog and a cat", model=make_model(kind="decoder", norm_position="pre")[0])
    figure, found = view("lens", [trace]), lens(trace)
    pieces, probabilities, ranks, following = figure.tables
    assert [row[1:] for row in pieces.rows] == found.texts
    np.testing.assert_allclose([row[1:] for row in probabilities.rows], found.probabilities, atol=1e-4)
    assert [[rank - 1 for rank in row[1:]] for row in ranks.rows] == found.ranks.tolist()
    np.testing.assert_allclose([row[1:] for row in following.rows], found.following, atol=1e-4)
    bands = [part for part in figure.scene.parts if isinstance(part, Grid)][:-1]  # the last is the colour bar
    assert len(bands) == -(-len(trace.target) // 10)
    np.testing.assert_array_equal(np.concatenate([each.colours for each in bands], 1), colormap(found.probabilities))
    labels = [part for part in figure.scene.parts if isinstance(part, Label)]
    bold = [part.text for part in labels if part.weight == 600 and part.fill != "accent"]
    assert len(bold) == len(trace.target) + (found.ranks == 0).sum()
    assert sum(part.text.startswith("#") for part in labels if part.anchor == "end") == (found.ranks > 0).sum()
    assert found.note in svg(figure.scene).replace("&#x27;", "'")
    assert found.note in html_page(figure).replace("&#x27;", "'")
    assert all(table.to_dict()["rows"][0][0] == "embedding" for table in figure.tables)


def test_an_encoder_has_no_lens(make_model):
    with pytest.raises(
        RequestError, match="lens: expected a model with a decoder; got one of the kind 'encoder'"
    ) as error:
        view("lens", [trace_text(make_model(kind="encoder")[0], "a black cat")])
    assert error.value.hint
