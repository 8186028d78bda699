"""The last of what the parent of all forked parties imports: machine code that each would make for itself, for products
mod the squares of keys of two sizes; and a collector that leaves alone, and unwritten, what all of them share.
"""

import gc

from blindfit.algorithms.paillier.ifma import vector_unit

for bits in (512, 2048):
    vector_unit((1 << 2 * bits) - 1)
gc.collect()
gc.freeze()
