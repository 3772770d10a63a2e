"""Whose turn it is among requests that write texts."""

import asyncio

import pytest
from event_loops import run_async

from sixfold.serving.responses import HttpError
from sixfold.serving.turnstile import Turnstile


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def visit(turnstile, client, visits, gate):
    async with turnstile.enter(client):
        visits.append(client)
        await gate.wait()


def test_clients_take_turns_however_many_requests_one_sends():
    async def check():
        turnstile, visits, gate = Turnstile(1, 100), [], asyncio.Event()
        gate.set()
        async with turnstile.enter("first"):
            tasks = [asyncio.create_task(visit(turnstile, client, visits, gate)) for client in "aaaabbc"]
            await settle()
            assert visits == []
            assert turnstile.waiting == 7
        await asyncio.gather(*tasks)
        assert "".join(visits) == "abcabaa"
        assert (turnstile.inside, turnstile.waiting) == (0, 0)

    run_async(check(), 60)


def test_at_most_so_many_are_inside():
    async def check():
        turnstile, visits, gate = Turnstile(3, 100), [], asyncio.Event()
        tasks = [asyncio.create_task(visit(turnstile, str(number), visits, gate)) for number in range(5)]
        await settle()
        assert (turnstile.inside, turnstile.waiting, len(visits)) == (3, 2, 3)
        gate.set()
        await asyncio.gather(*tasks)
        assert turnstile.inside == 0

    run_async(check(), 60)


def test_too_many_that_wait_are_refused():
    async def check():
        turnstile, gate = Turnstile(1, 1), asyncio.Event()
        tasks = [asyncio.create_task(visit(turnstile, "a", [], gate)) for _ in range(2)]
        await settle()
        with pytest.raises(HttpError) as caught:
            async with turnstile.enter("b"):
                pass
        assert caught.value.status == 503
        gate.set()
        await asyncio.gather(*tasks)

    run_async(check(), 60)


@pytest.mark.parametrize("when", ["waiting", "chosen"])
def test_a_request_that_is_cancelled_keeps_nobody_out(when):
    async def check():
        turnstile, visits, gate = Turnstile(1, 10), [], asyncio.Event()
        inside = asyncio.create_task(visit(turnstile, "inside", visits, gate))
        await settle()
        cancelled, last = (asyncio.create_task(visit(turnstile, name, visits, gate)) for name in ("a", "b"))
        await settle()
        if when == "waiting":
            cancelled.cancel()
            await settle()
            assert turnstile.waiting == 1
        gate.set()
        if when == "chosen":  # its turn comes in the same moment
            while turnstile.waiting == 2:
                await asyncio.sleep(0)
            cancelled.cancel()
        await asyncio.gather(inside, last)
        await asyncio.gather(cancelled, return_exceptions=True)
        assert visits == ["inside", "b"]
        assert turnstile.inside == 0

    run_async(check(), 60)
