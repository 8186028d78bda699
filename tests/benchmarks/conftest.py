from tests.curve_points import on_the_curve
from tests.forked_pool import processes_are_forked

__all__ = ["on_the_curve", "processes_are_forked"]
