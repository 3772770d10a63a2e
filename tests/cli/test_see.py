import json
import re

import numpy as np
import pytest
import small_generators
from commands import complaint, run_here, sixfold
from rich.cells import cell_len
from small_runs import train

from sixfold import explore
from sixfold.cli.see import show
from sixfold.explorer.drawing import Scene, colormap
from sixfold.explorer.views_layout import Table, View

TEXT, OTHER = "我们需要数学", "机器学习很有趣"
# All views of a sentence.
VIEWS = (
    "attention", "heads", "token", "alignment", "masks", "positions", "similarity", "steps", "beam", "walk", "lens",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs"), "short")


def test_a_sentence_becomes_a_picture_and_a_table(model, tmp_path):
    out = tmp_path / "heads.svg"
    result = sixfold("see", TEXT, "--view", "heads", "--model", model, "-o", out)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", f"wrote {out}\n")
    assert TEXT in out.read_text(encoding="utf-8")
    result = sixfold("see", TEXT, "--view", "alignment", "--model", model)
    assert (result.returncode, result.stderr) == (0, "")
    assert TEXT in result.stdout
    assert "\x1b" not in result.stdout  # nobody sees colours in a pipe


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_writes_what_its_suffix_says(model, tmp_path, capsys, view):
    texts = [TEXT, OTHER] if view == "masks" else [TEXT]
    for suffix, start in (("svg", b"<svg"), ("html", b"<!doctype html>")):
        out = tmp_path / f"{view}.{suffix}"
        result = run_here(capsys, "see", *texts, "--view", view, "-m", model, "-o", out)
        assert (result.out, result.err) == ("", f"wrote {out}\n")
        assert out.read_bytes().startswith(start)
    result = run_here(capsys, "see", *texts, "--view", view, "-m", model)
    assert len(result.out.splitlines()) > 3


def test_a_png_is_written_where_no_font_is_missing(model, tmp_path, capsys):
    out = tmp_path / "positions.PNG"
    run_here(capsys, "see", TEXT, "--view", "positions", "-m", model, "-o", out)
    assert out.read_bytes().startswith(b"\x89PNG")


def test_json_has_the_numbers_of_the_trace(model, capsys):
    result = run_here(
        capsys,
        "see",
        TEXT,
        "-m",
        model,
        "--kind",
        "encoder",
        "--layer",
        0,
        "--head",
        1,
        "--json",
        "--translation",
        "We",
    )
    facts = json.loads(result.out)
    assert facts["sentences"] == [{"text": TEXT, "translation": "We", "from": "zh", "to": "toy", "off": []}]
    weights = explore(TEXT, "We", model).attention("encoder", 0, 1)
    np.testing.assert_allclose([row[1:] for row in facts["tables"][0]["rows"]], weights, atol=1e-4)


def test_heads_can_be_switched_off(model, capsys):
    words = ("see", TEXT, "-m", model, "--view", "steps", "--translation", "We need", "--json")
    off = json.loads(run_here(capsys, *words, "--off", "cross.0.0", "--off", "cross.0.1").out)
    on = json.loads(run_here(capsys, *words).out)
    assert off["sentences"][0]["off"] == ["cross.0.0", "cross.0.1"]
    assert off["tables"] != on["tables"]


def test_a_run_shows_its_curves(run, tmp_path, capsys):
    run_here(capsys, "see", run, "--view", "training", "-o", tmp_path / "run.svg")
    assert "Loss on dev" in (tmp_path / "run.svg").read_text(encoding="utf-8")
    run_here(capsys, "see", run, "--view", "training", "-o", tmp_path / "run.html")
    assert "Samples over time" in (tmp_path / "run.html").read_text(encoding="utf-8")  # the page of `sixfold report`
    run_here(capsys, "see", run, "--view", "training", "-o", tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(run_here(capsys, "see", run, "--view", "training", "--json").out)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert facts["runs"] == ["short"]
    assert facts["tables"][0]["rows"][-1][0] == metrics[-1]["step"]


def test_the_test_of_induction_needs_no_sentence(tmp_path, capsys):
    small_generators.gpt2(tmp_path / "gpt2")
    file = small_generators.model_file(tmp_path / "gpt2", tmp_path / "gpt2.safetensors")
    words = ("see", "--view", "induction", "-m", file)
    facts = json.loads(run_here(capsys, *words, "--json").out)
    assert (facts["view"], facts["model"], facts["induction_heads"]) == ("induction", "gpt2", [])
    assert len(facts["heads"]) == len(facts["tables"][0]["rows"]) == 8
    assert "Induction heads: none" in run_here(capsys, *words).out
    run_here(capsys, *words, "-o", tmp_path / "a.html")
    assert "Induction heads: none" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "expected no sentence; got 'a cat'" in run_here(capsys, *words, "a cat", status=2).err
    for view, what in (("lens", "a sentence"), ("training", "the folder of a run")):
        assert f"--view {view}: expected {what}; got none" in run_here(capsys, "see", "--view", view, status=2).err
    run_here(capsys, "see", "The quick fox", "--view", "lens", "-m", file, "-o", tmp_path / "lens.png")
    assert (tmp_path / "lens.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["--view", "atention"], "--view: expected one of attention, ", "did you mean 'attention'?"),
        (["--kind", "crss"], "--kind: expected cross, encoder or decoder; got 'crss'", "did you mean 'cross'?"),
        (["--layer", 7], "layer: expected 0 to 1; got 7", ""),
        (["--head", 99], "head: expected 0 to 3; got 99", ""),
        (["--off", "cross"], "head: expected a name such as encoder.0.3", ""),
        (["-o", "out.pdf"], "--output: expected a name that ends in .png, .svg, .html; got 'out.pdf'", ""),
        (["-o", "no/such/folder/out.svg"], "no/such/folder", ""),
        (["--view", "walk", "--token", "nowhere"], "--token: expected 0 to", "the pieces are"),
        ([OTHER], "--view attention: expected one sentence; got 2", "put it in quotes"),
        (["--view", "induction"], "--view induction: expected no sentence", "random sequences of its own"),
        ([OTHER, "--view", "masks", "--translation", "We"], "--translation: expected only together with", ""),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(model, capsys, words, error, hint):
    result = run_here(capsys, "see", TEXT, "-m", model, *words, status=2)
    assert error in result.err
    assert hint in result.err
    assert len(result.err.splitlines()) <= 2


def test_a_folder_is_no_sentence(tmp_path):
    assert "--view training shows the folder of a run" in complaint("see", tmp_path)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Return a function that prints a view to a terminal of some width; `settings` are environment variables."""

    def render(view, width, **settings):
        for name, value in {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm", **settings}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("COLUMNS", str(width))
        show(view)
        return capsys.readouterr().out

    monkeypatch.delenv("NO_COLOR", raising=False)
    return render


def test_a_terminal_has_colours_and_without_them_digits(terminal):
    table = Table("t", ["", "猫", "dogs"], [["a", 0.5, 0.25], ["狗", 1.0, 0.0]], (1, 2))
    view = View(Scene(9, 9, [], "title"), [table])
    red, green, blue = colormap(0.5)
    assert f"48;2;{red};{green};{blue}m" in terminal(view, 80)
    plain = terminal(view, 80, NO_COLOR="1")
    assert "48;2" not in plain
    assert "0.50" in plain


def test_a_narrow_terminal_gets_the_columns_in_blocks(terminal):
    names = [f"column{number}" for number in range(12)]
    table = Table("t", ["", *names], [["row", *[0.25] * 12]], range(1, 13))
    output = plain(terminal(View(Scene(9, 9, [], "title"), [table]), 40))
    lines = output.splitlines()
    assert sum(line.count("0.25") for line in lines) == 12
    assert all(len(line.rstrip()) <= 40 for line in lines if "0.25" in line)
    assert "11 column11" in output


def plain(output):
    """Return the output of a terminal without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", output)


def test_labels_of_rows_are_whole_and_long_ones_are_folded(terminal):
    labels = ["encoder.0.0", "a → label that is longer than half of the terminal, 机器学习"]
    table = Table("t", ["", "x", "y"], [[label, -0.5, 0.25] for label in labels], (1, 2), "diverging")
    lines = plain(terminal(View(Scene(9, 9, [], "title"), [table]), 60)).splitlines()
    assert re.fullmatch(r" *encoder\.0\.0 +-0\.50 +0\.25 *", lines[2])
    assert re.sub(r"-0\.50|0\.25|\s", "", "".join(lines[3:])) == re.sub(r"\s", "", labels[1])
    assert sum("-0.50" in line and "0.25" in line for line in lines) == 2


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_column_of_a_table_is_dropped_where_the_terminal_is_narrow(terminal, width):
    heads = ["stage", "equation", "size", "numbers", "more", "last"]
    row = [
        "Input of this layer",
        "Norm(x + sublayer(x))",
        512,
        "  ".join(map(str, range(10_000, 10_020))),
        1.5,
        "é" * 50,
    ]
    output = plain(terminal(View(Scene(9, 9, [], "title"), [Table("t", heads, [row])]), width))
    assert all(cell_len(line.rstrip()) <= width for line in output.splitlines())
    words = output.split()
    assert all(head in words for head in heads)
    assert all(str(number) in words for number in range(10_000, 10_020))
    assert "512" in words
    assert "1.5" in words
    assert output.count("é") == 50
    assert "…" not in output


def test_an_empty_text_is_told(model, capsys):
    for text in ("", "  "):
        assert (
            "text: expected a sentence; got an empty text" in run_here(capsys, "see", text, "-m", model, status=2).err
        )


def test_a_terminal_does_not_obey_what_pieces_say(terminal):
    table = Table("t", ["a", "b"], [["\x1b[31mred", 1]])
    output = terminal(View(Scene(9, 9, [], "\x1b[2J"), [table]), 80)
    assert "\x1b[31m" not in output
    assert "\x1b[2J" not in output
