"""Paillier's cryptosystem: keys, vectors of ciphertexts, and sums of products under encryption."""
