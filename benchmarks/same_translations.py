"""Do two source trees translate alike? All dev sets in both directions, documents of every format, and a server.

    python benchmarks/same_translations.py DATA --old TREE --new TREE [--model MODEL] [--lines N] [--greedy]
        [--documents DIR]

Without the shortlist, every translation must be the same, byte for byte. What differs is translated again by both
trees, every sentence in a batch of its own: if it is the same then, only the batches differ, whose other sentences
change the last digits of probabilities. With the shortlist, which is the union over a batch, translations may differ:
the changed lines are listed, and BLEU may differ by 0.05 at most. With --one-by-one every sentence is a batch from the
beginning.

    lines      DATA/dev/*.zh and *.en, all lines or N of each, evenly spread; without the shortlist, and with it
    documents  The files of DIR. Without DIR: the documentation of NEW and random documents of every format, without the
               shortlist. --max-document leaves out larger ones.
    server     Lines of DATA/dev/wmt17.zh to /translate from several clients at once, without the shortlist and with
               every sentence in a batch of its own

The trees run in turn in processes of their own. The exit status is 1 if something differs that may not. The times are
printed with an estimate for all lines; take no others from here. --json FILE writes everything that was compared.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import random
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from same_behaviour import TEXTS, Server, Tree
from tree_worker import NO_SHORTLIST, ONE_BY_ONE, Job, Outcome, TreeWorker

HERE = Path(__file__).parent
DIRECTIONS = (("zh", "en"), ("en", "zh"))
MAX_BLEU_CHANGE = 0.05
PARTS = ("lines", "shortlist", "documents", "server")
SUFFIXES = {"markdown": "md"}  # of formats whose names are not their suffixes
CLIENTS = 8  # that send lines to a server at the same time
RANDOM_DOCUMENTS = 6  # of each format


@dataclass(frozen=True)
class Change:
    """A line or document whose translation differs."""

    place: str  # the name of the set and the number of the line, or the name of the file
    source: str
    old: str
    new: str
    by_batch: bool = False  # it is the same in a batch of its own


@dataclass
class Comparison:
    """What two trees made of one set of lines, of the documents, or of lines through a server."""

    part: str
    name: str
    count: int
    changes: list[Change] = field(default_factory=list)
    score_changes: int = 0  # translations with the same text and another score
    bleu: tuple[float, float] | None = None  # of OLD and of NEW
    seconds: tuple[float, float] = (0.0, 0.0)
    errors: list[str] = field(default_factory=list)

    @property
    def is_accepted(self) -> bool:
        """Whether there is no difference that may not be."""
        if self.bleu is not None:
            return not self.errors and abs(self.bleu[1] - self.bleu[0]) <= MAX_BLEU_CHANGE
        return not self.errors and all(change.by_batch for change in self.changes)

    def line(self) -> str:
        """Return a line of the table."""
        bleu = "" if self.bleu is None else f"BLEU {self.bleu[0]:.2f} → {self.bleu[1]:.2f}, "
        verdict = "" if self.is_accepted else "  DIFFERENT"
        return (
            f"{self.part:10} {self.name:22} {self.count - len(self.changes):5} of {self.count:5} the same, {bleu}"
            f"{self.score_changes} other scores, {self.seconds[0]:.1f} s → {self.seconds[1]:.1f} s{verdict}"
        )


def spread(lines: Sequence[str], count: int | None) -> list[tuple[int, str]]:
    """Return `count` lines, evenly spread, with their numbers from 1; all lines if there are no more."""
    if count is None or count >= len(lines):
        return list(enumerate(lines, start=1))
    indices = [index * len(lines) // count for index in range(count)]
    return [(index + 1, lines[index]) for index in indices]


def compare_texts(
    comparison: Comparison, numbered: Sequence[tuple[int, str]], old: Sequence[str], new: Sequence[str]
) -> None:
    """Note every line whose translations differ."""
    if not len(numbered) == len(old) == len(new):
        comparison.errors.append(f"{len(old)} and {len(new)} translations of {len(numbered)} lines")
        return
    comparison.changes += [
        Change(f"{comparison.name}:{number}", text, first, second)
        for (number, text), first, second in zip(numbered, old, new, strict=True)
        if first != second
    ]


def bleu(translations: Sequence[str], references: Sequence[str], target: str) -> float:
    """Return sacreBLEU's BLEU with the tokeniser of the target language."""
    from sacrebleu.metrics import BLEU

    return float(BLEU(tokenize="zh" if target == "zh" else "13a").corpus_score(translations, [references]).score)


def compare_lines(options: argparse.Namespace, shortlist: bool) -> Iterator[Comparison]:
    """Yield a comparison for each dev set and direction."""
    part = "shortlist" if shortlist else "lines"
    with both_trees(options, () if shortlist else (NO_SHORTLIST,)) as (old, new):
        for path in sorted(options.data.glob("dev/*.zh")):
            sides = {
                side: path.with_suffix(f".{side}").read_text(encoding="utf-8").split("\n") for side in ("zh", "en")
            }
            for source, target in DIRECTIONS:
                numbered = spread(sides[source][:-1], options.lines)
                job = Job(source, target, tuple(text for _, text in numbered), beam=options.beam)
                outcomes = old.translate(job), new.translate(job)
                result = Comparison(part, f"{path.stem}.{source}", len(numbered))
                note_outcomes(result, outcomes)
                first, second = (outcome.texts for outcome in outcomes)
                compare_texts(result, numbered, first, second)
                if not shortlist:
                    find_batch_changes(options, result, job)
                pairs = zip(first, second, *(outcome.scores for outcome in outcomes), strict=False)
                result.score_changes = sum(one == two and left != right for one, two, left, right in pairs)
                if shortlist and not result.errors:
                    references = [sides[target][number - 1] for number, _ in numbered]
                    result.bleu = bleu(first, references, target), bleu(second, references, target)
                yield result


@contextmanager
def both_trees(options: argparse.Namespace, switches: Sequence[str]) -> Iterator[tuple[TreeWorker, TreeWorker]]:
    """Run both trees until the end of the context."""
    switches = [*switches, *([ONE_BY_ONE] if options.one_by_one else [])]
    with (
        TreeWorker(options.old, switches, options.model) as old,
        TreeWorker(options.new, switches, options.model) as new,
    ):
        yield old, new


def find_batch_changes(options: argparse.Namespace, result: Comparison, job: Job) -> None:
    """Translate again what has changed, one sentence at a time, and note what is the same then."""
    if not result.changes or options.one_by_one:
        return
    sources = tuple(change.source for change in result.changes)
    own = job if job.form else replace(job, lines=sources)
    alone = []
    for root in (options.old, options.new):
        with TreeWorker(root, (NO_SHORTLIST, ONE_BY_ONE), options.model) as worker:
            outcome = worker.translate(own)
            alone.append([document_text(base64.b64decode(outcome.document))] if job.form else outcome.texts)
            result.errors += [outcome.error] if outcome.error else []
    same = [first == second for first, second in zip(*alone, strict=True)] * (len(sources) if job.form else 1)
    result.changes = [replace(change, by_batch=is_same) for change, is_same in zip(result.changes, same, strict=True)]


def note_outcomes(result: Comparison, outcomes: tuple[Outcome, Outcome]) -> None:
    """Note times and errors."""
    result.seconds = outcomes[0].seconds, outcomes[1].seconds
    result.errors += [
        f"{name}: {outcome.error}" for name, outcome in zip(("OLD", "NEW"), outcomes, strict=True) if outcome.error
    ]


def documents_of_tree(root: Path) -> dict[str, bytes]:
    """Return the documentation of a tree and random documents of every format, by file name."""
    sys.path.append(str(HERE.parent / "tests"))
    import made_documents

    paths = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("docs/**/*.html")]
    documents = {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}
    documents |= {name: text.encode() for name, text in TEXTS.items() if name.startswith("doc.")}
    for form, make in made_documents.MAKERS.items():
        for number in range(RANDOM_DOCUMENTS):
            data = make(random.Random(f"{form} {number}"))
            name = f"random/{number}.{SUFFIXES.get(form, form)}"
            documents[name] = data if isinstance(data, bytes) else data.encode()
    return documents


def documents_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def document_text(data: bytes) -> str:
    """Return a document as text, of a ZIP file the text of its members: their dates may differ."""
    if not data.startswith(b"PK"):
        return data.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return "\n".join(f"{name}: {archive.read(name).decode('utf-8', 'replace')}" for name in archive.namelist())


def compare_documents(options: argparse.Namespace, documents: Mapping[str, bytes]) -> Iterator[Comparison]:
    """Yield a comparison for each document; those that hold mostly Chinese characters are translated into English."""
    forms = {SUFFIXES.get(form, form): form for form in ("markdown", "html", "srt", "vtt", "json", "yaml", "po")}
    forms |= {form: form for form in ("xliff", "csv", "tsv", "docx")}
    with both_trees(options, (NO_SHORTLIST,)) as (old, new):
        for name, data in documents.items():
            form = forms.get(name.rpartition(".")[2])
            if form is None or len(data) > options.max_document:
                continue
            source, target = DIRECTIONS[0 if is_chinese(document_text(data)) else 1]
            job = Job(source, target, document=base64.b64encode(data).decode(), form=form, beam=options.beam)
            outcomes = old.translate(job), new.translate(job)
            result = Comparison("documents", name, 1)
            note_outcomes(result, outcomes)
            first, second = (document_text(base64.b64decode(outcome.document)) for outcome in outcomes)
            result.changes = [
                Change(name, "", *pair) for pair in changed_lines(first, second)[:20] if not result.errors
            ]
            result.count = max(1, len(result.changes))
            find_batch_changes(options, result, job)
            yield result


def is_chinese(text: str) -> bool:
    """Return whether at least a fifth of the letters of a text are Chinese characters."""
    letters = [char for char in text if char.isalpha()]
    return 5 * sum("\u4e00" <= char <= "\u9fff" for char in letters) > len(letters)


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    """Return the lines of two texts that differ, or both texts if they differ in their number of lines."""
    first, second = old.split("\n"), new.split("\n")
    if len(first) != len(second):
        return [(old, new)]
    return [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]


class ServerWithoutShortlist(Server):
    """A server of a tree without the shortlist. Every sentence is a batch, as batches depend on chance here."""

    command = (str(HERE / "tree_worker.py"), "serve", NO_SHORTLIST, ONE_BY_ONE)


def compare_servers(options: argparse.Namespace, work: Path) -> Comparison:
    """Send the same lines to a server of each tree, from several clients at once."""
    lines = (options.data / "dev" / "wmt17.zh").read_text(encoding="utf-8").split("\n")[:-1]
    numbered = spread(lines, options.server_lines)
    result = Comparison("server", "wmt17.zh", len(numbered))
    models = f"models = [{json.dumps(str(options.model.resolve()))}]\n" if options.model else ""
    settings = f"cache = 0\ndeadline = 600\nbeam = {options.beam}\n{models}"
    (work / "serve.toml").write_text(settings, encoding="utf-8")
    translations = []
    for label, root in (("old", options.old), ("new", options.new)):
        tree = Tree(label, root, work)
        del tree.environment["OMP_NUM_THREADS"]
        with ServerWithoutShortlist(tree, f"--config {work / 'serve.toml'}") as server:

            def ask(text: str, server: Server = server) -> dict[str, object]:
                body = {"q": text, "source": "zh", "target": "en"}
                return dict(server.ask("POST", "/translate", body))

            with ThreadPoolExecutor(CLIENTS) as pool:
                answers = list(pool.map(ask, [text for _, text in numbered]))
        failures = [answer["status"] for answer in answers if answer["status"] != 200]
        if failures:
            result.errors.append(f"{label.upper()}: {len(failures)} failures, such as {failures[0]}")
        translations.append([str(answer["body"]) for answer in answers])
    compare_texts(result, numbered, translations[0], translations[1])
    return result


def comparisons(options: argparse.Namespace, work: Path) -> Iterator[Comparison]:
    """Yield the comparisons of all parts that are wanted."""
    if "lines" in options.only:
        yield from compare_lines(options, shortlist=False)
    if "shortlist" in options.only:
        yield from compare_lines(options, shortlist=True)
    if "documents" in options.only:
        made = documents_in(options.documents) if options.documents else documents_of_tree(options.new)
        yield from compare_documents(options, made)
    if "server" in options.only:
        yield compare_servers(options, work)


def report(result: Comparison) -> None:
    """Print a comparison with everything that differs."""
    print(result.line(), flush=True)
    for error in result.errors:
        print(f"    error: {error}")
    for change in result.changes:
        cause = "  (the same in a batch of its own)" if change.by_batch else ""
        print(
            f"    {change.place}{cause}  {change.source}\n      old: {change.old}\n      new: {change.new}", flush=True
        )


def estimate(results: Sequence[Comparison], total: int) -> str:
    """Return how long both trees would take for all lines of the dev sets, by the lines that they have translated."""
    count = sum(result.count for result in results)
    seconds = sum(sum(result.seconds) for result in results)
    return (
        f"{count} lines took {seconds:.0f} s in both trees; {total} would take {seconds / count * total / 60:.0f} min"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--new", type=Path, default=HERE.parent)
    parser.add_argument("--model", type=Path, help="for both trees; left out: the one of each tree")
    parser.add_argument("--lines", type=int, help="of each dev set and direction; left out: all")
    parser.add_argument("--greedy", action="store_const", const=1, default=4, dest="beam", help="a beam of 1, not 4")
    parser.add_argument("--one-by-one", action="store_true", help="decode every sentence in a batch of its own")
    parser.add_argument("--documents", type=Path, metavar="DIR")
    parser.add_argument("--max-document", type=int, default=1_000_000, metavar="BYTES")
    parser.add_argument("--server-lines", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    results: list[Comparison] = []
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for result in comparisons(options, work):
            report(result)
            results.append(result)
    total = sum(path.read_bytes().count(b"\n") for path in options.data.glob("dev/*.*"))
    for part in ("lines", "shortlist"):
        if of_part := [result for result in results if result.part == part]:
            print(f"{part}: {estimate(of_part, total)}")
    if options.json:
        options.json.write_text(
            json.dumps([asdict(result) for result in results], ensure_ascii=False), encoding="utf-8"
        )
    bad = [result for result in results if not result.is_accepted]
    print(f"{len(results) - len(bad)} of {len(results)} comparisons have no difference that may not be")
    sys.exit(bool(bad) or not results)


if __name__ == "__main__":
    main()
