"""The explorer's routes, /api/v1/explore: a sentence in, and every number that the model made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from sixfold.explorer.beam import free_run, search_tree
from sixfold.explorer.explore import Explorer
from sixfold.explorer.heads import Head
from sixfold.explorer.influence import aligners, influence
from sixfold.explorer.merges import merge_stages
from sixfold.explorer.trace import Trace, step_to_dict
from sixfold.serving.admission import Desk
from sixfold.serving.api import REFUSALS
from sixfold.serving.explorer_schema import ArraysAsked, BeamAsked, ExploreAsked
from sixfold.serving.responses import Json

BINARY: dict[int | str, dict[str, Any]] = {
    **REFUSALS, 200: {"content": {"application/octet-stream": {}}, "description": "a safetensors file"},
}  # fmt: skip
Result = TypeVar("Result")


def traced(explorer: Explorer, asked: ExploreAsked) -> Trace:
    heads = [Head.parse(name) for name in asked.off]
    return explorer.explore(asked.text, asked.translation, asked.source, asked.target, heads, asked.model)


class Explore:
    """The routes. Nothing is kept for a client: each says the sentence again, and the last ones are remembered."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._service = desk, desk.service

    async def explore(self, asked: ExploreAsked, request: Request) -> Json:
        """Pieces, steps with their likeliest choices, and the names and shapes of all arrays."""
        return Json(await self._of_trace(asked, request, lambda trace: trace.to_dict(asked.top)))

    async def arrays(self, asked: ArraysAsked, request: Request) -> Response:
        """Arrays by name."""
        data = await self._of_trace(asked, request, lambda trace: trace.safetensors(asked.names, asked.half, asked.row))
        return Response(data, media_type="application/octet-stream")

    async def beam(self, asked: BeamAsked, request: Request) -> Json:
        """The beam search as a tree: what was kept at each step, what was not, and what has ended."""
        return Json(await self._of_trace(asked, request, lambda trace: search_tree(trace, asked.beam).to_dict()))

    async def free(self, asked: ExploreAsked, request: Request) -> Json:
        """What the model writes when it reads its own words: the likeliest piece at each step."""

        def run(trace: Trace) -> dict[str, Any]:
            steps = free_run(trace, asked.top)
            return {"steps": [step_to_dict(step) for step in steps]}

        return Json(await self._of_trace(asked, request, run))

    async def aligners(self, asked: ExploreAsked, request: Request) -> Json:
        """Which heads look where a word comes from: measured by hiding each piece of the source in turn."""

        def measure(trace: Trace) -> dict[str, Any]:
            falls = influence(trace)
            found = [{**each._asdict(), "head": str(each.head)} for each in aligners(trace, falls)]
            return {"aligners": found, "influence": falls.tolist()}

        return Json(await self._of_trace(asked, request, measure))

    async def merge_stages(self, asked: ExploreAsked, request: Request) -> Json:
        """How both texts became pieces, merge by merge."""

        def split(trace: Trace) -> dict[str, Any]:
            sides = {"source": trace.text, "target": trace.translation}
            return {
                side: [each._asdict() for each in merge_stages(trace.tokenizer, text)] for side, text in sides.items()
            }

        return Json(await self._of_trace(asked, request, split))

    async def _of_trace(self, asked: ExploreAsked, request: Request, work: Callable[[Trace], Result]) -> Result:
        self._desk.admit(request, "", [asked.text, asked.translation or ""])
        return await self._service.look(lambda explorer: work(traced(explorer, asked)))


def make_explore(desk: Desk) -> APIRouter:
    """Ready to be put into an application."""
    explore, routes = Explore(desk), APIRouter(prefix="/api/v1/explore", tags=["explorer"])
    routes.add_api_route("", explore.explore, methods=["POST"], responses=REFUSALS)
    routes.add_api_route("/arrays", explore.arrays, methods=["POST"], response_class=Response, responses=BINARY)
    for name in ("beam", "free", "aligners", "merges"):
        routes.add_api_route(f"/{name}", getattr(explore, name), methods=["POST"], responses=REFUSALS)
    return routes
