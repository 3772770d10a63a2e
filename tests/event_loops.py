"""Runs coroutines in tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run_async(coroutine, seconds=240):
    """Run a coroutine in a thread of its own and return its result, or raise TimeoutError if it never ends.

    In the main thread of a process that has opened a browser the event loop of Playwright is running, and asyncio
    allows no second one there.
    """

    async def run():
        async with asyncio.timeout(seconds):
            return await coroutine

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, run()).result()
