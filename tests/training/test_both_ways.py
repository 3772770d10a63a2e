"""One model for both directions, told by a tag: trained, scored, reported, translated with and fine-tuned."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from commands import run_here
from small_runs import write_pairs

from sixfold import Translator, modelfile, recipe
from sixfold.cli.main import main
from sixfold.model.transformer import build
from sixfold.reports import run_record
from sixfold.tasks.translation_validation import DevSet, TranslationValidator
from sixfold.training.corpora import find
from sixfold.training.display import Display
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.interrupt import Interrupt, Stopped
from sixfold.training.recipe_models import RecipeModels
from sixfold.training.session import TrainingSession
from sixfold.training.shortlist_learner import ARRAYS, ShortlistLearner
from sixfold.training.translation_inputs import prepare_inputs

SETTINGS = [
    "model.d_model=32", "model.heads=2", "model.d_ff=64", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.0", "tokenizer.vocab=450", "training.batch_tokens=512", "training.learning_rate=1e-2",
    "training.warmup=20", "training.validate_every=60", "training.patience=0", "training.steps=120",
    "data.skip=['duplicate']",
]  # fmt: skip


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def settings(*some):
    return [word for setting in some for word in ("--set", setting)]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Runs are the same to the last bit with the same number of threads, which other work here may change."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    write_pairs(folder)
    lines = [(folder / f"toy.{language}").read_text(encoding="utf-8").splitlines() for language in ("zh", "en")]
    extra = "".join(f"{zh}\t{en}\n" for zh, en in zip(*lines, strict=True))
    extra += f"这句话谁也没有说过\t{lines[1][0]}\n"
    (folder / "extra.tsv").write_text(extra, encoding="utf-8")
    (folder / "both.toml").write_text(
        'preset = "tiny"\n[data]\nsource = "zh"\ntarget = "en"\nboth_ways = true\n'
        '[[corpus]]\nfiles = ["toy.zh", "toy.en"]\n'
        '[[corpus]]\nfiles = ["extra.tsv"]\nway = "back"\ntag = "bt"\nweight = 0.5\n'
        '[[test]]\nname = "toy"\nfiles = ["some.zh", "some.en"]\nbleu = 30.0\nbleu_back = 30.0\ntolerance = 99.0\n',
        encoding="utf-8",
    )
    for language, some in zip(("zh", "en"), lines, strict=True):
        (folder / f"some.{language}").write_text("".join(f"{line}\n" for line in some[:12]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    words = ["train", str(folder / "both.toml"), "--out", str(folder / "run"), "--device", "cpu"]
    with pytest.raises(SystemExit) as done:
        main([*words, *settings(*SETTINGS)])
    assert done.value.code == 0
    return folder / "run"


def test_every_set_is_scored_in_both_directions_by_the_rules_of_its_target(trained):
    card = modelfile.load(trained / "model.safetensors").card
    names = {"dev.zh-en": "tok:13a", "dev.en-zh": "tok:zh", "toy.zh-en": "tok:13a", "toy.en-zh": "tok:zh"}
    assert card["scores"].keys() == names.keys()
    for name, rule in names.items():
        assert rule in card["scores"][name]["signature"]
    assert {"dev.zh-en_bleu", "dev.en-zh_bleu"} <= card["validations"][0].keys()


def test_the_tags_are_those_that_the_corpora_need(trained):
    model = modelfile.load(trained / "model.safetensors")
    assert model.tokenizer.tags == model.config.tokenizer.tags == ("zh", "en", "bt")
    assert model.config.data.both_ways


def test_dev_and_test_sentences_are_learnt_from_in_neither_direction(folder, trained):
    split = json.loads(next((trained / "data").glob("dev-*.json")).read_text(encoding="utf-8"))
    tests = zip(
        *((folder / f"some.{each}").read_text(encoding="utf-8").splitlines() for each in ("zh", "en")), strict=True
    )
    kept_back = {side for pair in (*split, *tests) for side in pair}
    toy = zip(
        *((folder / f"toy.{each}").read_text(encoding="utf-8").splitlines() for each in ("zh", "en")), strict=True
    )
    pairs = [*toy, *(line.split("\t") for line in lines(folder / "extra.tsv"))]
    learnt = [pair for pair in pairs if kept_back.isdisjoint(pair)]
    assert modelfile.load(trained / "model.safetensors").card["pairs"] == len(learnt)
    # One pair has a dev sentence as its target only.
    assert sum(pair[0] not in kept_back for pair in pairs) > len(learnt)


def test_the_file_translates_both_ways_better_than_chance(trained):
    with Translator(trained / "model.safetensors", "cpu") as translator:
        assert translator.directions == [("zh", "en"), ("en", "zh")]
        for found, script in ((translator.translate("我爱猫"), "a"), (translator.translate("I love cats"), "一")):
            letters = [char for char in found.text if char.isalpha()]
            assert letters
            assert all((char >= "一") == (script == "一") for char in letters)


def test_the_report_has_both_directions_with_their_own_texts(trained):
    (found,) = run_record.read_runs([trained])
    sets = {each.name: each for each in found.sets}
    there, back = sets["toy.zh-en"], sets["toy.en-zh"]
    assert there.texts.sources == back.texts.references
    assert there.texts.references == back.texts.sources
    assert (there.texts.language, back.texts.language) == ("en", "zh")
    assert sets["dev.en-zh"].texts is not None
    assert "dev.en-zh" in (trained / "report.html").read_text(encoding="utf-8")


def test_what_was_promised_is_checked_in_both_directions(folder, capsys):
    (folder / "again.toml").write_text(
        (folder / "both.toml").read_text(encoding="utf-8").replace("tolerance = 99.0", "tolerance = 0.0"),
        encoding="utf-8",
    )
    few = settings(*SETTINGS, "training.steps=4", "training.validate_every=4")
    captured = run_here(capsys, "train", folder / "again.toml", "--out", folder / "again", "--device", "cpu", *few)
    assert "toy.zh-en: expected BLEU 30.0 ± 0.0" in captured.err
    assert "toy.en-zh: expected BLEU 30.0 ± 0.0" in captured.err
    assert "NOT reached" in captured.err


def test_fine_tuning_stays_both_ways(folder, trained, capsys):
    words = ["finetune", trained / "model.safetensors", folder / "toy.zh", folder / "toy.en", "--out", folder / "tuned"]
    captured = run_here(capsys, *words, "--json", *settings("training.steps=6", "training.batch_tokens=256"))
    assert json.loads(captured.out)["scores"].keys() == {"new.zh-en", "new.en-zh"}
    assert modelfile.load(folder / "tuned" / "model.safetensors").config.data.both_ways


@pytest.mark.parametrize(("source", "target"), [("zh", "zh"), ("", "en")])
def test_two_languages_must_be_named(source, target, tmp_path, capsys):
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("a b c\n" * 40, encoding="utf-8")
    words = ["train", tmp_path / "one.txt", tmp_path / "two.txt", "--out", tmp_path / "run", "--device", "cpu"]
    asked = (
        "data.both_ways=true",
        f"data.source='{source}'",
        f"data.target='{target}'",
        "data.skip=['script','copied']",
    )
    captured = run_here(capsys, *words, *settings(*asked), status=2)
    assert "data.both_ways: expected two languages; got" in captured.err
    assert "hint: --set data.source=" in captured.err
    assert not list((tmp_path / "run").glob("data/clean-*"))  # it says so before any work


def test_evaluate_goes_the_way_of_the_references(folder, trained, tmp_path, capsys):
    (tmp_path / "mixed.tsv").write_text(
        "I love cats.\t我爱猫。\n猫\t猫\n", encoding="utf-8"
    )  # the second has no English
    model = trained / "model.safetensors"
    for files, rule in ((("some.zh", "some.en"), "tok:13a"), (("some.en", "some.zh"), "tok:zh")):
        words = ["evaluate", model, *(folder / file for file in files), "--json", "--out", tmp_path / rule[4:]]
        run_here(capsys, *words)
        facts = (tmp_path / rule[4:] / "evaluation.json").read_text(encoding="utf-8")
        assert rule in facts
    run_here(capsys, "evaluate", model, tmp_path / "mixed.tsv", "--out", tmp_path / "mixed")
    assert "tok:zh" in (tmp_path / "mixed" / "evaluation.json").read_text(encoding="utf-8")


def test_a_run_both_ways_goes_on_where_it_was_stopped(folder, trained, capsys):
    few = settings(*SETTINGS, "training.checkpoint_every=20")
    words = ["train", folder / "both.toml", "--out", folder / "stopped", "--device", "cpu", *few]

    def stop_once(self, log, read_metrics=TrainingSession.read_metrics):
        if self.state.step == 50 and not (folder / "once").exists():
            (folder / "once").touch()
            self.display.interrupt.requested = True
        return read_metrics(self, log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingSession, "read_metrics", stop_once)
        assert "stopped at step 50" in run_here(capsys, *words).err
    run_here(capsys, *words)
    weights = [modelfile.load(each / "model.safetensors").weights() for each in (folder / "stopped", trained)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_a_model_that_learns_one_way_with_tags_is_asked_with_them(folder, capsys):
    words = [
        "train",
        folder / "toy.zh",
        folder / "toy.en",
        "--out",
        folder / "tagged",
        "--device",
        "cpu",
        "--preset",
        "tiny",
    ]
    run_here(capsys, *words, *settings(*SETTINGS, "tokenizer.tags=['en']"))
    model = modelfile.load(folder / "tagged" / "model.safetensors")
    with Translator(model, "cpu") as translator:
        assert translator.directions == [("zh", "en")]
        assert translator.direction("我").tag == (model.tokenizer.tag("en"),)
    assert model.card["scores"]["dev"]["bleu"] > 20  # it would be lost without the tag that it knows from every source


def test_a_model_without_tags_cannot_be_tuned_both_ways(folder, tmp_path, capsys):
    run_here(capsys, "train", folder / "toy.zh", folder / "toy.en", "--out", tmp_path / "plain", "--device", "cpu",
        "--preset", "tiny", *settings(*SETTINGS, "training.steps=2", "training.validate_every=2"))  # fmt: skip
    words = ["finetune", tmp_path / "plain" / "model.safetensors", folder / "toy.zh", folder / "toy.en"]
    captured = run_here(capsys, *words, "--out", tmp_path / "tuned", *settings("data.both_ways=true"), status=2)
    assert "expected tags of the model to start from (it has none); got zh, en" in captured.err
    assert not list((tmp_path / "tuned").glob("data/clean-*"))


def test_a_flag_asks_for_both_ways(folder, tmp_path, capsys):
    words = ["train", folder / "toy.zh", folder / "toy.en", "--both-ways", "--out", tmp_path / "run", "--device", "cpu"]
    run_here(capsys, *words, "--preset", "tiny", *settings(*SETTINGS, "training.steps=2", "training.validate_every=2"))
    assert modelfile.load(tmp_path / "run" / "model.safetensors").config.data.both_ways


def test_validation_reads_what_the_model_has_learnt_to_read(trained):
    file = modelfile.load(trained / "model.safetensors")
    model = build(file.config.model)
    shape = file.config.model
    validator = TranslationValidator(
        model, shape, {"source": file.tokenizer, "target": file.tokenizer}, file.config.training, SINGLE_PROCESS
    )
    for (source, target), text in ((("zh", "en"), "我爱猫"), (("en", "zh"), "I love cats")):
        dev_set = DevSet("some", [text], [""], (source, target))
        assert validator.encode_sources(dev_set) == [
            [file.tokenizer.tag(target), *file.tokenizer.encode(text), shape.eos]
        ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('[[corpus]]\nfiles = ["a.tsv"]\nway = "up"', "corpus.way: expected one of both, forward, back; got 'up'"),
        ('[[corpus]]\nfiles = ["a.tsv"]\ntag = "b t"', "corpus.tag: expected a letter, then letters"),
        (
            '[[corpus]]\nfiles = ["a.tsv"]\ntag = "eos"',
            "corpus.tag: expected a name other than those of special tokens",
        ),
        ('[[dev]]\nfiles = ["a.tsv"]\ntag = "bt"', "dev: expected neither way nor tag"),
        ('[[corpus]]\nfiles = ["a.tsv"]\ntag_way = "back"', "corpus.tag_way: expected a corpus.tag with it"),
    ],
)
def test_ways_and_tags_that_mean_nothing_are_refused(line, expected, tmp_path, capsys):
    (tmp_path / "r.toml").write_text(line + "\n", encoding="utf-8")
    assert expected in run_here(capsys, "train", tmp_path / "r.toml", "--out", tmp_path / "run", status=2).err


STUDENT = (
    'preset = "tiny"\ncorpora = "shared/toy.toml"\ntokenizer_of = "run/model.safetensors"\n'
    '[data]\nsource = "zh"\ntarget = "en"\nboth_ways = true\n'
    '[[corpus]]\nfiles = ["extra.tsv"]\ntag = "bt"\ntag_way = "forward"\n'
)


@pytest.fixture
def student(folder, trained):
    """A recipe with shared corpora, the tokeniser of another model, and a tag for one direction."""
    assert trained == folder / "run"  # where the recipe looks for it
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "shared" / "toy.toml").write_text('[[corpus]]\nfiles = ["toy.zh", "toy.en"]\n', encoding="utf-8")
    (folder / "student.toml").write_text(STUDENT, encoding="utf-8")
    return folder / "student.toml"


def inputs_of(path, out):
    """The inputs of a run of the recipe."""
    loaded = recipe.changed(recipe.load(path), "", SETTINGS)
    models = RecipeModels.load(loaded, path.parent)
    display = Display(Interrupt(), quiet=True)
    return prepare_inputs(loaded, find(loaded, path.parent), out, {}, torch.device("cpu"), display, models)


def test_a_student_learns_with_the_tokeniser_of_its_teacher(student, trained, capsys):
    out = student.parent / "student"
    run_here(capsys, "train", student, "--out", out, "--device", "cpu", *settings(*SETTINGS, "training.steps=5"))
    teacher, model = (modelfile.load(each / "model.safetensors") for each in (trained, out))
    assert model.tokenizer.to_json() == teacher.tokenizer.to_json()
    assert model.config.tokenizer == teacher.config.tokenizer
    assert [each["name"] for each in model.card["data"]] == ["toy", "extra"]
    assert model.card["data"][1] == {"name": "extra", "weight": 1.0, "way": "both", "tag": "bt", "tag_way": "forward"}
    run_file = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert run_file["asked"]["corpora"]["to take the tokeniser from"] == [teacher.checksum]
    more = run_here(capsys, "train", student, "--out", out, "--device", "cpu", *settings(*SETTINGS, "training.steps=6"))
    assert "6 steps instead of 5" in more.out + more.err


def test_a_corpus_of_the_recipe_replaces_the_shared_one_for_the_same_files(student):
    (student.parent / "shared" / "toy.toml").write_text(
        '[[corpus]]\nfiles = ["toy.zh", "toy.en"]\nway = "back"\n[[corpus]]\nfiles = ["more.tsv"]\n', encoding="utf-8"
    )
    student.write_text(STUDENT + '[[corpus]]\nfiles = ["toy.zh", "toy.en"]\nweight = 2.0\n', encoding="utf-8")
    corpora = recipe.load(student).corpus
    assert [corpus.files for corpus in corpora] == [("toy.zh", "toy.en"), ("more.tsv",), ("extra.tsv",)]
    assert (corpora[0].weight, corpora[0].way) == (2.0, "both")


def test_a_tag_is_put_before_the_sources_of_its_direction_only(student, tmp_path):
    inputs = inputs_of(student, tmp_path)
    en, zh, bt = map(inputs.tokenizers["source"].tag, ("en", "zh", "bt"))
    assert [(part.corpus, part.columns[0], part.prefixes[0]) for part in inputs.examples.parts] == [
        (0, "source", (en,)), (1, "source", (en, bt)), (0, "target", (zh,)), (1, "target", (zh,)),
    ]  # fmt: skip


def test_a_tokeniser_without_the_tags_of_the_corpora_is_refused(student, capsys):
    student.write_text(STUDENT.replace('"bt"', '"ft"'), encoding="utf-8")
    messages = run_here(capsys, "train", student, "--out", student.parent / "refused", status=2)
    assert "expected tags of the model to take the tokeniser from (zh, en, bt); got ft" in messages.err


def test_a_shortlist_is_learnt_in_a_process_beside_training_on_a_gpu(student, tmp_path, monkeypatch):
    """That process needs no GPU itself. It gives the list that is learnt at the end where a CPU trains."""
    monkeypatch.setattr("sixfold.tasks.translation.MIN_VOCAB_FOR_SHORTLIST", 1)
    inputs, display = inputs_of(student, tmp_path), Display(Interrupt(), quiet=True)
    learner = ShortlistLearner(inputs, tmp_path)
    with learner.beside_training(torch.device("cuda")):
        display.interrupt.requested = True
        with pytest.raises(Stopped):
            learner.result(display)
        display.interrupt.requested = False
        learnt = learner.result(display)
    assert learner.path.exists()
    learner.path.unlink()
    with learner.beside_training(torch.device("cpu")):
        expected = learner.result(display)
    for name in ARRAYS:
        assert np.array_equal(getattr(learnt, name), getattr(expected, name))
    without = replace(inputs, config=replace(inputs.config, training=replace(inputs.config.training, shortlist=False)))
    assert ShortlistLearner(without, tmp_path).result(display) is None


def test_a_shortlist_is_learnt_here_if_its_process_was_killed(student, tmp_path, monkeypatch):
    monkeypatch.setattr("sixfold.tasks.translation.MIN_VOCAB_FOR_SHORTLIST", 1)
    learner = ShortlistLearner(inputs_of(student, tmp_path), tmp_path)
    monkeypatch.setattr(learner, "_write", lambda _: None)  # it ends without a result
    with learner.beside_training(torch.device("cuda")):
        assert learner.result(Display(Interrupt(), quiet=True)) is not None
    assert not learner.path.exists()


@pytest.mark.parametrize(
    ("shared", "line", "expected"),
    [
        ('[[corpus]]\nfiles = ["toy.zh", "toy.en"]\n[training]\nsteps = 3', "", "only [[corpus]] tables; got training"),
        ("corpus = 3", "", "corpus: expected tables; got 3"),
        ("", 'start = "run/model.safetensors"\n', "tokenizer_of: expected none beside start"),
        ("", "corpora = 3\n", "corpora: expected the name of a file; got 3"),
    ],
)
def test_wrong_shared_corpora_and_models_are_refused(student, shared, line, expected, capsys):
    (student.parent / "shared" / "toy.toml").write_text(shared, encoding="utf-8")
    text = STUDENT.replace('corpora = "shared/toy.toml"\n', "") if line.startswith("corpora") else STUDENT
    student.write_text(line + text, encoding="utf-8")
    messages = run_here(capsys, "train", student, "--out", student.parent / "refused", status=2)
    assert expected in messages.err
