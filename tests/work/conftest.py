from tests.forked_pool import _processes_are_forked  # noqa: F401
