"""Machine code that each forked party would make for itself: for products mod the squares of keys of two sizes."""

from blindfit.algorithms.paillier.ifma import vector_unit

for bits in (512, 2048):
    vector_unit((1 << 2 * bits) - 1)
