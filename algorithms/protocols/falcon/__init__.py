"""Falcon: training in which nobody sees a gradient, a score or a residual."""
