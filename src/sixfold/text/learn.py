"""Learn a tokeniser from text; memory does not grow with the text."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from sixfold.config import TokenizerConfig
from sixfold.errors import ConfigError, DataError
from sixfold.text.chinese import simplified_forms
from sixfold.text.tokenizer import BYTES, SPECIALS, Tokenizer, is_surrogate, span_tokens

MAX_RUN_CHARACTERS = 256  # of one kind that are encoded together, so that an endless line cannot make encoding slow
MAX_LINE_CHARACTERS = 4096  # a longer line is learned from in parts
ALPHABET_COVERAGE = 0.9995  # share of all characters of the text that are in the alphabet; bytes spell the others
MIN_LEARNED_PIECES = 16


def piece_pattern(longest: int) -> str:
    """Return a regular expression whose matches are the runs that pieces are learned within.

    Han characters, other letters, single digits, punctuation and white space are separate runs. Spaces belong to the
    word, digit or sign after them, but never to a Han character: 北京 is the same piece at the start of a text and
    inside. Since no piece of a vocabulary crosses the end of a run, an encoder without runs, such as SentencePiece's,
    finds the same pieces. A run has at most `longest` characters.
    """
    run = f"{{1,{longest}}}"
    kinds = (
        rf"\p{{Han}}{run}", rf" {{0,64}}[\p{{L}}\p{{M}}&&[^\p{{Han}}]]{run}", r" {0,64}\p{N}",
        rf" {{0,64}}[^\s\p{{L}}\p{{M}}\p{{N}}]{run}", " {1,64}", r"[^\S ]{1,64}",
    )  # fmt: skip
    return "|".join(kinds)


def train_tokenizer(lines: Iterable[str], config: TokenizerConfig, progress: bool = False) -> Tokenizer:
    """Learn pieces from lines.

    The ids are, in this order: the special tokens, the tags, 256 bytes, the span tokens, and the learned pieces.
    """
    spans = span_tokens(config.spans)
    reserved = [*SPECIALS, *(f"<{tag}>" for tag in config.tags), *BYTES, *spans]
    learnable = config.vocab - len(reserved)
    if learnable < MIN_LEARNED_PIECES:
        raise ConfigError(
            f"tokenizer.vocab: expected at least {len(reserved) + MIN_LEARNED_PIECES} "
            f"({len(reserved)} ids are reserved for special tokens, tags, bytes and spans); got {config.vocab}"
        )
    sample, characters = sample_lines(lines, config.sample_lines, config.seed)
    forms = simplified_forms(characters) if config.simplify else {}
    if forms:
        table = {ord(char): form for char, form in forms.items()}
        sample = [line.translate(table) for line in sample]
        for char in forms.keys() & characters.keys():
            characters[forms[char]] += characters.pop(char)
    for char in spans:  # no piece is learned with a span token in it
        characters.pop(char, None)
    alphabet = choose_alphabet(characters, learnable // 2)
    if not alphabet:
        raise DataError("tokenizer: expected text to learn from; got none")
    rust = tokenizers.Tokenizer(MODELS[config.algorithm]({}))
    rust.normalizer = normalizers.Replace(Regex(r"\A(?=[\s\S])"), " ")
    rust.pre_tokenizer = pieces = pre_tokenizers.Split(Regex(piece_pattern(MAX_RUN_CHARACTERS)), "isolated")
    if (
        config.algorithm == "wordpiece"
    ):  # its trainer has no limit for the length of a piece, so the words are cut before
        shorter = Regex(piece_pattern(max(1, config.max_piece - 1)).replace("{0,64}", "?"))
        rust.pre_tokenizer = pre_tokenizers.Split(shorter, "isolated")
    trainer = TRAINERS[config.algorithm](config, reserved, progress)
    rust.train_from_iterator(split_at_unknown(sample, alphabet), trainer, length=len(sample))
    learned = json.loads(rust.to_str())["model"]
    # The trainer marks reserved ids as added tokens, which the encoder would recognise in a text. The model is rebuilt
    # without them, so that the text "<eos>" is encoded as these five characters.
    final = tokenizers.Tokenizer(MODELS[config.algorithm](learned))
    final.normalizer = rust.normalizer
    final.pre_tokenizer = pieces
    if config.algorithm != "bpe":
        # The vocabulary may lack characters of the alphabet that the sample does not have.
        final.pre_tokenizer = isolate_unknown((alphabet | set(spans)) & final.get_vocab().keys(), pieces)
    final.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    vocab = final.get_vocab()
    pairs = [pair for pair in forms.items() if pair[1] in vocab]
    character_map = "".join(char for char, _ in pairs), "".join(form for _, form in pairs)
    tokenizer = Tokenizer(final, config.algorithm, config.tags, character_map, config.spans)
    # Through JSON once, so that a new tokeniser equals a loaded one to the last digit.
    return Tokenizer.from_json(tokenizer.to_json())


def sample_lines(lines: Iterable[str], size: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Return a uniform sample of at most `size` lines (reservoir sampling), and the count of each character in all."""
    generator = random.Random(seed)
    sample: list[str] = []
    characters: Counter[str] = Counter()
    # Long lines are cut, so that the size of the sample is bounded too.
    parts = (
        line[first : first + MAX_LINE_CHARACTERS]
        for line in lines
        for first in range(0, len(line), MAX_LINE_CHARACTERS)
    )
    for number, line in enumerate(parts):
        characters.update(line)
        if len(sample) < size:
            sample.append(line)
        else:
            slot = generator.randrange(number + 1)
            if slot < size:
                sample[slot] = line
    return sample, characters


def choose_alphabet(characters: Counter[str], limit: int) -> set[str]:
    """Return the most frequent characters, until they cover ALPHABET_COVERAGE of the text or are `limit`."""
    total = sum(characters.values())
    alphabet: set[str] = set()
    covered = 0
    # Ties are broken by code point, because the order of a Counter depends on the order of the text.
    for char, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if len(alphabet) >= limit or covered >= ALPHABET_COVERAGE * total:
            break
        covered += count
        if not is_surrogate(char):
            alphabet.add(char)
    return alphabet | {" "} if alphabet else alphabet


def split_at_unknown(lines: Iterable[str], alphabet: set[str]) -> Iterator[str]:
    """Yield the runs of characters of an alphabet, so that a trainer learns no piece with another character."""
    for line in lines:
        if alphabet.issuperset(line):
            yield line
        else:
            marked = "".join(char if char in alphabet else "\n" for char in line)
            yield from filter(None, marked.split("\n"))


def isolate_unknown(alphabet: set[str], pieces: pre_tokenizers.PreTokenizer) -> pre_tokenizers.PreTokenizer:
    """Return a pre-tokeniser that makes each character outside the alphabet a word of its own.

    Without it, WordPiece would replace the whole word by <unk>, and unigram would report one offset for a run of such
    characters.
    """
    members = "".join(f"\\x{{{ord(char):x}}}" for char in sorted(alphabet))
    unknown = pre_tokenizers.Split(Regex(f"[^{members}]"), "isolated")
    return pre_tokenizers.Sequence([unknown, pieces])


def _bpe(learned: dict[str, Any]) -> models.Model:
    vocab = learned.get("vocab", {})
    return models.BPE(vocab, merges_of(vocab) if learned.get("merges") else [], byte_fallback=True)


def merges_of(vocab: dict[str, int]) -> list[tuple[str, str]]:
    """Return every pair of pieces that makes another piece, in the order in which those were learned.

    The trainer records one pair for each piece. With all pairs, the pieces of a text follow from the order of the
    vocabulary alone, as in SentencePiece, so that the vocabulary can be exported to it.
    """
    first_learned = 1 + vocab[BYTES[-1]]
    learned = sorted((index, piece) for piece, index in vocab.items() if index >= first_learned)
    cuts = ((piece[:cut], piece[cut:]) for _, piece in learned for cut in range(1, len(piece)))
    return [(left, right) for left, right in cuts if left in vocab and right in vocab]


def _wordpiece(learned: dict[str, Any]) -> models.Model:
    return models.WordPiece(
        learned.get("vocab", {}), unk_token="<unk>", continuing_subword_prefix="", max_input_chars_per_word=80
    )


def _unigram(learned: dict[str, Any]) -> models.Model:
    if not learned:
        return models.Unigram()
    # Ids must not depend on the order of the trainer's hash tables: it gives each character that it must keep but did
    # not learn a score a little below the one before. They all get the lowest score of a learned piece.
    pieces = [(piece, round(score, 6)) for piece, score in learned["vocab"]]
    first = 1 + max(index for index, (piece, _) in enumerate(pieces) if piece == BYTES[-1])
    floor = min((score for piece, score in pieces[first:] if len(piece) > 1), default=-20.0)
    scored = [(piece, max(score, floor)) for piece, score in pieces[first:]]
    vocab = pieces[:first] + sorted(scored, key=lambda item: (-item[1], item[0]))
    return models.Unigram(vocab, unk_id=SPECIALS.index("<unk>"), byte_fallback=True)


def _bpe_trainer(config: TokenizerConfig, reserved: list[str], progress: bool) -> trainers.Trainer:
    return trainers.BpeTrainer(
        vocab_size=config.vocab, special_tokens=reserved, show_progress=progress, max_token_length=config.max_piece
    )


def _wordpiece_trainer(config: TokenizerConfig, reserved: list[str], progress: bool) -> trainers.Trainer:
    return trainers.WordPieceTrainer(
        vocab_size=config.vocab, special_tokens=reserved, show_progress=progress, continuing_subword_prefix=""
    )


def _unigram_trainer(config: TokenizerConfig, reserved: list[str], progress: bool) -> trainers.Trainer:
    return trainers.UnigramTrainer(
        vocab_size=config.vocab,
        special_tokens=reserved,
        unk_token="<unk>",
        show_progress=progress,
        max_piece_length=config.max_piece,
    )


MODELS = {"bpe": _bpe, "wordpiece": _wordpiece, "unigram": _unigram}
TRAINERS = {"bpe": _bpe_trainer, "wordpiece": _wordpiece_trainer, "unigram": _unigram_trainer}
