"""Evaluation of a model on rows whose labels a measurement server holds."""
