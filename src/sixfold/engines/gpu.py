"""The torch engine: continuous batching in slots with fixed caches, and steps recorded as CUDA graphs.

It works with these collaborators:

- `EncoderDecoder` (model/transformer.py) is the model. The engine changes nothing in it: how to compute faster is
  passed with each call, as an `Execution`.
- `DeviceBeam` (decoding/device_beam.py) does the beam search in tensors of fixed shapes.
- `StaticStepper` (gpu_steps.py) steps the model for all slots of a `DeviceBeam`, and owns the caches.
- `Kernels` (gpu_steps.py, gpu_kernels.py) are Triton kernels for one step. Only a GPU has them.
- `BatchDecoder`, below, assigns sentences to slots, and records and replays the steps.
- `OpenFlags`, below, brings the state of the slots to the host while the device goes on.
- `beam_search` (decoding/search.py) decodes sentences with constraints, one at a time.

On a GPU the host never waits for a step. It queues steps ahead of the device, sees some steps later which sentences
have ended, and puts waiting ones into their slots. On a CPU the same code runs step by step, so that tests can compare
it with `beam_search`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sixfold.alignment_heads import AligningHeads, aligning_heads
from sixfold.config import Compute, ModelConfig
from sixfold.decoding.constraints import Constraint, ban, force_prefix, no_repeat
from sixfold.decoding.device_beam import DeviceBeam, top_tokens
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.decoding.search import beam_search
from sixfold.engines.engine import Ids, check_kind, check_search, check_sources, check_targets, rescore
from sixfold.engines.gpu_steps import StaticStepper, load_kernels
from sixfold.errors import ConfigError
from sixfold.model.positions import Sinusoid
from sixfold.model.stepper import translation_stepper
from sixfold.model.transformer import EncoderDecoder, Execution, evaluation_mode, load_model
from sixfold.modelfile import ModelFile

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)  # lengths of sources and targets that graphs are recorded for
SLOT_COUNTS = (1, 4, 16, 64, 256, 512)  # sentences that are decoded at once
STEPS_AHEAD = 1  # steps that the host queues beyond the last one whose result it has seen
MAX_DECODERS = 8  # decoders whose memory is kept for later calls


class GpuEngine:
    """An engine for a model on a torch device. Calls from several threads run one after another."""

    def __init__(self, model: EncoderDecoder, config: ModelConfig, aligning: AligningHeads | None = None) -> None:
        """`aligning` names the heads for `align`; None means all heads of the last layer."""
        self.model = model
        self.config = config
        self.aligning = aligning or aligning_heads({}, config)
        self.device = next(model.parameters()).device
        self.kernels = load_kernels() if self.device.type == "cuda" else None
        self.execution = self._make_execution()
        self._decoders: OrderedDict[tuple[object, ...], BatchDecoder] = OrderedDict()
        self._lock = threading.RLock()  # nothing else may run on the device while a graph is recorded

    @classmethod
    def load(cls, file: ModelFile, device: str = "cuda", compute: Compute = "float16") -> GpuEngine:
        """Open a model file on a device, with weights of the type `compute`."""
        if compute not in TYPES:
            raise ConfigError(f"compute: expected one of {', '.join(TYPES)} on {device}; got {compute!r}")
        config = file.config.model
        check_kind(config, "the GPU engine", "take device cpu, or name a model that translates")
        model = load_model(replace(config, dropout=0.0), file.weights(), device=device, dtype=TYPES[compute])
        assert isinstance(model, EncoderDecoder)
        return cls(model, config, aligning_heads(file.card, config))

    def _make_execution(self) -> Execution:
        """Return faster ways to compute: attention of few queries, and a table of sinusoids that saves six kernels."""
        attend = None
        if self.kernels is not None and self.config.compatibility == "scaled-dot":
            attend = self.kernels.attend_few_queries
        sinusoid, vectors = self.model.decoder.embedding.position, None
        if isinstance(sinusoid, Sinusoid):
            positions = torch.arange(round_up(self.config.max_length, LENGTHS) + 1, device=self.device)
            vectors = sinusoid(positions[None])[0].to(next(self.model.parameters()).dtype)
        return Execution(attend, vectors)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other threads out, switch dropout off, and record no gradients."""
        with self._lock, evaluation_mode(self.model), torch.inference_mode():
            yield

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the best targets of each source, as `Engine.decode` describes."""
        options = options or SearchOptions()
        check_search(self.config, sources, options, prefixes)
        prefixes = [()] * len(sources) if prefixes is None else prefixes
        if any(map(len, prefixes)) or options.no_repeat or options.banned:
            with self._exclusive():
                return [self._constrained_search(*pair, options) for pair in zip(sources, prefixes, strict=True)]
        return self.search(sources, options)

    def search(self, sources: Sequence[Ids], options: SearchOptions) -> list[list[Hypothesis]]:
        """Decode without constraints. `no_repeat` and `banned` are ignored, and the arguments are not checked.

        1. Group the sources by their padded length and the padded limit of their targets, the longest first.
        2. Decode each group with a decoder of these shapes.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        groups: dict[tuple[int, int], list[int]] = {}
        for index in sorted(range(len(sources)), key=lambda index: -len(sources[index])):
            source_capacity = round_up(len(sources[index]), LENGTHS)
            if self.config.positions == "learned":
                source_capacity = min(source_capacity, self.config.max_length)
            capacity = round_up(self._limit(sources[index], options) + 1, LENGTHS)
            groups.setdefault((source_capacity, capacity), []).append(index)
        with self._exclusive():
            for (source_capacity, capacity), indices in groups.items():
                decoder = self._decoder(len(indices), source_capacity, capacity, options)
                queue = [
                    QueuedSentence(list(sources[index]), self._limit(sources[index], options)) for index in indices
                ]
                for index, hypotheses in zip(indices, decoder.run(queue), strict=True):
                    results[index] = hypotheses
        return results

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the likeliest next tokens, as `Engine.alternatives` describes."""
        check_search(self.config, [source], options, [prefix])
        limit = self._limit(source, options, prefix)
        if len(prefix) >= limit:
            return []
        config = self.config
        never = (*options.banned, config.pad, config.bos, config.unk)
        options = replace(options, banned=never, max_length=limit, max_ratio=0.0)
        with self._exclusive():
            history = torch.tensor([list(prefix)], dtype=torch.long, device=self.device)
            logits = self._logits(source, prefix)[-1:]
            for constraint in (ban([config.eos]), *self._constraints(options)):
                logits = constraint(logits, history, torch.zeros(1, dtype=torch.long, device=self.device))
            values, tokens = logits[0].topk(min(options.n_best, logits.size(1)))
            possible = [token for value, token in zip(values.tolist(), tokens.tolist(), strict=True) if value > -np.inf]
            single = replace(options, n_best=1)
            targets = [self._constrained_search(source, [*prefix, token], single)[0].tokens for token in possible]
        return rescore(self, source, prefix, targets, options, limit)

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        with self._exclusive():
            return [self._score(source, target) for source, target in zip(sources, targets, strict=True)]

    def _score(self, source: Ids, target: Ids) -> list[float]:
        labels = torch.tensor([*target, self.config.eos], device=self.device)
        logprobs = self._logits(source, target).log_softmax(dim=-1).gather(1, labels[:, None])
        return logprobs[:, 0].tolist()

    def _logits(self, source: Ids, target: Ids) -> Tensor:
        """Return the logits at the beginning of a target and after each of its tokens: (length + 1) × vocab."""
        inputs = torch.tensor([[self.config.bos, *target]], device=self.device)
        tokens = torch.tensor([list(source)], device=self.device)
        return self.model.output(self.model.hidden(tokens, inputs, execution=self.execution))[0].float()

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return the weights of target tokens on source tokens, as `Engine.align` describes."""
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        with self._exclusive():
            return [self._align(source, target) for source, target in zip(sources, targets, strict=True)]

    def _align(self, source: Ids, target: Ids) -> np.ndarray:
        inputs = torch.tensor([[self.config.bos, *target]], device=self.device)
        tokens = torch.tensor([list(source)], device=self.device)
        weights = self.model.cross_attention_weights(tokens, inputs, self.aligning.layer)
        steps = weights[0, list(self.aligning.heads)].float().mean(dim=0)
        return self.aligning.token_weights(steps.cpu().numpy())

    def _constraints(self, options: SearchOptions) -> list[Constraint]:
        rules = [no_repeat(options.no_repeat)] if options.no_repeat else []
        return [*rules, ban(options.banned)] if options.banned else rules

    def _constrained_search(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Decode one source with the reference search, which supports constraints."""
        constraints = [force_prefix([prefix], self._constraints(options))]
        tokens = torch.tensor([list(source)], device=self.device)
        options = replace(options, max_length=self._limit(source, options, prefix))
        stepper = translation_stepper(self.model, tokens, None, options.max_length, self.execution)
        start = torch.tensor([self.config.bos], device=self.device)
        (hypotheses,) = beam_search(stepper, start, self.config.eos, options, constraints)
        return hypotheses

    def _limit(self, source: Ids, options: SearchOptions, prefix: Ids = ()) -> int:
        """Return the largest number of target tokens. Only rotary positions allow more than `model.max_length`."""
        limit = options.max_target_length(len(source), len(prefix))
        return limit if self.config.positions == "rotary" else min(limit, self.config.max_length)

    def _decoder(self, count: int, source_capacity: int, capacity: int, options: SearchOptions) -> BatchDecoder:
        """Return a decoder of these shapes, from an earlier call where there is one."""
        options = replace(options, max_length=max(1, options.min_length), max_ratio=0.0)  # limits are per sentence
        slots = min(round_up(count, SLOT_COUNTS), self._max_slots(source_capacity, capacity, options.beam))
        key = (slots, source_capacity, capacity, options)
        if key not in self._decoders:
            while len(self._decoders) >= MAX_DECODERS:
                self._decoders.popitem(last=False)
            rank = top_tokens if self.kernels is None else self.kernels.top_tokens
            beam = DeviceBeam(slots, capacity, self.config.eos, options, self.device, rank)
            stepper = StaticStepper(self.model, self.config, beam, source_capacity, self.kernels, self.execution)
            self._decoders[key] = BatchDecoder(stepper)
        self._decoders.move_to_end(key)
        return self._decoders[key]

    def _max_slots(self, source_capacity: int, capacity: int, beam: int) -> int:
        """Return the number of slots whose keys and values take at most an eighth of the free memory."""
        if self.device.type != "cuda":
            return 8
        element = next(self.model.parameters()).element_size()
        entries = source_capacity + capacity * beam
        slot_bytes = 2 * element * self.config.decoder_layers * self.config.groups * self.config.d_head * entries
        free = torch.cuda.mem_get_info(self.device)[0]
        return max(count for count in SLOT_COUNTS if count == 1 or count * slot_bytes * 8 < free)

    def close(self) -> None:
        """Free the memory of caches and graphs. A later call allocates it again."""
        with self._lock:
            self._decoders.clear()


@dataclass(frozen=True)
class QueuedSentence:
    """A source that waits for a slot, and the largest number of its target tokens."""

    source: list[int]
    limit: int


class BatchDecoder:
    """Decodes any number of sentences in the slots of one `DeviceBeam`: continuous batching.

    It also has a recorded graph of a step for each number of keys that a step attends to. All its tensors have fixed
    shapes and are allocated once.
    """

    def __init__(self, stepper: StaticStepper) -> None:
        self.stepper, self.beam, self.config = stepper, stepper.beam, stepper.config
        self.size, self.device = len(self.beam.open), self.beam.open.device
        self.graphs: dict[int, Callable[[], None]] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self.steps_ahead = STEPS_AHEAD if self.device.type == "cuda" else 0
        self.free_flags: list[OpenFlags] = []
        self.waiting: deque[int] = deque()
        self.sentence_in: dict[int, int] = {}  # the sentence of each slot in use
        self.started: dict[int, int] = {}  # the step at which it started

    def run(self, queue: Sequence[QueuedSentence]) -> list[list[Hypothesis]]:
        """Decode all sentences and return their hypotheses.

        Each round of the loop does this:

        1. See which sentences have ended, from the flags of an earlier step.
        2. If enough have ended, read their hypotheses and put waiting sentences into their slots.
        3. Otherwise queue one more step, unless every sentence has reached its limit.
        """
        results: list[list[Hypothesis]] = [[] for _ in queue]
        self.waiting, self.sentence_in, self.started = deque(range(len(queue))), {}, {}
        flags_of_steps: deque[tuple[int, OpenFlags]] = deque()
        step = 0
        while self.waiting or self.sentence_in:
            ages = [step - self.started[slot] for slot in self.sentence_in]
            limits = [queue[sentence].limit for sentence in self.sentence_in.values()]
            at_limit = all(age >= limit for age, limit in zip(ages, limits, strict=True))
            ended: list[int] = []
            if len(flags_of_steps) > self.steps_ahead or (flags_of_steps and at_limit):
                flags_step, flags = flags_of_steps.popleft()
                is_open = flags.read()
                ended = [slot for slot in self.sentence_in if not is_open[slot] and self.started[slot] < flags_step]
                self.free_flags.append(flags)
            if self._should_refill(len(ended)):
                for slot, hypotheses in zip(ended, self.beam.read(ended) if ended else [], strict=True):
                    results[self.sentence_in.pop(slot)] = hypotheses
                self._fill_slots(queue, step)
            elif not at_limit:
                self._step(min(round_up(max(ages) + 1, LENGTHS), self.beam.capacity))
                step += 1
                flags = self.free_flags.pop() if self.free_flags else OpenFlags(self.beam.open)
                flags.copy_from(self.beam.open)
                flags_of_steps.append((step, flags))
        self.free_flags += [flags for _, flags in flags_of_steps]
        return results

    def _should_refill(self, ended: int) -> bool:
        """Return whether to read ended sentences now: if no other is left, or if enough waiting ones can start."""
        if not self.sentence_in or ended == len(self.sentence_in):
            return True
        return bool(self.waiting) and ended >= min(len(self.waiting), max(1, self.size // 8))

    def _fill_slots(self, queue: Sequence[QueuedSentence], step: int) -> None:
        """Start waiting sentences in free slots: their sources are padded to new × source_capacity and encoded."""
        free = [slot for slot in range(self.size) if slot not in self.sentence_in]
        assigned = [(slot, self.waiting.popleft()) for slot in free[: len(self.waiting)]]
        if not assigned:
            return
        for slot, index in assigned:
            self.sentence_in[slot], self.started[slot] = index, step
        new = [queue[index] for _, index in assigned]
        source = np.full((len(new), self.stepper.source_capacity), self.config.pad)
        for row, sentence in zip(source, new, strict=True):
            row[: len(sentence.source)] = sentence.source
        slots = torch.tensor([slot for slot, _ in assigned], device=self.device)
        lengths = torch.tensor([len(sentence.source) for sentence in new], device=self.device)
        limits = torch.tensor([sentence.limit for sentence in new], device=self.device)
        self.stepper.put(slots, torch.from_numpy(source).to(self.device), lengths)
        self.beam.put(slots, self.config.bos, limits)

    def _step(self, max_keys: int) -> None:
        """Queue one step that attends to at most `max_keys` earlier steps. The first one is recorded for all others."""
        if max_keys in self.graphs:
            self.graphs[max_keys]()
            return
        self.stepper.max_keys = max_keys
        self.beam.step(self.stepper)
        if self.device.type != "cuda":
            return
        graph = torch.cuda.CUDAGraph()
        # The graphs can share one memory pool: only one of them runs at a time.
        with torch.cuda.graph(graph, pool=self.pool):
            self.beam.step(self.stepper)
        self.graphs[max_keys] = graph.replay


class OpenFlags:
    """A copy on the host of which slots are open after a step. The device makes it without stopping."""

    def __init__(self, flags: Tensor) -> None:
        self.event = torch.cuda.Event() if flags.is_cuda else None
        self.copy = torch.empty(flags.shape, dtype=torch.bool, pin_memory=flags.is_cuda)

    def copy_from(self, flags: Tensor) -> None:
        """Queue the copy."""
        self.copy.copy_(flags, non_blocking=True)
        if self.event is not None:
            self.event.record()

    def read(self) -> list[bool]:
        """Wait for the copy and return it."""
        if self.event is not None:
            self.event.synchronize()
        return self.copy.tolist()


def round_up(number: int, sizes: Sequence[int]) -> int:
    """Return the first of these increasing sizes that is at least `number`, or `number` itself if none is."""
    return next((size for size in sizes if size >= number), number)
