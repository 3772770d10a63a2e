"""All settings, as frozen dataclasses that check their values; they are read from TOML and changed by overrides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from sixfold.configfile import assign, check_types, did_you_mean, require, section_from, toml_value
from sixfold.errors import ConfigError

Kind = Literal["encoder-decoder", "encoder", "decoder"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
Layout = Literal["interleaved", "halves"]
Spacing = Literal["open", "closed"]
RotaryScaling = Literal["none", "linear", "llama3"]
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
Documents = Literal["auto", "blocks", "lines"]
Filter = Literal["empty", "encoding", "control", "markup", "long", "ratio", "script", "copied", "duplicate"]


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a Transformer. The defaults are the paper's base model."""

    kind: Kind = "encoder-decoder"
    vocab: int = 32000
    source_vocab: int = 0  # pieces that the encoder reads, if it has embeddings of its own; 0: as many as vocab
    d_model: int = 512
    heads: int = 8
    kv_heads: int = 0  # 0: the same as heads; fewer: grouped-query attention
    head_width: int = 0  # features of a head; 0: d_model / heads
    sliding_window: int = 0  # last positions that each position of a decoder sees, its own included; 0: all
    d_ff: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    share_layers: bool = False  # one layer's weights serve the whole stack (ALBERT)

    positions: Positions = "sinusoidal"
    position_layout: Layout = "interleaved"  # which features form a (sin, cos) or a rotary pair
    position_spacing: Spacing = "open"  # exponents of the wavelengths: 2i/d, or i/(d/2 - 1), which end in 1
    position_offset: int = 0  # number of the first position
    rotary_base: float = 10000.0
    rotary_scaling: RotaryScaling = "none"  # of the angles: all are divided by rotary_factor, or the slow ones (llama3)
    rotary_factor: float = 1.0
    rotary_low: float = 1.0  # llama3: pairs that turn fewer times in rotary_original_length are divided
    rotary_high: float = 4.0  # llama3: pairs that turn more often are not; those between are interpolated
    rotary_original_length: int = 8192  # llama3: the longest text before the angles were scaled
    max_length: int = 512  # rows of a learned position table; longest sequence of a cache

    compatibility: Compatibility = "scaled-dot"
    feed_forward: FeedForward = "relu"
    bias: bool = True  # in attention and feed-forward
    query_key_value_bias: bool = False  # biases of these three, also where `bias` is false
    norm: Norm = "layer"
    norm_position: NormPosition = "post"
    norm_eps: float = 1e-5
    final_norm: bool = False  # adds a norm at the end of a post-norm stack; a pre-norm stack always has one
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
        for name in ("vocab", "d_model", "heads", "d_ff", "max_length", "rotary_original_length"):
            require(1 <= getattr(self, name) <= 10**7, f"model.{name}", "1 to 10 million", getattr(self, name))
        for name in ("kv_heads", "head_width", "sliding_window", "position_offset", "token_types", "source_vocab"):
            require(getattr(self, name) >= 0, f"model.{name}", "0 or more", getattr(self, name))
        for name in self.stacks:
            layers = getattr(self, f"{name}_layers")
            require(1 <= layers <= 1000, f"model.{name}_layers", "1 to 1000", layers)
        is_divisor = self.head_width > 0 or self.d_model % self.heads == 0
        require(is_divisor, "model.heads", f"a divisor of d_model = {self.d_model}", self.heads)
        require(self.head_width <= 10**5, "model.head_width", "at most 100,000", self.head_width)
        require(self.heads % self.groups == 0, "model.kv_heads", f"a divisor of heads = {self.heads}", self.groups)
        if self.positions == "rotary":
            setting = "model.head_width" if self.head_width else "model.heads"
            require(self.d_head % 2 == 0, setting, "heads of an even width for rotary positions", self.d_head)
        if self.positions == "sinusoidal":
            require(self.d_model % 2 == 0, "model.d_model", "an even width for sinusoids", self.d_model)
        require(0 <= self.dropout < 1, "model.dropout", "from 0 to below 1", self.dropout)
        require(self.norm_eps > 0, "model.norm_eps", "above 0", self.norm_eps)
        require(self.rotary_base > 1, "model.rotary_base", "above 1", self.rotary_base)
        require(self.rotary_factor >= 1, "model.rotary_factor", "at least 1", self.rotary_factor)
        is_range = 0 < self.rotary_low < self.rotary_high
        expected = f"above 0 and below rotary_high = {self.rotary_high}"
        require(is_range, "model.rotary_low", expected, self.rotary_low)
        for name in ("pad", "bos", "eos", "unk"):
            require(
                0 <= getattr(self, name) < self.vocab, f"model.{name}", "an id in the vocabulary", getattr(self, name)
            )

        if self.vocab_read != self.vocab:
            require(self.source_vocab <= 10**7, "model.source_vocab", "at most 10 million", self.source_vocab)
            # A source ends in <eos> and is padded.
            for name in ("pad", "eos"):
                expected = f"an id below source_vocab = {self.source_vocab}"
                require(getattr(self, name) < self.source_vocab, f"model.{name}", expected, getattr(self, name))

    @property
    def d_head(self) -> int:
        return self.head_width or self.d_model // self.heads

    @property
    def has_query_key_value_bias(self) -> bool:
        return self.bias or self.query_key_value_bias

    @property
    def vocab_read(self) -> int:
        """Return the number of pieces that the encoder reads, or the decoder, where there is no encoder."""
        is_separate = self.kind == "encoder-decoder" and not self.share_embeddings
        return self.source_vocab if is_separate and self.source_vocab else self.vocab

    @property
    def groups(self) -> int:
        """Return the number of key and value heads, which groups of query heads share."""
        return self.kv_heads or self.heads

    @property
    def ends_in_norm(self) -> bool:
        """Return whether a stack has a norm after its last layer."""
        return self.norm_position == "pre" or self.final_norm

    @property
    def stacks(self) -> tuple[str, ...]:
        """Return the names of the stacks of layers of this kind of model."""
        return {"encoder-decoder": ("encoder", "decoder"), "encoder": ("encoder",), "decoder": ("decoder",)}[self.kind]


def check_tag(tag: str, where: str) -> None:
    """Raise ConfigError if a tag, which becomes the token <tag>, has an invalid name."""
    is_valid = tag[:1].isalpha() and all(char.isalnum() or char in "-_" for char in tag)
    require(is_valid, where, "a letter, then letters, digits, - and _", tag)
    require(tag not in ("pad", "bos", "eos", "unk", "mask"), where, "a name other than those of special tokens", tag)


@dataclass(frozen=True)
class TokenizerConfig:
    """How text is split into subwords."""

    algorithm: Algorithm = "bpe"
    vocab: int = 32000
    tags: tuple[str, ...] = ()  # tags with reserved ids, besides those of the corpora
    spans: int = 0  # tokens for placeholders that a model copies, and the same number for opening and for closing tags
    simplify: bool = False  # read traditional Chinese as simplified, and full-width letters and digits as ASCII
    max_piece: int = 16  # longest learned piece, in characters
    sample_lines: int = 500_000  # lines in memory while learning, sampled uniformly from the whole text
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
    """Which pairs a model learns from."""

    source: str = ""  # language code such as zh; empty: from the file names, else from the script of the text
    target: str = ""
    both_ways: bool = False  # learn each pair in both directions; a tag before the source names the target language
    skip: tuple[str, ...] = ()  # names of filters that are disabled
    max_characters: int = 1000  # of either side; a longer pair is dropped
    max_ratio: float = 4.0  # of the lengths of the two sides, where a Han character counts as three letters
    max_tokens: int = 250  # of either side, after tokenising
    dev_pairs: int = 1000  # of a dev set that is split off if none is named; at most a twentieth of the corpus
    documents: Documents = "auto"  # of a plain text: blocks between blank lines, or lines; auto: blocks from 20 on

    def __post_init__(self) -> None:
        check_types(self, "data")
        for name in self.skip:
            filters = get_args(Filter)
            if name not in filters:
                expected = ", ".join(filters)
                raise ConfigError(
                    f"data.skip: expected names of filters ({expected}); got {name!r}", did_you_mean(name, filters)
                )
        for name in ("max_characters", "max_tokens", "dev_pairs"):
            require(1 <= getattr(self, name) <= 10**6, f"data.{name}", "1 to a million", getattr(self, name))
        require(self.max_ratio > 1, "data.max_ratio", "above 1", self.max_ratio)


@dataclass(frozen=True)
class TrainingConfig:
    """How the weights are learned. "0: chosen" means chosen before step 1 from the corpus and the device."""

    steps: int = 0  # 0: chosen
    learning_rate: float = 1e-3  # the peak; for noam, the factor before d_model ** -0.5
    schedule: Schedule = "inverse-sqrt"
    warmup: int = 0  # steps; 0: chosen
    min_learning_rate: float = 0.0  # that the cosine schedule falls to
    label_smoothing: float = 0.1
    clip: float = 1.0  # largest gradient norm; 0: none
    beta2: float = 0.98
    weight_decay: float = 0.0  # of matrices; norms, biases, embeddings and position tables do not decay
    ema: float = 0.999  # decay of the averaged weights that are validated and saved; 0: no average
    rdrop: float = 0.0  # weight of the divergence between two passes with different dropout; 0: a single pass
    subword_sampling: float = 0.0  # probability that a piece is cut in two
    lora: int = 0  # rank of the LoRA matrices of a fine-tuned model; 0: all weights are learned

    batch_tokens: int = 0  # padded tokens of the longer side in one step, over all micro-batches and ranks; 0: chosen
    row_tokens: int = 0  # length of the rows that documents are joined and cut into, for decoder-only models; 0: chosen
    micro_tokens: int = 0  # of one micro-batch; 0: as many as a trial step shows to fit into memory
    precision: Precision = "auto"  # auto: bf16 if the GPU has it, else float32; float32 also disables TF32
    packing: Switch = (
        "auto"  # several pairs in each row, so that all batches have one shape and little padding; auto: on GPUs
    )
    compile: Switch = "auto"  # compile the layers for packed batches; auto: if the run is long enough to save time
    sharded: bool = (
        False  # each of several processes holds a part of every weight, for models that do not fit on one GPU
    )
    recompute: bool = False  # compute activations again in the backward pass: less memory, a third slower

    shortlist: bool = True  # learn which target pieces a source piece may become, so that the model is fast on a CPU

    validate_every: int = 0  # steps; 0: chosen
    checkpoint_every: int = 0  # steps; 0: the same as validate_every
    keep: int = 3  # checkpoints that are kept, the latest ones
    patience: int = 8  # validations without a better score before training stops; 0: it never stops early
    score: Score = (
        "auto"  # that selects the saved model; auto: BLEU from 10 on, and the loss below, where BLEU is noise
    )
    seed: int = 1

    def __post_init__(self) -> None:
        check_types(self, "training")
        counts = ("steps", "warmup", "batch_tokens", "row_tokens", "micro_tokens", "validate_every", "checkpoint_every")
        for name in counts:
            require(0 <= getattr(self, name) <= 10**12, f"training.{name}", "0 or more", getattr(self, name))
        require(0 <= self.lora <= 4096, "training.lora", "0 to 4096", self.lora)
        require(not (self.lora and self.sharded), "training.lora", "0 where training.sharded is on", self.lora)
        require(self.keep >= 1, "training.keep", "at least 1", self.keep)
        require(0 <= self.seed < 2**32, "training.seed", "0 to 2**32 - 1", self.seed)
        require(self.learning_rate > 0, "training.learning_rate", "above 0", self.learning_rate)
        require(
            0 <= self.min_learning_rate <= self.learning_rate, "training.min_learning_rate",
            f"0 to learning_rate = {self.learning_rate}", self.min_learning_rate,
        )  # fmt: skip
        for name in ("label_smoothing", "beta2", "ema", "subword_sampling"):
            require(0 <= getattr(self, name) < 1, f"training.{name}", "from 0 to below 1", getattr(self, name))
        for name in ("clip", "weight_decay", "rdrop", "patience"):
            require(getattr(self, name) >= 0, f"training.{name}", "0 or more", getattr(self, name))


@dataclass(frozen=True)
class Config:
    """All settings, one section each, as a recipe file has them."""

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    data: DataConfig = field(default_factory=DataConfig)


def override(config: Config, assignments: Iterable[str]) -> Config:
    """Apply changes such as `model.heads=4` in order, and check the result as a whole."""
    return from_dict(assign(to_dict(config), assignments))


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain values, ready for JSON."""
    tree: dict[str, Any] = dataclasses.asdict(config)
    return tree


def from_dict(tree: Mapping[str, Any]) -> Config:
    """Return the settings from plain values; missing sections and keys keep their defaults."""
    hints = get_type_hints(Config)
    for section, values in tree.items():
        if section not in hints:
            sections = ", ".join(hints)
            raise ConfigError(f"{section!r}: expected a section ({sections})", did_you_mean(section, hints))
        if not isinstance(values, Mapping):
            raise ConfigError(f"{section}: expected a section; got {values!r}", f"write {section}.key = value")
    return Config(**{name: section_from(hints[name], name, values) for name, values in tree.items()})


def to_toml(config: Config) -> str:
    """Return the whole configuration as TOML, with every value."""
    blocks = []
    for section, values in to_dict(config).items():
        lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
        blocks.append("\n".join([f"[{section}]", *lines]))
    return "\n\n".join(blocks) + "\n"
