"""Waiting for tasks that succeed or fail together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any


async def failures_of(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException]:
    """Wait for the tasks until one fails, cancel the others, and return the failures, in the order of the tasks."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        failures = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    return failures
