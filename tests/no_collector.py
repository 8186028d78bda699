"""Imported before everything else by the parent of all forked parties: nothing that is imported is garbage."""

import gc

gc.disable()
