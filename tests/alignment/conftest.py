from tests.curve_points import on_the_curve

__all__ = ["on_the_curve"]
