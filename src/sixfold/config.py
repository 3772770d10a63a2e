"""Every setting: frozen dataclasses that check themselves, read from TOML and changed by dotted overrides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from sixfold.errors import ConfigError
from sixfold.settings import assign, check_types, did_you_mean, merge, read_toml, require, section_from, toml_value

Kind = Literal["encoder-decoder", "encoder", "decoder"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
Layout = Literal["interleaved", "halves"]
Norm = Literal["layer", "rms"]
NormPosition = Literal["post", "pre"]
FeedForward = Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu"]
Compatibility = Literal["scaled-dot", "cosine", "additive"]
Algorithm = Literal["bpe", "wordpiece", "unigram"]
Schedule = Literal["noam", "inverse-sqrt", "cosine", "constant"]
Precision = Literal["auto", "bf16", "float32"]
Switch = Literal["auto", "on", "off"]
Score = Literal["auto", "bleu", "chrf", "loss"]
Compute = Literal["int8", "float32", "float16", "bfloat16"]
LARGEST_BEAM = 1000  # a search takes memory for each hypothesis and each word of the vocabulary
Filter = Literal["empty", "encoding", "control", "markup", "long", "ratio", "script", "copied", "duplicate"]


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a Transformer. The defaults are the paper's base model."""

    kind: Kind = "encoder-decoder"
    vocab: int = 32000
    d_model: int = 512
    heads: int = 8
    kv_heads: int = 0  # 0: as many as heads; fewer: grouped-query attention
    d_ff: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    share_layers: bool = False  # one layer's weights serve the whole stack (ALBERT)

    positions: Positions = "sinusoidal"
    position_layout: Layout = "interleaved"  # which features make a (sin, cos) or a rotary pair
    position_offset: int = 0  # number of the first position
    rotary_base: float = 10000.0
    max_length: int = 512  # rows of a learned table; longest sequence a cache is made for

    compatibility: Compatibility = "scaled-dot"
    feed_forward: FeedForward = "relu"
    bias: bool = True  # in attention and feed-forward
    norm: Norm = "layer"
    norm_position: NormPosition = "post"
    norm_eps: float = 1e-5
    final_norm: bool = False  # a post-norm stack ends in one more norm; a pre-norm stack always does
    dropout: float = 0.1

    scale_embeddings: bool = True  # by sqrt(d_model)
    share_embeddings: bool = True  # one table for source and target
    embedding_norm: bool = False
    token_types: int = 0  # segments, as in BERT
    tie_output: bool = True  # the output projection is the target embedding
    output_bias: bool = False
    output_transform: bool = False  # dense, activation and norm before the projection, as in BERT

    pad: int = 0
    bos: int = 1
    eos: int = 2
    unk: int = 3

    def __post_init__(self) -> None:
        check_types(self, "model")
        for name in ("vocab", "d_model", "heads", "d_ff", "max_length"):
            require(1 <= getattr(self, name) <= 10**7, f"model.{name}", "1 to 10 million", getattr(self, name))
        for name in ("kv_heads", "position_offset", "token_types"):
            require(getattr(self, name) >= 0, f"model.{name}", "0 or more", getattr(self, name))
        for name in self.stacks:
            layers = getattr(self, f"{name}_layers")
            require(1 <= layers <= 1000, f"model.{name}_layers", "1 to 1000", layers)
        require(self.d_model % self.heads == 0, "model.heads", f"a divisor of d_model = {self.d_model}", self.heads)
        require(self.heads % self.groups == 0, "model.kv_heads", f"a divisor of heads = {self.heads}", self.groups)
        if self.positions == "rotary":
            require(self.d_head % 2 == 0, "model.heads", "an even d_model / heads for rotary positions", self.d_head)
        if self.positions == "sinusoidal":
            require(self.d_model % 2 == 0, "model.d_model", "an even width for sinusoids", self.d_model)
        require(0 <= self.dropout < 1, "model.dropout", "from 0 to below 1", self.dropout)
        require(self.norm_eps > 0, "model.norm_eps", "above 0", self.norm_eps)
        require(self.rotary_base > 1, "model.rotary_base", "above 1", self.rotary_base)
        for name in ("pad", "bos", "eos", "unk"):
            require(
                0 <= getattr(self, name) < self.vocab, f"model.{name}", "an id in the vocabulary", getattr(self, name)
            )

    @property
    def d_head(self) -> int:
        return self.d_model // self.heads

    @property
    def groups(self) -> int:
        """How many heads have keys and values of their own."""
        return self.kv_heads or self.heads

    @property
    def ends_in_norm(self) -> bool:
        return self.norm_position == "pre" or self.final_norm

    @property
    def stacks(self) -> tuple[str, ...]:
        return {"encoder-decoder": ("encoder", "decoder"), "encoder": ("encoder",), "decoder": ("decoder",)}[self.kind]


def check_tag(tag: str, where: str) -> None:
    """It is written <tag>, beside the special tokens."""
    fine = tag[:1].isalpha() and all(char.isalnum() or char in "-_" for char in tag)
    require(fine, where, "a letter, then letters, digits, - and _", tag)
    require(tag not in ("pad", "bos", "eos", "unk", "mask"), where, "a name that no special token has", tag)


@dataclass(frozen=True)
class TokenizerConfig:
    """How the user's text becomes subwords."""

    algorithm: Algorithm = "bpe"
    vocab: int = 32000
    tags: tuple[str, ...] = ()  # reserved ids, besides those that the corpora ask for
    spans: int = 0  # tokens for placeholders that a model copies, and as many for opening and for closing tags
    simplify: bool = False  # read traditional Chinese as simplified and full-width letters and digits as plain ones
    max_piece: int = 16  # longest learned piece, in characters
    sample_lines: int = 500_000  # lines kept in memory while learning, drawn evenly from the whole text
    seed: int = 1

    def __post_init__(self) -> None:
        check_types(self, "tokenizer")
        for name in ("max_piece", "sample_lines"):
            require(getattr(self, name) >= 1, f"tokenizer.{name}", "at least 1", getattr(self, name))
        require(1 <= self.vocab <= 10**7, "tokenizer.vocab", "1 to 10 million", self.vocab)
        require(0 <= self.spans <= 1000, "tokenizer.spans", "0 to 1000", self.spans)
        for tag in self.tags:
            check_tag(tag, "tokenizer.tags")
        require(len(set(self.tags)) == len(self.tags), "tokenizer.tags", "no tag twice", list(self.tags))


@dataclass(frozen=True)
class DataConfig:
    """Which pairs are learned from."""

    source: str = ""  # language codes such as zh; empty: from the names of the files, else from their script
    target: str = ""
    both_ways: bool = False  # learn each pair in both directions; a tag before the source names the target
    skip: tuple[str, ...] = ()  # filters to leave off
    max_characters: int = 1000  # of either side; a longer pair is dropped
    max_ratio: float = 4.0  # of the lengths of the two sides, a Han character counting as three letters
    max_tokens: int = 250  # of either side, after tokenising
    dev_pairs: int = 1000  # split off where no dev set is given; never more than a twentieth of the corpus

    def __post_init__(self) -> None:
        check_types(self, "data")
        for name in self.skip:
            known = get_args(Filter)
            if name not in known:
                expected = ", ".join(known)
                raise ConfigError(
                    f"data.skip: expected names of filters ({expected}); got {name!r}", did_you_mean(name, known)
                )
        for name in ("max_characters", "max_tokens", "dev_pairs"):
            require(1 <= getattr(self, name) <= 10**6, f"data.{name}", "1 to a million", getattr(self, name))
        require(self.max_ratio > 1, "data.max_ratio", "above 1", self.max_ratio)


@dataclass(frozen=True)
class TrainingConfig:
    """How the weights are learned. A 0 that "is chosen" is filled in from the corpus and the device before step 1."""

    steps: int = 0  # 0: chosen from the size of the corpus
    learning_rate: float = 1e-3  # the peak; for noam, the factor before d_model ** -0.5
    schedule: Schedule = "inverse-sqrt"
    warmup: int = 0  # steps; 0: chosen
    label_smoothing: float = 0.1
    clip: float = 1.0  # largest gradient norm; 0: none
    beta2: float = 0.98
    weight_decay: float = 0.0  # of matrices; norms, biases and tables of embeddings and positions do not decay
    ema: float = 0.999  # decay of the averaged weights that are validated and kept; 0: none
    rdrop: float = 0.0  # weight of the divergence between two passes with different dropout; 0: one pass
    subword_sampling: float = 0.0  # how often a piece is cut in two
    lora: int = 0  # of a model that is fine-tuned: rank of what is learnt beside each matrix; 0: the matrices learn

    batch_tokens: int = 0  # padded tokens of the longer side in one step, all micro-batches and ranks; 0: chosen
    micro_tokens: int = 0  # so many at once, and as often as fills a step; 0: what a trial step shows to fit
    precision: Precision = "auto"  # bf16 where the GPU has it, else float32; float32 rules out TF32 as well
    packing: Switch = "auto"  # several pairs in each row of a batch, on GPUs: one shape for all batches, no padding
    compile: Switch = "auto"  # packed batches, when the run is long enough to win the time back
    sharded: bool = False  # of several processes, each holds a part of every weight: for models that fit no GPU whole
    recompute: bool = False  # activations anew in the backward pass instead of kept: less memory, a third slower

    validate_every: int = 0  # steps; 0: chosen
    checkpoint_every: int = 0  # steps; 0: as often as it is validated
    keep: int = 3  # last checkpoints
    patience: int = 8  # validations without a better score before it stops; 0: it never stops early
    score: Score = "auto"  # what the kept model is best at; auto: BLEU from 10 on, the loss below, where BLEU is noise
    seed: int = 1

    def __post_init__(self) -> None:
        check_types(self, "training")
        for name in ("steps", "warmup", "batch_tokens", "micro_tokens", "validate_every", "checkpoint_every"):
            require(0 <= getattr(self, name) <= 10**12, f"training.{name}", "0 or more", getattr(self, name))
        require(0 <= self.lora <= 4096, "training.lora", "0 to 4096", self.lora)
        require(not (self.lora and self.sharded), "training.lora", "0 where training.sharded is on", self.lora)
        require(self.keep >= 1, "training.keep", "at least 1", self.keep)
        require(0 <= self.seed < 2**32, "training.seed", "0 to 2**32 - 1", self.seed)
        require(self.learning_rate > 0, "training.learning_rate", "above 0", self.learning_rate)
        for name in ("label_smoothing", "beta2", "ema", "subword_sampling"):
            require(0 <= getattr(self, name) < 1, f"training.{name}", "from 0 to below 1", getattr(self, name))
        for name in ("clip", "weight_decay", "rdrop", "patience"):
            require(getattr(self, name) >= 0, f"training.{name}", "0 or more", getattr(self, name))


@dataclass(frozen=True)
class SearchOptions:
    """What decoding looks for.

    A score is the sum of log-probabilities over length ** length_penalty, where <eos> counts as a token.
    """

    beam: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    min_length: int = 1
    max_length: int = 256
    max_ratio: float = 0.0  # and at most so many tokens a token of the source, and ten more; 0: no such limit
    no_repeat: int = 0  # no run of so many tokens is written twice; 0: as often as it likes
    unlisted: bool = False  # every token may be written, a shortlist or not
    banned: tuple[int, ...] = ()  # but for these
    patience: float = 0.0  # end after beam × patience finished hypotheses; 0: when none can still win

    def __post_init__(self) -> None:
        check_types(self, "decoding")
        for name in ("n_best", "max_length"):
            require(getattr(self, name) >= 1, f"decoding.{name}", "at least 1", getattr(self, name))
        require(1 <= self.beam <= LARGEST_BEAM, "decoding.beam", f"1 to {LARGEST_BEAM}", self.beam)
        require(self.n_best <= self.beam, "decoding.n_best", f"at most beam = {self.beam}", self.n_best)
        fits = 0 <= self.min_length <= self.max_length
        require(fits, "decoding.min_length", f"0 to max_length = {self.max_length}", self.min_length)
        for name in ("max_ratio", "patience"):
            require(getattr(self, name) >= 0, f"decoding.{name}", "0 or more", getattr(self, name))

    @property
    def enough(self) -> int:
        """How many finished hypotheses end a search with patience; halves round up, as in CTranslate2."""
        return max(self.n_best, math.floor(self.beam * self.patience + 0.5))

    def longest(self, source: int) -> int:
        """Tokens that the target of a source of so many tokens may have."""
        return min(self.max_length, int(self.max_ratio * source) + 10) if self.max_ratio else self.max_length

    def normalise(self, total: float, length: int) -> float:
        return total / length**self.length_penalty


@dataclass(frozen=True)
class TranslateOptions:
    """How a text is translated."""

    beam: int = 4  # hypotheses that are followed at once, twice as many for short or doubtful sentences; 1: greedy
    n_best: int = 1
    length_penalty: float = 1.0
    split: bool = True  # a line into its sentences; otherwise it is translated whole
    prefix: str = ""  # what the translation begins with
    guard: bool = True  # what is plainly wrong is asked for once more, and else told

    def __post_init__(self) -> None:
        check_types(self, "options")
        require(1 <= self.beam <= LARGEST_BEAM // 2, "options.beam", f"1 to {LARGEST_BEAM // 2}", self.beam)
        self.search(1)

    def search(self, longest: int) -> SearchOptions:
        """No target is more than twice as long as its source, in tokens, and ten more."""
        return SearchOptions(
            max(self.beam, self.n_best), self.n_best, self.length_penalty, max_length=longest, max_ratio=2.0
        )


@dataclass(frozen=True)
class Config:
    """All of it: what a recipe file may say."""

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    data: DataConfig = field(default_factory=DataConfig)


_BERT = {
    "kind": "encoder", "vocab": 30522, "max_length": 512, "positions": "learned", "feed_forward": "gelu",
    "scale_embeddings": False, "embedding_norm": True, "token_types": 2, "norm_eps": 1e-12,
    "output_bias": True, "output_transform": True, "unk": 100, "bos": 101, "eos": 102,
}  # fmt: skip
_GPT2 = {
    "kind": "decoder", "vocab": 50257, "max_length": 1024, "positions": "learned", "feed_forward": "gelu-tanh",
    "norm_position": "pre", "scale_embeddings": False, "bos": 50256, "eos": 50256, "pad": 50256, "unk": 50256,
}  # fmt: skip
_LLAMA = {
    "kind": "decoder", "max_length": 4096, "positions": "rotary", "position_layout": "halves",
    "feed_forward": "swiglu", "norm": "rms", "norm_position": "pre", "bias": False, "dropout": 0.0,
    "scale_embeddings": False, "tie_output": False, "pad": 0, "bos": 1, "eos": 2, "unk": 0,
}  # fmt: skip

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "base": {},
    "big": {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3},
    "small": {"vocab": 16000, "d_model": 384, "heads": 6, "d_ff": 1536, "encoder_layers": 8, "decoder_layers": 2,
              "norm_position": "pre"},
    "tiny": {"vocab": 8000, "d_model": 192, "heads": 4, "d_ff": 768, "encoder_layers": 3, "decoder_layers": 2,
             "norm_position": "pre"},
    "bert-base": {**_BERT, "d_model": 768, "heads": 12, "d_ff": 3072, "encoder_layers": 12},
    "gpt2": {**_GPT2, "d_model": 768, "heads": 12, "d_ff": 3072, "decoder_layers": 12},
    "llama-7b": {**_LLAMA, "norm_eps": 1e-6, "d_model": 4096, "heads": 32, "d_ff": 11008, "decoder_layers": 32},
    "llama-tiny": {**_LLAMA, "vocab": 8000, "d_model": 256, "heads": 8, "kv_heads": 2, "d_ff": 704,
                   "decoder_layers": 6, "max_length": 1024, "tie_output": True},
}  # fmt: skip


def preset(name: str) -> Config:
    """The full configuration that a preset name stands for."""
    if name not in PRESETS:
        raise ConfigError(f"preset: expected one of {', '.join(PRESETS)}; got {name!r}", did_you_mean(name, PRESETS))
    return from_dict({"model": dict(PRESETS[name]), "tokenizer": {"vocab": PRESETS[name].get("vocab", 32000)}})


def load(path: Path) -> Config:
    """Read a TOML file. A top-level `preset = "small"` says what its settings start from."""
    return from_tree(read_toml(path), str(path))


def from_tree(tree: dict[str, Any], where: str) -> Config:
    """What a TOML file says, read on top of the preset that it names."""
    start = tree.pop("preset", None)
    if start is not None and not isinstance(start, str):
        raise ConfigError(f"{where}: preset: expected a name; got {start!r}")
    base = to_dict(preset(start)) if start else {}
    return from_dict(merge(base, tree))


def override(config: Config, assignments: Iterable[str]) -> Config:
    """Apply `model.heads=4` style changes, in order, and check the result as a whole."""
    return from_dict(assign(to_dict(config), assignments))


def to_dict(config: Any) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    tree: dict[str, Any] = dataclasses.asdict(config)
    return tree


def from_dict(tree: Mapping[str, Any]) -> Config:
    """The inverse of to_dict; sections and keys that are left out keep their defaults."""
    hints = get_type_hints(Config)
    for section, values in tree.items():
        if section not in hints:
            known = ", ".join(hints)
            raise ConfigError(f"{section!r}: expected a section ({known})", did_you_mean(section, hints))
        if not isinstance(values, Mapping):
            raise ConfigError(f"{section}: expected a section; got {values!r}", f"write {section}.key = value")
    return Config(**{name: section_from(hints[name], name, values) for name, values in tree.items()})


def to_toml(config: Config) -> str:
    """The whole configuration, every value written out."""
    blocks = []
    for section, values in to_dict(config).items():
        lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
        blocks.append("\n".join([f"[{section}]", *lines]))
    return "\n\n".join(blocks) + "\n"
