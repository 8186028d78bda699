from tests.curve_points import on_the_curve
from tests.forked_pool import _processes_are_forked

__all__ = ["_processes_are_forked", "on_the_curve"]
