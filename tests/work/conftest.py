from tests.forked_pool import processes_are_forked

__all__ = ["processes_are_forked"]
