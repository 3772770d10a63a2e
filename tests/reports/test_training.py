import json
import shutil
import sys

import pytest
from small_runs import train

from sixfold import modelfile
from sixfold.cli.main import main
from sixfold.data.corpus import Corpus
from sixfold.errors import DataError
from sixfold.reports.run_record import read_runs
from sixfold.reports.training import CURVES, training_dict, training_page


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of two real runs of different widths."""
    folder = tmp_path_factory.mktemp("runs")
    train(folder, "narrow")
    train(folder, "wide", "model.d_model=24", "training.steps=15")
    return folder


@pytest.fixture
def run(runs, tmp_path):
    """Return a copy of a run that a test may damage."""
    return shutil.copytree(runs / "narrow", tmp_path / "narrow")


def page_of(*folders):
    return training_page(read_runs(folders))


def edit_run_json(run, **changes):
    run_json = json.loads((run / "run.json").read_text(encoding="utf-8")) | changes
    (run / "run.json").write_text(json.dumps(run_json), encoding="utf-8")
    return run_json


def test_a_report_has_curves_scores_data_settings_and_cost(run):
    text = page_of(run)
    scores = json.loads((run / "run.json").read_text(encoding="utf-8"))["scores"]["dev"]
    facts = ["Ended at step 10", "zh → en", "Scores on dev", "Worst sentences", "pairs read", "training time", "cpu"]
    settings = ["model.d_model", "preset tiny"]
    for text_part in (*CURVES.values(), *facts, *settings, scores["signature"], f"{scores['bleu']:.1f}"):
        assert text_part in text, text_part


def test_scores_of_the_page_are_those_of_the_run(run):
    report = training_dict(read_runs([run]))
    scores = report["runs"][0]["scores"]["dev"]
    assert report["sets"]["dev"]["scores"]["narrow"]["BLEU"]["value"] == pytest.approx(scores["bleu"])
    assert report["sets"]["dev"]["scores"]["narrow"]["chrF"]["value"] == pytest.approx(scores["chrf"])
    assert report["sets"]["dev"]["signatures"] == {"BLEU": scores["signature"], "chrF": scores["chrf_signature"]}


def test_only_what_differs_from_the_preset_is_listed(run):
    (report,) = training_dict(read_runs([run]))["runs"]
    assert report["preset"] == "tiny"
    assert report["changes"]["model.d_model"] == [192, 16]
    assert "model.dropout" not in report["changes"]


def test_a_run_that_was_killed_has_a_report(run):
    for path in (*run.glob("*.safetensors"), *run.glob("*.translated.txt")):
        path.unlink()
    edit_run_json(run, finished=False, scores={})
    metrics = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(metrics[: len(metrics) // 2] + b'{"step": 7, "lo')
    text = page_of(run)
    assert "Not ended: at step" in text
    assert "best BLEU on dev so far" in text
    assert "training time" in text  # from the checkpoint
    assert "Scores on dev" not in text


def test_a_run_that_has_just_begun_has_a_report(run):
    (run / "metrics.jsonl").unlink()
    shutil.rmtree(run / "checkpoints")
    shutil.rmtree(run / "data")
    for path in (*run.glob("*.safetensors"), *run.glob("*.translated.txt"), run / "config.toml"):
        path.unlink()
    edit_run_json(run, finished=False, scores={})
    assert "no step has been logged yet" in page_of(run)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"asked": 1}', b"\xff\xfe"])
def test_a_folder_that_is_not_a_run_is_named(run, damage):
    (run / "run.json").write_bytes(damage)
    with pytest.raises(DataError, match="narrow: expected the folder of a run"):
        read_runs([run])


def test_lines_that_are_not_metrics_are_skipped(run):
    before = len(read_runs([run])[0].metrics)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'null\n[1]\n{"loss": 1}\n{"step": "x"}\n\xff\n{"step": 11, "loss": null}\n')
    (record,) = read_runs([run])
    assert len(record.metrics) == before + 1
    assert record.series("loss").y[-1] is None
    assert training_page([record])


def test_a_report_is_written_although_the_model_is_damaged(run):
    (run / "model.safetensors").write_bytes(b"nonsense")
    (record,) = read_runs([run])
    assert record.card["languages"] == {"source": "zh", "target": "en"}  # of the best model
    assert training_page([record])


def test_samples_are_shown_as_they_changed(run):
    rows = [
        {"step": step, "samples": [{"source": "我爱茶", "reference": "I love tea", "translation": f"tea {step}<b>"}]}
        for step in range(1, 101)
    ]
    (run / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = page_of(run)
    assert "Samples over time" in text
    assert "tea 100&lt;b&gt;" in text
    assert 2 <= text.count("&lt;b&gt;") <= 8


def test_findings_of_the_doctor_are_listed(run):
    misaligned = {"name": "misaligned", "count": 1200, "share": 0.03, "advice": "drop them", "lines": list(range(1200))}
    findings = [misaligned, {"name": "leaked", "count": 0, "lines": []}]
    (run / "doctor.json").write_text(json.dumps({"findings": findings}), encoding="utf-8")
    text = page_of(run)
    assert "misaligned" in text
    assert "1,200" in text
    assert "drop them" in text
    assert "leaked" not in text
    assert "1199" not in json.dumps(training_dict(read_runs([run])))


def test_sentences_of_a_named_set_come_from_its_files(run, tmp_path):
    (tmp_path / "news.zh").write_text("我爱茶\n茶\n", encoding="utf-8")
    (tmp_path / "news.en").write_text("I love tea\nTea\n", encoding="utf-8")
    (run / "news.translated.txt").write_text("I love\nTea\n", encoding="utf-8")
    files = (tmp_path / "news.zh", tmp_path / "news.en")
    run_json = edit_run_json(run, sets={"news": {"files": list(map(str, files)), "columns": []}})
    run_json["asked"]["corpora"]["test 1 (news)"] = [Corpus("news", files).digest(), 1.0, []]
    edit_run_json(run, asked=run_json["asked"])
    assert "I love tea" in page_of(run)
    (tmp_path / "news.en").write_text("I loved tea\nTea\n", encoding="utf-8")
    assert "has changed since the run read it" in page_of(run)
    (tmp_path / "news.en").unlink()
    assert "news.en: No such file" in page_of(run)


def test_several_dev_sets_have_a_curve_each(run):
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 10, "dev_news_bleu": 3.5, "dev_talks_bleu": 4.5}\n')
    text = page_of(run)
    assert "BLEU on news" in text
    assert "BLEU on talks" in text


def test_fine_tuning_shows_what_it_gained_and_lost(run):
    model = modelfile.load(run / "model.safetensors")
    card = {**model.card, "scores_before": {"dev": {"bleu": 12.5, "chrf": 34.567}}}
    modelfile.save(run / "model.safetensors", model.config, model.weights(), model.tokenizer, card)
    text = page_of(run)
    assert "Before and after fine-tuning" in text
    assert "12.50" in text
    assert "34.57" in text


def test_runs_are_compared_side_by_side(runs):
    records = read_runs([runs / "narrow", runs / "wide"])
    text = training_page(records)
    assert "wide against narrow" in text
    comparison = training_dict(records)
    assert comparison["differing"] == {
        "model.d_model": ["16", "24"],
        "training.steps": ["10", "15"],
    }
    assert comparison["sets"]["dev"]["scores"]["wide"]["BLEU"]["p"] is not None
    assert [record.series("loss").x[-1] for record in records] == [10, 15]


def test_runs_of_other_sentences_are_not_compared(runs, run):
    path = next((run / "data").glob("dev-*.json"))
    pairs = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([[source, target + "!"] for source, target in pairs]), encoding="utf-8")
    assert "wide: other sentences than narrow" in page_of(run, runs / "wide")


def report(*arguments):
    """Return the exit status of `sixfold report`."""
    with pytest.raises(SystemExit) as exit_info:
        main(["report", *map(str, arguments)])
    return exit_info.value.code


def test_the_command_writes_a_page_and_plots(run, tmp_path, capsys):
    assert report(run, "--png", tmp_path / "plots", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["finished"]
    assert (run / "report.html").read_text(encoding="utf-8") == page_of(run)
    plots = sorted((tmp_path / "plots").iterdir())
    assert [path.stem for path in plots] == sorted(CURVES)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in plots)


def test_the_command_compares_runs(runs, tmp_path, capsys):
    assert report(runs / "narrow", runs / "wide", "-o", tmp_path / "compare.html") == 0
    assert "2 runs" in (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


def test_without_matplotlib_the_extra_is_named(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert report(run, "--png", tmp_path) == 2
    assert capsys.readouterr().err.endswith("hint: pip install 'sixfold[plots]'\n")


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_a_folder_without_a_run_is_named(tmp_path, capsys, folder):
    assert report(tmp_path / folder) == 2
    assert "expected the folder of a run" in capsys.readouterr().err
