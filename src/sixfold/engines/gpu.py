"""Decoding with torch: caches that stay where they are, steps recorded as CUDA graphs, places filled as they fall free.

On a GPU nothing waits for the host: it hands out steps ahead of the device, sees some steps later which sentences have
ended, and puts waiting ones in their places. On a CPU the same code runs step by step, which is how tests hold it
to the plain search.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sixfold.alignment_heads import AligningHeads, aligning_heads
from sixfold.config import Compute, ModelConfig
from sixfold.decoding.constraints import Constraint, ban, force_prefix, no_repeat
from sixfold.decoding.device_beam import Board, likeliest
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import Hypothesis, beam_search
from sixfold.engines.engine import Candidate, Ids, check_kind, check_search, check_sources, check_targets, rescored
from sixfold.engines.gpu_steps import PositionTable, StaticStepper, kernels
from sixfold.errors import ConfigError
from sixfold.model.positions import Sinusoid
from sixfold.model.stepper import translate_stepper
from sixfold.model.transformer import EncoderDecoder, build, load_weights
from sixfold.modelfile import ModelFile

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
REACHES = (16, 32, 64, 128, 256, 512, 1024)  # lengths that graphs are made for
SIZES = (1, 4, 16, 64, 256, 512)  # sentences at once
AHEAD = 1  # steps that the host is ahead of what it has seen
KEPT = 8  # decoders whose memory is kept for the next call


class GpuEngine:
    """A model that is ready to decode on a device of torch. Calls from several threads are made one by one."""

    def __init__(self, model: EncoderDecoder, config: ModelConfig, aligning: AligningHeads | None = None) -> None:
        """`aligning`: the heads for `align`; None: all heads of the last layer."""
        self.model = model.eval()
        self.config = config
        self.aligning = aligning or aligning_heads({}, config)
        self.device = next(model.parameters()).device
        self.kernels = kernels() if self.device.type == "cuda" else None
        if self.kernels is not None:
            self.kernels.few_queries(model)
        length = at_least(REACHES, config.max_length) + 1
        for stack in (model.encoder, model.decoder):
            if isinstance(stack.embedding.position, Sinusoid):
                stack.embedding.position = PositionTable(stack.embedding.position, length, next(model.parameters()))
        self._decoders: OrderedDict[tuple[object, ...], Decoder] = OrderedDict()
        self._lock = threading.RLock()  # a step that is being recorded bears nothing else on the device

    @classmethod
    def load(cls, file: ModelFile, device: str = "cuda", compute: Compute = "float16") -> GpuEngine:
        if compute not in TYPES:
            raise ConfigError(f"compute: expected one of {', '.join(TYPES)} on {device}; got {compute!r}")
        check_kind(file.config.model, "the GPU engine", "take device cpu, or name a model that translates")
        model = build(replace(file.config.model, dropout=0.0))
        load_weights(model, file.weights())
        assert isinstance(model, EncoderDecoder)
        return cls(model.to(device, TYPES[compute]), file.config.model, aligning_heads(file.card, file.config.model))

    @torch.inference_mode()
    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Candidate]]:
        options = options or SearchOptions()
        check_search(self.config, sources, options, prefixes)
        begun: Sequence[Ids] = [()] * len(sources) if prefixes is None else prefixes
        if any(map(len, begun)) or options.no_repeat or options.banned:
            with self._lock:
                return [self._search(*each, options) for each in zip(sources, begun, strict=True)]
        return [[Candidate(each.tokens, each.score) for each in found] for found in self.search(sources, options)]

    @torch.inference_mode()
    def search(self, sources: Sequence[Ids], options: SearchOptions) -> list[list[Hypothesis]]:
        """As `decode`, with the log-probability of each token."""
        found: list[list[Hypothesis]] = [[] for _ in sources]
        groups: dict[tuple[int, int], list[int]] = {}
        for place in sorted(range(len(sources)), key=lambda place: -len(sources[place])):
            reach = at_least(REACHES, len(sources[place]))
            if self.config.positions == "learned":
                reach = min(reach, self.config.max_length)
            room = at_least(REACHES, self._limit(sources[place], options) + 1)
            groups.setdefault((reach, room), []).append(place)
        with self._lock:
            for (reach, room), places in groups.items():
                decoder = self._decoder(len(places), reach, room, options)
                wanted = [Wanted(list(sources[place]), self._limit(sources[place], options)) for place in places]
                for place, hypotheses in zip(places, decoder.run(wanted), strict=True):
                    found[place] = hypotheses
        return found

    @torch.inference_mode()
    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Candidate]:
        check_search(self.config, [source], options, [prefix])
        limit = self._limit(source, options)
        if len(prefix) >= limit:
            return []
        config = self.config
        options = replace(options, banned=(*options.banned, config.pad, config.bos, config.unk))
        with self._lock:
            history = torch.tensor([list(prefix)], dtype=torch.long, device=self.device)
            logits = self._logits(source, prefix)[-1:]
            for constraint in (ban([config.eos]), *self._constraints(options)):
                logits = constraint(logits, history, torch.zeros(1, dtype=torch.long, device=self.device))
            values, tokens = logits[0].topk(min(options.n_best, logits.size(1)))
            possible = [token for value, token in zip(values.tolist(), tokens.tolist(), strict=True) if value > -np.inf]
            single = replace(options, n_best=1)
            found = [self._search(source, [*prefix, token], single)[0].tokens for token in possible]
        return rescored(self, source, prefix, found, options, limit)

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        with self._lock:
            return [self._score(source, target) for source, target in zip(sources, targets, strict=True)]

    def _score(self, source: Ids, target: Ids) -> list[float]:
        wanted = torch.tensor([*target, self.config.eos], device=self.device)
        each = self._logits(source, target).log_softmax(dim=-1).gather(1, wanted[:, None])
        return each[:, 0].tolist()

    def _logits(self, source: Ids, target: Ids) -> Tensor:
        """What the model expects at the beginning of a target and after each of its tokens."""
        inputs = torch.tensor([[self.config.bos, *target]], device=self.device)
        return self.model(torch.tensor([list(source)], device=self.device), inputs)[0].float()

    @torch.inference_mode()
    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        with self._lock:
            return [self._align(source, target) for source, target in zip(sources, targets, strict=True)]

    def _align(self, source: Ids, target: Ids) -> np.ndarray:
        inputs = torch.tensor([[self.config.bos, *target]], device=self.device)
        weights = self.model.looks(torch.tensor([list(source)], device=self.device), inputs, self.aligning.layer)
        steps = weights[0, list(self.aligning.heads)].float().mean(dim=0)
        return self.aligning.token_weights(steps.cpu().numpy())

    def _constraints(self, options: SearchOptions) -> list[Constraint]:
        rules = [no_repeat(options.no_repeat)] if options.no_repeat else []
        return [*rules, ban(options.banned)] if options.banned else rules

    def _search(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Candidate]:
        """The plain search, which knows constraints."""
        constraints = [force_prefix([prefix], self._constraints(options))]
        tokens = torch.tensor([list(source)], device=self.device)
        options = replace(options, max_length=self._limit(source, options))
        stepper = translate_stepper(self.model, tokens, None, options.max_length)
        start = torch.tensor([self.config.bos], device=self.device)
        (found,) = beam_search(stepper, start, self.config.eos, options, constraints)
        return [Candidate(each.tokens, each.score) for each in found]

    def _limit(self, source: Ids, options: SearchOptions) -> int:
        wanted = options.longest(len(source))
        return wanted if self.config.positions == "rotary" else min(wanted, self.config.max_length)

    def _decoder(self, count: int, reach: int, room: int, options: SearchOptions) -> Decoder:
        options = replace(options, max_length=max(1, options.min_length), max_ratio=0.0)  # the limits are per sentence
        size = min(at_least(SIZES, count), self._fitting(reach, room, options.beam))
        key = (size, reach, room, options)
        if key not in self._decoders:
            while len(self._decoders) >= KEPT:
                self._decoders.popitem(last=False)
            rank = likeliest if self.kernels is None else self.kernels.likeliest
            board = Board(size, room, self.config.eos, options, self.device, rank)
            self._decoders[key] = Decoder(StaticStepper(self.model, self.config, board, reach, self.kernels))
        self._decoders.move_to_end(key)
        return self._decoders[key]

    def _fitting(self, reach: int, room: int, beam: int) -> int:
        """Sentences whose keys and values take at most an eighth of the memory that is free."""
        if self.device.type != "cuda":
            return 8
        size = next(self.model.parameters()).element_size()
        each = 2 * size * self.config.decoder_layers * self.config.groups * self.config.d_head * (reach + room * beam)
        free = torch.cuda.mem_get_info(self.device)[0]
        return max(size for size in SIZES if size == 1 or size * each * 8 < free)

    def close(self) -> None:
        """Give back what decoding has taken besides the weights; it is taken again when it is needed."""
        with self._lock:
            self._decoders.clear()


@dataclass(frozen=True)
class Wanted:
    """A sentence that waits for a place."""

    source: list[int]
    limit: int


class Decoder:
    """A board, the caches behind it, and a graph of a step for each reach. All of one shape, made once."""

    def __init__(self, stepper: StaticStepper) -> None:
        self.stepper, self.board, self.config = stepper, stepper.board, stepper.config
        self.size, self.device = len(self.board.open), self.board.open.device
        self.graphs: dict[int, Callable[[], None]] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self.ahead = AHEAD if self.device.type == "cuda" else 0
        self.free_looks: list[Look] = []
        self.waiting: deque[int] = deque()
        self.at: dict[int, int] = {}  # which sentence has which place
        self.since: dict[int, int] = {}  # the step at which it got it

    def run(self, wanted: Sequence[Wanted]) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in wanted]
        self.waiting, self.at, self.since = deque(range(len(wanted))), {}, {}
        looks: deque[tuple[int, Look]] = deque()
        step = 0
        while self.waiting or self.at:
            ages = [step - self.since[place] for place in self.at]
            is_over = all(age >= wanted[self.at[place]].limit for place, age in zip(self.at, ages, strict=True))
            ended: list[int] = []
            if len(looks) > self.ahead or (looks and is_over):
                seen, look = looks.popleft()
                is_open = look.read()
                ended = [place for place in self.at if not is_open[place] and self.since[place] < seen]
                self.free_looks.append(look)
            if self._is_time(len(ended)):
                for place, hypotheses in zip(ended, self.board.read(ended) if ended else [], strict=True):
                    found[self.at.pop(place)] = hypotheses
                self._admit(wanted, step)
            elif not is_over:
                self._step(min(at_least(REACHES, max(ages) + 1), self.board.room))
                step += 1
                look = self.free_looks.pop() if self.free_looks else Look(self.board.open)
                look.take(self.board.open)
                looks.append((step, look))
        self.free_looks += [look for _, look in looks]
        return found

    def _is_time(self, ended: int) -> bool:
        """To read what ended: when nothing else is left, or when enough others can take the places."""
        if not self.at or ended == len(self.at):
            return True
        return bool(self.waiting) and ended >= min(len(self.waiting), max(1, self.size // 8))

    def _admit(self, wanted: Sequence[Wanted], step: int) -> None:
        free = [place for place in range(self.size) if place not in self.at]
        taken = [(place, self.waiting.popleft()) for place in free[: len(self.waiting)]]
        if not taken:
            return
        for place, number in taken:
            self.at[place], self.since[place] = number, step
        sentences = [wanted[number] for _, number in taken]
        source = np.full((len(sentences), self.stepper.sources), self.config.pad)
        for row, sentence in zip(source, sentences, strict=True):
            row[: len(sentence.source)] = sentence.source
        places = torch.tensor([place for place, _ in taken], device=self.device)
        lengths = torch.tensor([len(sentence.source) for sentence in sentences], device=self.device)
        limits = torch.tensor([sentence.limit for sentence in sentences], device=self.device)
        self.stepper.put(places, torch.from_numpy(source).to(self.device), lengths)
        self.board.put(places, self.config.bos, limits)

    def _step(self, reach: int) -> None:
        """The first step of a reach is made as it is written, and recorded for all that follow."""
        if reach in self.graphs:
            self.graphs[reach]()
            return
        self.stepper.reach = reach
        self.board.advance(self.stepper)
        if self.device.type != "cuda":
            return
        graph = torch.cuda.CUDAGraph()
        # One pool for all graphs: only one of them runs at a time.
        with torch.cuda.graph(graph, pool=self.pool):
            self.board.advance(self.stepper)
        self.graphs[reach] = graph.replay


class Look:
    """Which places are open after a step, on its way to the host."""

    def __init__(self, like: Tensor) -> None:
        self.event = torch.cuda.Event() if like.is_cuda else None
        self.copy = torch.empty(like.shape, dtype=torch.bool, pin_memory=like.is_cuda)

    def take(self, is_open: Tensor) -> None:
        self.copy.copy_(is_open, non_blocking=True)
        if self.event is not None:
            self.event.record()

    def read(self) -> list[bool]:
        if self.event is not None:
            self.event.synchronize()
        return self.copy.tolist()


def at_least(sizes: Sequence[int], wanted: int) -> int:
    """The first of these sizes that suffices, or the last."""
    return next((size for size in sizes if size >= wanted), max(sizes[-1], wanted))
