"""Paillier vectors by themselves: keys, encryption, sums of products, packing, threshold decryption.

The examples start with these lines::

    from blindfit import paillier
    key = paillier.generate_private_key()
    randomisers = paillier.randomisers_for(key.public_key, maker_trusted=True)
"""

from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.interop import (
    private_key_from_phe,
    private_key_to_phe,
    public_key_from_phe,
    public_key_to_phe,
    vector_from_phe,
    vector_to_phe,
)
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, generate_private_key
from blindfit.algorithms.paillier.packing import Layout, PackedVector, decrypt_packed, encrypt_packed, pack
from blindfit.algorithms.paillier.randomisers import (
    FullExponent,
    OwnKey,
    RandomiserPool,
    ShortExponent,
    randomisers_for,
)
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.threshold import KeyShare, PartialDecryption, combine, deal, partial_decrypt
from blindfit.algorithms.paillier.vectors import EncryptedVector, concatenate, decrypt, encrypt
from blindfit.parties.work.compute import ComputeSettings, open_workers

__all__ = [
    "Ciphertext",
    "ComputeSettings",
    "EncryptedVector",
    "Fixed",
    "FreshCiphertext",
    "FullExponent",
    "KeyShare",
    "Layout",
    "OwnKey",
    "PackedVector",
    "PartialDecryption",
    "PrivateKey",
    "PublicKey",
    "RandomiserPool",
    "ReceivedCiphertext",
    "ShortExponent",
    "check_public_key",
    "columns_dot",
    "combine",
    "concatenate",
    "deal",
    "decrypt",
    "decrypt_packed",
    "encrypt",
    "encrypt_packed",
    "generate_private_key",
    "open_workers",
    "pack",
    "partial_decrypt",
    "private_key_from_phe",
    "private_key_to_phe",
    "public_key_from_phe",
    "public_key_to_phe",
    "randomisers_for",
    "rows_dot",
    "vector_from_phe",
    "vector_to_phe",
]
