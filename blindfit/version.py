"""The version of Blindfit, which every part may import without the rest."""

__version__ = "0.1.0"
