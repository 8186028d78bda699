"""Simulate systems on one table that is cut into parties."""
