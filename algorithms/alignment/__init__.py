"""Find the rows of several parties that belong together, by equal ids or by likeness, before training starts."""
