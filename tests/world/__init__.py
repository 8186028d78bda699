"""Parties with files and a job, for every test that needs some: tests/README.md shows how to write one."""

from tests.world.world import World

__all__ = ["World"]
