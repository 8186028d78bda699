"""The last of what the parent of all forked parties imports: machine code that each would make for itself, for products
mod the square of any key; and a collector that leaves alone, and unwritten, what all of them share.
"""

import gc

from blindfit.algorithms.paillier.ifma import vector_unit

vector_unit((1 << 2048) - 1)
gc.collect()
gc.freeze()
