"""Learn a tokeniser from the user's own text, in memory that does not grow with the text."""

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
from sixfold.text.simplify import simplified_forms
from sixfold.text.tokenizer import BYTES, SPECIALS, Tokenizer, is_surrogate, span_tokens

LONGEST_RUN = 256  # characters of one kind that are merged together, so that one endless line cannot make encoding slow
LONGEST = 4096  # characters of a line that are learned from as one
COVERAGE = 0.9995  # share of all characters that the alphabet keeps; the rest is spelt in bytes


def piece_pattern(longest: int) -> str:
    """Borders that no piece crosses, as a regular expression that matches what lies between two of them.

    Han characters, other letters, single digits, punctuation and white space are kept apart. Spaces belong to the word,
    digit or sign behind them, but never to a Han character: 北京 is the same piece at the start of a text and inside.
    Since no piece of a vocabulary crosses a border, an encoder without borders, such as SentencePiece's, finds the
    same pieces; only a run longer than `longest` is cut.
    """
    run = f"{{1,{longest}}}"
    kinds = (
        rf"\p{{Han}}{run}", rf" {{0,64}}[\p{{L}}\p{{M}}&&[^\p{{Han}}]]{run}", r" {0,64}\p{N}",
        rf" {{0,64}}[^\s\p{{L}}\p{{M}}\p{{N}}]{run}", " {1,64}", r"[^\S ]{1,64}",
    )  # fmt: skip
    return "|".join(kinds)


def train_tokenizer(lines: Iterable[str], config: TokenizerConfig, progress: bool = False) -> Tokenizer:
    """Learn pieces from lines. Ids: the special tokens, the tags, 256 bytes, the span tokens, then what was learned."""
    spans = span_tokens(config.spans)
    reserved = [*SPECIALS, *(f"<{tag}>" for tag in config.tags), *BYTES, *spans]
    room = config.vocab - len(reserved)
    if room < 16:
        raise ConfigError(
            f"tokenizer.vocab: expected at least {len(reserved) + 16} "
            f"({len(reserved)} ids are reserved for special tokens, tags, bytes and spans); got {config.vocab}"
        )
    sample, characters = draw(lines, config.sample_lines, config.seed)
    forms = simplified_forms(characters) if config.simplify else {}
    if forms:
        table = {ord(one): other for one, other in forms.items()}
        sample = [line.translate(table) for line in sample]
        for one in forms.keys() & characters.keys():
            characters[forms[one]] += characters.pop(one)
    for char in spans:  # no piece is learned with a span token in it
        characters.pop(char, None)
    alphabet = choose_alphabet(characters, room // 2)
    if not alphabet:
        raise DataError("tokenizer: expected text to learn from; got none")
    rust = tokenizers.Tokenizer(MODELS[config.algorithm]({}))
    rust.normalizer = normalizers.Replace(Regex(r"\A(?=[\s\S])"), " ")
    rust.pre_tokenizer = pieces = pre_tokenizers.Split(Regex(piece_pattern(LONGEST_RUN)), "isolated")
    if config.algorithm == "wordpiece":  # its trainer knows no longest piece, so that it must not see longer words
        shorter = Regex(piece_pattern(max(1, config.max_piece - 1)).replace("{0,64}", "?"))
        rust.pre_tokenizer = pre_tokenizers.Split(shorter, "isolated")
    trainer = TRAINERS[config.algorithm](config, reserved, progress)
    rust.train_from_iterator(within(sample, alphabet), trainer, length=len(sample))
    learned = json.loads(rust.to_str())["model"]
    # The trainer marks reserved ids as added tokens, which would be found in running text. The model is built anew
    # without them, so that a user who writes "<eos>" gets these five characters.
    final = tokenizers.Tokenizer(MODELS[config.algorithm](learned))
    final.normalizer = rust.normalizer
    final.pre_tokenizer = pieces
    if config.algorithm != "bpe":
        # The sample need not hold every character of the alphabet.
        final.pre_tokenizer = isolate_unknown((alphabet | set(spans)) & final.get_vocab().keys(), pieces)
    final.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    # Through JSON once, so that a fresh tokeniser is to the last digit the one that will be loaded.
    known = final.get_vocab()
    pairs = [pair for pair in forms.items() if pair[1] in known]
    fold = "".join(one for one, _ in pairs), "".join(other for _, other in pairs)
    return Tokenizer.from_json(Tokenizer(final, config.algorithm, config.tags, fold, config.spans).to_json())


def draw(lines: Iterable[str], size: int, seed: int) -> tuple[list[str], Counter[str]]:
    """An even sample of at most `size` lines (reservoir sampling), and how often each character occurs in them all."""
    pick = random.Random(seed)
    kept: list[str] = []
    characters: Counter[str] = Counter()
    # A line without end is cut, so that the sample is bounded in bytes too.
    short = (line[first : first + LONGEST] for line in lines for first in range(0, len(line), LONGEST))
    for number, line in enumerate(short):
        characters.update(line)
        if len(kept) < size:
            kept.append(line)
        else:
            slot = pick.randrange(number + 1)
            if slot < size:
                kept[slot] = line
    return kept, characters


def choose_alphabet(characters: Counter[str], limit: int) -> set[str]:
    """The most frequent characters until COVERAGE is reached or `limit` are chosen."""
    total = sum(characters.values())
    chosen: set[str] = set()
    seen = 0
    # Ties are broken by code point: the order of a Counter depends on the order of the text.
    for char, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if len(chosen) >= limit or seen >= COVERAGE * total:
            break
        seen += count
        if not is_surrogate(char):
            chosen.add(char)
    return chosen | {" "} if chosen else chosen


def within(lines: Iterable[str], alphabet: set[str]) -> Iterator[str]:
    """The runs of known characters, so that a trainer never sees one that the vocabulary has no room for."""
    for line in lines:
        if alphabet.issuperset(line):
            yield line
        else:
            known = "".join(char if char in alphabet else "\n" for char in line)
            yield from filter(None, known.split("\n"))


def isolate_unknown(alphabet: set[str], pieces: pre_tokenizers.PreTokenizer) -> pre_tokenizers.PreTokenizer:
    """A character outside the alphabet stands alone.

    WordPiece would give up its whole word, and unigram would report one offset for a run of such characters.
    """
    members = "".join(f"\\x{{{ord(char):x}}}" for char in sorted(alphabet))
    unknown = pre_tokenizers.Split(Regex(f"[^{members}]"), "isolated")
    return pre_tokenizers.Sequence([unknown, pieces])


def _bpe(learned: dict[str, Any]) -> models.Model:
    vocab = learned.get("vocab", {})
    return models.BPE(vocab, merges_of(vocab) if learned.get("merges") else [], byte_fallback=True)


def merges_of(vocab: dict[str, int]) -> list[tuple[str, str]]:
    """Every way to make a piece from two others, the piece that was learned first before all others.

    The trainer notes one pair for each piece. With all of them the pieces of a text follow from the order of the
    vocabulary alone, as in SentencePiece, so that a vocabulary can be exported to it.
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
    # Ids must not depend on the order of the trainer's hash tables: it gives each character that it did not choose,
    # but must keep, a score a little under the one before. They all get the lowest score that was earned.
    pieces = [(piece, round(score, 6)) for piece, score in learned["vocab"]]
    first = 1 + max(index for index, (piece, _) in enumerate(pieces) if piece == BYTES[-1])
    floor = min((score for piece, score in pieces[first:] if len(piece) > 1), default=-20.0)
    earned = [(piece, max(score, floor)) for piece, score in pieces[first:]]
    vocab = pieces[:first] + sorted(earned, key=lambda item: (-item[1], item[0]))
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
