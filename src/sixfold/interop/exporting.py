"""Export of a model file to the folders of other toolkits, each of which is read back and compared."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sixfold.errors import ModelFileError, RequestError
from sixfold.interop.ctranslate2 import convert
from sixfold.interop.huggingface_decoders import write_decoder
from sixfold.interop.huggingface_export import write_huggingface
from sixfold.interop.onnx import OnnxModel, write_onnx
from sixfold.interop.sentencepiece import to_sentencepiece
from sixfold.interop.sources import read_source
from sixfold.modelfile import ModelFile
from sixfold.text.sentencepiece_file import SPACE
from sixfold.text.sequence_format import SpecialTokens
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

Languages = tuple[str, str]
# The largest difference between the logits of two models, of which the second is what was written.
Difference = Callable[[ModelFile, ModelFile | OnnxModel], float]
MAX_DIFFERENCE = 1e-3
NO_SPECIAL_TOKENS = SpecialTokens((), (), ())


@dataclass(frozen=True)
class Export:
    """What is exported: a model, and if it translates, the direction that it is exported for and its special tokens."""

    file: ModelFile
    languages: Languages = ("", "")
    special: SpecialTokens = NO_SPECIAL_TOKENS

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokeniser of sources."""
        if self.file.tokenizer is None:
            raise RequestError("model: expected one with a tokeniser, because texts are exported; this one has none")
        return self.file.tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokeniser of targets."""
        return self.file.target_tokenizer or self.tokenizer


def export(what: Export, form: str, folder: Path, difference: Difference) -> list[str]:
    """Write a folder and return notes for the user. The folder appears complete or not at all.

    What was written is read again, and ModelFileError is raised if its logits are others.
    """
    if folder.exists() and any(folder.iterdir()):
        raise RequestError(f"{folder}: expected an empty folder or none; got one with files", "name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        notes = FORMATS[form](what, building)
        packages = list(building.glob("*.argosmodel"))
        again = OnnxModel(building) if form == "onnx" else read_source(str(packages[0] if packages else building))
        distance = difference(what.file, again)
        if distance > MAX_DIFFERENCE:
            raise ModelFileError(
                f"{folder}: expected the same logits after it was read again; they differ by {distance:.2g}"
            )
        if folder.exists():
            folder.rmdir()
        building.chmod(0o755)
        building.rename(folder)
        return notes
    finally:
        shutil.rmtree(building, ignore_errors=True)


def write_ctranslate2(what: Export, folder: Path) -> list[str]:
    """Write a CTranslate2 folder whose vocabularies are pieces, and the tokenisers beside it.

    The token before a source is the <bos> of the source there, which ctranslate2 adds itself.
    """
    config, special = what.file.config.model, what.special
    target = piece_names(what.target_tokenizer, config.vocab)
    source = piece_names(what.tokenizer, config.vocab_read)
    if len(special.before_source) > 1 or special.after_source not in ((), (config.eos,)):
        raise RequestError(
            "model: expected at most one token before a source and <eos> after it, which is all that CTranslate2 adds"
        )
    is_separate = what.file.target_tokenizer is not None or config.vocab != config.vocab_read
    for name, content in convert(what.file, target, source if is_separate else None).items():
        (folder / name).write_bytes(content)
    path = folder / "config.json"
    settings = json.loads(path.read_bytes())
    settings |= {"add_source_bos": bool(special.before_source), "add_source_eos": bool(special.after_source)}
    if special.before_source:
        settings["bos_token"] = source[special.before_source[0]]
    path.write_bytes(json.dumps(settings, ensure_ascii=False, indent=2).encode())
    notes = write_tokenizers(what, folder)
    if special.before_target:
        prefix = " ".join(target[token] for token in special.before_target)
        notes.append(f"every target begins with {prefix}: give it to translate_batch as target_prefix")
    return notes


def write_tokenizers(what: Export, folder: Path) -> list[str]:
    """Write source.spm and target.spm, or tokenizer.json where SentencePiece cannot express a tokeniser."""
    notes = []
    sides = {"source": what.tokenizer, "target": what.target_tokenizer}
    for side, tokenizer in sides.items():
        try:
            (folder / f"{side}.spm").write_bytes(pieces_of(tokenizer))
        except RequestError:
            (folder / "tokenizer.json").write_bytes(tokenizer.rust.to_str().encode())
            notes.append(f"the {side} is tokenised by tokenizer.json")
    return notes


def pieces_of(tokenizer: Tokenizer) -> bytes:
    """Return the bytes of a SentencePiece model with the pieces of a tokeniser."""
    if isinstance(tokenizer, VocabularyTokenizer):
        if tokenizer.algorithm != "sentencepiece":
            raise RequestError(f"tokeniser: expected one of SentencePiece; got {tokenizer.algorithm!r}")
        return tokenizer.pieces.data
    return to_sentencepiece(tokenizer)


def piece_names(tokenizer: Tokenizer, size: int) -> list[str]:
    """Return a name for each id, as SentencePiece writes pieces; each is there once."""
    names = [token.replace(" ", SPACE) for token in tokenizer.tokens[:size]]
    names += [f"<unused {index}>" for index in range(len(names), size)]
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen or not name or "\n" in name:
            names[index] = f"<unused {index}>"
        seen.add(names[index])
    return names


def write_argos(what: Export, folder: Path) -> list[str]:
    """Write an Argos package for one direction, as LibreTranslate installs it."""
    source, target = what.languages
    name = f"translate-{source}_{target}-1_0"
    about = {
        "package_version": "1.0", "argos_version": "1.9.6", "from_code": source, "from_name": source,
        "to_code": target, "to_name": target,
    }  # fmt: skip
    vocabulary = piece_names(what.target_tokenizer, what.file.config.model.vocab)
    if len(what.special.before_target) > 1:
        raise RequestError("model: expected at most one token before a target, which is all that Argos packages have")
    if what.special.before_target:
        about["target_prefix"] = vocabulary[what.special.before_target[0]]
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary)
        write_ctranslate2(what, model)
        with zipfile.ZipFile(folder / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}/metadata.json", json.dumps(about, ensure_ascii=False, indent=2))
            archive.writestr(f"{name}/README.md", _readme(what))
            archive.writestr(f"{name}/sentencepiece.model", pieces_of(what.tokenizer))
            for path in sorted(model.iterdir()):
                if path.suffix != ".spm":
                    archive.write(path, f"{name}/model/{path.name}")
    notes = []
    if what.tokenizer.character_map:
        notes.append("traditional characters are read as simplified ones here, but not in the package")
    return notes


def _readme(what: Export) -> str:
    card = what.file.card
    lines = [f"# {what.languages[0]} → {what.languages[1]}", "Exported by Sixfold."]
    lines += [f"{key}: {card[key]}" for key in ("licence", "parent") if isinstance(card.get(key), str)]
    return "\n\n".join(lines) + "\n"


def _write_onnx(what: Export, folder: Path) -> list[str]:
    """Write the two graphs, the files of the tokenisers and the special tokens around a source."""
    write_onnx(what.file, folder)
    config = what.file.config.model
    about = {
        "languages": what.languages,
        **what.special._asdict(),
        "bos": config.bos,
        "eos": config.eos,
        "pad": config.pad,
    }
    (folder / "special_tokens.json").write_bytes(json.dumps(about).encode())
    return write_tokenizers(what, folder)


def _write_huggingface(what: Export, folder: Path) -> list[str]:
    if what.file.config.model.kind == "decoder":
        return write_decoder(what.file, folder)
    return write_huggingface(what.file, what.tokenizer, what.target_tokenizer, what.languages, pieces_of, folder)


FORMATS: Mapping[str, Callable[[Export, Path], list[str]]] = {
    "huggingface": _write_huggingface,
    "ctranslate2": write_ctranslate2,
    "argos": write_argos,
    "onnx": _write_onnx,
}
