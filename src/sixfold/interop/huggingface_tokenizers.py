"""Tokenisers of Hugging Face folders that translate, and where their models expect the tokens of languages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sixfold.config import ModelConfig
from sixfold.errors import ModelFileError, RequestError
from sixfold.text.foreign_codes import code_of, language_tokens
from sixfold.text.language_codes import matching_codes
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.sequence_format import SOURCE, TARGET, SequenceFormat
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

ROLE_TOKENS = {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
# The languages of M2M100 in the order of their ids, which follow those of vocab.json. Its folders do not list them.
M2M100_LANGUAGES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}
# The languages of NLLB and of mBART come from tokenizer.json; folders of before it was used have the pieces alone.
FAIRSEQ_PIECES = "sentencepiece.bpe.model"


@dataclass(frozen=True)
class TextParts:
    """What a model needs to translate texts: its tokenisers, its languages and the format of its sequences."""

    tokenizer: Tokenizer | None = None
    target_tokenizer: Tokenizer | None = None
    sequence_format: SequenceFormat | None = None
    languages: Mapping[str, Any] | None = None  # the entry of the card


@dataclass(frozen=True)
class ChosenLanguages:
    """The languages that a user names at import: of a model of many, those to keep; of others, what they are called."""

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()

    def narrow(self, available: Sequence[str], side: Sequence[str], option: str) -> list[str]:
        """Return the chosen ones of the available languages, or all of them if none is chosen."""
        kept = []
        for code in side:
            fitting = matching_codes(code_of(code), available)
            if not fitting:
                raise RequestError(f"{option}: expected languages of the model ({', '.join(available)}); got {code!r}")
            kept.append(fitting[0])
        return kept or list(available)


def read_text_parts(
    folder: Path, settings: Mapping[str, Any], config: ModelConfig, chosen: ChosenLanguages
) -> tuple[TextParts, ModelConfig]:
    """Return the tokenisers, languages and sequence format of a folder, and the config with the ids that they name."""
    kind = settings["model_type"]
    if kind == "marian" and (folder / "source.spm").exists():
        return _marian(folder, config, chosen)
    if kind in ("m2m_100", "mbart"):
        names = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
        if (folder / "vocab.json").exists() and (folder / FAIRSEQ_PIECES).exists():
            return _m2m100(folder, names, config, chosen)
        if (folder / "tokenizer.json").exists() or (folder / FAIRSEQ_PIECES).exists():
            return _fairseq(folder, names, settings, config, chosen)
    path = folder / "tokenizer.json"
    return TextParts(Tokenizer.load(path) if path.exists() else None), config


def _marian(folder: Path, config: ModelConfig, chosen: ChosenLanguages) -> tuple[TextParts, ModelConfig]:
    """Read source.spm, target.spm, vocab.json and target_vocab.json.

    A model of several target languages reads a token such as >>fra<< before each source.
    """
    vocab = read_vocab(folder / "vocab.json", config.vocab_read)
    target_vocab = vocab if config.vocab_read == config.vocab and not (folder / "target_vocab.json").exists() else (
        read_vocab(folder / "target_vocab.json", config.vocab)
    )  # fmt: skip
    source, target = (
        vocabulary_tokenizer(folder / f"{side}.spm", tokens)
        for side, tokens in (("source", vocab), ("target", target_vocab))
    )
    names = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    languages = {code: token for code, token in language_tokens(vocab).items() if token.startswith(">>")}
    ids = {code: source.ids[token] for code, token in languages.items()}
    card = _pair(names.get("source_lang"), names.get("target_lang"), chosen)
    if languages:
        targets = chosen.narrow(list(languages), chosen.target, "--to")
        card = {"source": card["source"], "target": targets[0] if len(targets) == 1 else targets}
        if len(targets) > 1 and not isinstance(card["source"], list):
            card["target"] = [code for code in targets if code != card["source"]]
    layout = SequenceFormat((TARGET,) if languages else (), (config.eos,), (), ids)
    same = source.to_json() == target.to_json()
    return TextParts(source, None if same else target, layout, card), replace(config, unk=target.specials["unk"])


def _pair(source: object, target: object, chosen: ChosenLanguages) -> dict[str, Any]:
    """Return the languages of a model of one direction: as the user calls them, or else as its files do."""
    sides = {}
    for side, named, own in (("source", chosen.source, source), ("target", chosen.target, target)):
        if named:
            sides[side] = named[0] if len(named) == 1 else list(named)
        elif isinstance(own, str) and own:
            sides[side] = code_of(own)
    return {"source": sides.get("source", ""), "target": sides.get("target", "")}


def _m2m100(
    folder: Path, names: Mapping[str, Any], config: ModelConfig, chosen: ChosenLanguages
) -> tuple[TextParts, ModelConfig]:
    """Read vocab.json and the pieces of M2M100. Its languages have the ids after those of vocab.json."""
    tokens = read_vocab(folder / "vocab.json", config.vocab)
    codes = names.get("language_codes", "m2m100")
    if codes not in M2M100_LANGUAGES:
        raise ModelFileError(
            f"{folder}: tokenizer_config.json: language_codes: expected {' or '.join(M2M100_LANGUAGES)}; got {codes!r}"
        )
    tokens += [f"__{code}__" for code in M2M100_LANGUAGES[codes].split()]
    if len(tokens) > config.vocab:
        raise ModelFileError(
            f"{folder}: expected a vocab_size of {len(tokens)} for vocab.json and its languages; got {config.vocab}"
        )
    languages = language_tokens(tokens)
    unused = unused_tokens(len(tokens), config.vocab)
    tokenizer = vocabulary_tokenizer(folder / FAIRSEQ_PIECES, [*tokens, *unused], [*languages.values(), *unused])
    ids = {code: tokenizer.ids[token] for code, token in languages.items()}
    layout = SequenceFormat((SOURCE,), (config.eos,), (TARGET,), ids)
    return TextParts(tokenizer, None, layout, _many(list(languages), chosen)), config


def _fairseq(
    folder: Path, names: Mapping[str, Any], settings: Mapping[str, Any], config: ModelConfig, chosen: ChosenLanguages
) -> tuple[TextParts, ModelConfig]:
    """Read the tokeniser of NLLB or mBART: tokenizer.json, or the pieces alone in the order of fairseq.

    NLLB and mBART-50 have the language before a text; the first mBART has it after a source, and begins targets with
    it in the place of <bos>.
    """
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
    else:
        tokenizer = _fairseq_pieces(folder / FAIRSEQ_PIECES, names, config)
    languages = language_tokens(tokenizer.tokens)
    if not languages:
        raise ModelFileError(f"{folder}: expected tokens of languages, such as eng_Latn or en_XX; found none")
    token_ids = {token: index for index, token in enumerate(tokenizer.tokens)}
    ids = {code: token_ids[token] for code, token in languages.items()}
    kind = str(names.get("tokenizer_class", ""))
    specials = tokenizer.specials
    if "unk" in specials and specials["unk"] < config.vocab:
        config = replace(config, unk=specials["unk"])
    if settings["model_type"] == "mbart" and not kind.startswith("MBart50"):
        return _first_mbart(folder, tokenizer, ids, config, chosen)
    layout = SequenceFormat((SOURCE,), (config.eos,), (TARGET,), ids)
    if names.get("legacy_behaviour"):
        layout = replace(layout, before_source=(), after_source=(config.eos, SOURCE))
    return TextParts(tokenizer, None, layout, _many(list(ids), chosen)), config


def _first_mbart(
    folder: Path, tokenizer: Tokenizer, ids: Mapping[str, int], config: ModelConfig, chosen: ChosenLanguages
) -> tuple[TextParts, ModelConfig]:
    targets = [code for code, token in ids.items() if token == config.bos]
    if chosen.target:
        targets = chosen.narrow(list(ids), chosen.target, "--to")
    if len(targets) != 1:
        raise ModelFileError(
            f"{folder}: expected a decoder_start_token_id that is a language, because this mBART begins with it",
            "name one target language with --to",
        )
    sources = [code for code in chosen.narrow(list(ids), chosen.source, "--from") if code != targets[0]]
    layout = SequenceFormat((), (config.eos, SOURCE), (), ids)
    card = {"source": sources, "target": targets}
    return TextParts(tokenizer, None, layout, card), replace(config, bos=ids[targets[0]])


def _fairseq_pieces(path: Path, names: Mapping[str, Any], config: ModelConfig) -> VocabularyTokenizer:
    """Return the tokeniser of an old folder: <s> <pad> </s> <unk>, the pieces, the languages, and <mask>."""
    model = read_pieces(path)
    listed = [*names.get("additional_special_tokens", ()), *names.get("extra_special_tokens", ())]
    special = path.parent / "special_tokens_map.json"
    if special.exists():
        listed += read_json(special).get("additional_special_tokens", [])
    languages = dict.fromkeys(token for token in listed if isinstance(token, str) and language_tokens([token]))
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *model.pieces[3:], *languages, "<mask>"]
    return make_tokenizer("sentencepiece", model, tokens[: config.vocab], languages)


def _many(languages: Sequence[str], chosen: ChosenLanguages) -> dict[str, Any]:
    return {
        "source": chosen.narrow(languages, chosen.source, "--from"),
        "target": chosen.narrow(languages, chosen.target, "--to"),
    }


def vocabulary_tokenizer(path: Path, tokens: Sequence[str], reserved: Iterable[str] = ()) -> VocabularyTokenizer:
    """Return a tokeniser of the pieces in a file and of a list of tokens; `reserved` are tokens that are no text."""
    return make_tokenizer("sentencepiece", read_pieces(path), tokens, reserved)


def make_tokenizer(
    algorithm: str, model: Any, tokens: Sequence[str], reserved: Iterable[str] = ()
) -> VocabularyTokenizer:
    """Return a tokeniser whose special tokens have their usual names; tokens of languages are no text."""
    ids = {token: index for index, token in reversed(list(enumerate(tokens)))}
    specials = {role: ids[token] for role, token in ROLE_TOKENS.items() if token in ids}
    if "unk" not in specials:
        raise ModelFileError("vocabulary: expected <unk> among its tokens; found none")
    marked = [ids[token] for token in language_tokens(ids).values()]
    return VocabularyTokenizer(algorithm, model, tokens, specials, [*marked, *(ids[token] for token in reserved)])


def read_pieces(path: Path) -> SentencePieceModel:
    """Read a SentencePiece model."""
    try:
        return SentencePieceModel(path.read_bytes(), str(path))
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None


def read_vocab(path: Path, size: int) -> list[str]:
    """Return the tokens of a vocab.json, which has the id of each, in the order of the ids.

    Ids without a token get a name that no text has.
    """
    table = read_json(path)
    faults = [token for token, index in table.items() if type(index) is not int or not 0 <= index < size]
    if faults or not table:
        raise ModelFileError(
            f"{path}: expected tokens with ids from 0 to {size - 1} (vocab_size); got {len(faults)} others of "
            f"{len(table)}: {', '.join(faults[:3])}"
        )
    tokens = unused_tokens(0, max(table.values()) + 1)
    for token, index in table.items():
        tokens[index] = token
    return tokens


def unused_tokens(start: int, end: int) -> list[str]:
    """Return names for ids that have no token: published models round their tables up."""
    return [f"<unused {index}>" for index in range(start, end)]


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}", "give a folder that save_pretrained wrote") from None
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path}: not valid JSON") from None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path}: expected a JSON object; got {type(content).__name__}")
    return content
