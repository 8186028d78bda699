"""Which rows of several parties belong together, before anything is trained on them: by equal ids, or by likeness."""
