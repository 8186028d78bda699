"""Keys, ciphertexts, packing and decryption."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECRYPTION = "tests/paillier/test_decryption.py"
KEY_CHECKS = "tests/paillier/test_key_checks.py"
KEYS = "tests/paillier/test_keys.py"
UNRANDOMISED = "tests/paillier/test_nothing_unrandomised.py"
PACKING = "tests/paillier/test_packing.py"
VECTORS = "tests/paillier/test_vectors.py"
FIXED = "tests/paillier/test_fixed.py"
RANDOMISERS = "tests/paillier/test_randomisers.py"
THRESHOLD = "tests/paillier/test_threshold.py"

MUTANTS = (
    # --- what is decrypted
    Mutant(
        "ciphertexts-that-share-a-factor",
        (8,),
        "blindfit.algorithms.paillier.ciphertext_checks:check_ciphertexts",
        "if gmpy2.gcd(product, n) != 1:",
        "if product == 0:",
        (f"{DECRYPTION}::test_an_invalid_ciphertext_is_refused_wherever_it_stands",),
    ),
    Mutant(
        "ciphertexts-past-the-square",
        (8,),
        "blindfit.algorithms.paillier.ciphertext_checks:check_ciphertexts",
        "if not 0 < integer < n_squared:",
        "if not 0 < integer:",
        (f"{DECRYPTION}::test_an_invalid_ciphertext_is_refused_wherever_it_stands",),
    ),
    Mutant(
        "decrypted-unchecked",
        (8,),
        "blindfit.algorithms.paillier.keys:PrivateKey._valid",
        "        check_ciphertexts(self.public_key.n, integers)\n",
        "",
        (f"{DECRYPTION}::test_an_invalid_ciphertext_is_refused_wherever_it_stands",),
    ),
    Mutant(
        "partly-decrypted-unchecked",
        (8,),
        "blindfit.algorithms.paillier.threshold:partial_decrypt",
        "    check_ciphertexts(share.public_key.n, integers)\n",
        "",
        (f"{THRESHOLD}::test_a_bad_ciphertext_is_never_raised_to_a_share",),
    ),
    Mutant(
        "bases-of-a-peers-choice",
        (8,),
        "blindfit.algorithms.paillier.keys:PrivateKey.decrypt_residues",
        "return self._plaintexts(self._blind(self._valid(residues), uniform), threads)",
        "return self._plaintexts(self._valid(residues), threads)",
        (f"{DECRYPTION}::test_no_base_of_a_peers_choice_meets_the_private_key",),
    ),
    # --- keys
    Mutant(
        "small-keys",
        (9,),
        "blindfit.algorithms.paillier.key_checks:_modulus_fault",
        "if not min_bits <= n.bit_length() <= MOST_BITS:",
        "if not n.bit_length() <= MOST_BITS:",
        (f"{KEY_CHECKS}::test_small_keys_are_refused_unless_the_checker_asks_for_them",),
    ),
    Mutant(
        "moduli-with-small-factors",
        (9,),
        "blindfit.algorithms.paillier.key_checks:_modulus_fault",
        "if key_proof.has_small_factor(n):",
        "if n % 3 == 0:",
        (f"{KEY_CHECKS}::test_malformed_moduli_are_refused",),
    ),
    Mutant(
        "prime-moduli",
        (9,),
        "blindfit.algorithms.paillier.key_checks:_modulus_fault",
        "if gmpy2.is_prime(n, PRIME_ROUNDS):",
        "if n == 2:",
        (f"{KEY_CHECKS}::test_malformed_moduli_are_refused",),
    ),
    Mutant(
        "hs-that-hides-nothing",
        (9, 10),
        "blindfit.algorithms.paillier.key_checks:_hs_fault",
        "if hs % n in (1, n - 1):",
        "if hs % n == n - 1:",
        (f"{KEY_CHECKS}::test_a_malformed_hs_is_refused_where_it_would_be_used_and_harmless_where_not",),
    ),
    Mutant(
        "keys-without-a-proof",
        (9, 10),
        "blindfit.algorithms.paillier.key_checks:_proof_fault",
        'return "" if key_proof.verify(key.n, key.proof) else NO_PROOF',
        'return "" if key.proof else NO_PROOF',
        (KEY_CHECKS,),
    ),
    Mutant(
        "received-key-not-checked",
        (9,),
        "blindfit.algorithms.protocols.taylor.roles:run_key_exchange",
        "    check_public_key(key, min_bits=key_bits, maker_trusted=maker_trusted, culprit=key_node)\n",
        "",
        ("tests/taylor/test_faults.py::test_a_bad_public_key_is_refused_before_anything_is_encrypted",),
    ),
    # --- what is sent
    Mutant(
        "re-randomising-skipped",
        (10,),
        "blindfit.algorithms.paillier.ciphertexts:randomize",
        "products = kernel.products(ciphertext.residues, randomisers.draw(len(ciphertext)))",
        "products = ciphertext.residues",
        (f"{UNRANDOMISED}::test_two_runs_share_no_ciphertext",),
    ),
    Mutant(
        "one-mod-n-is-sent",
        (10,),
        "blindfit.algorithms.paillier.ciphertexts:FreshCiphertext.to_wire",
        "if any(integer % n == 1 for integer in integers):",
        "if any(integer == 1 for integer in integers):",
        (f"{UNRANDOMISED}::test_one_mod_n_is_not_sent",),
    ),
    Mutant(
        "randomisers-used-again",
        (10,),
        "blindfit.algorithms.paillier.randomisers:RandomiserPool.draw",
        "drawn.append(self._made.popleft())",
        "drawn.append(self._made[0])",
        (f"{RANDOMISERS}::test_a_pool_gives_each_randomiser_once",),
    ),
    Mutant(
        "results-fit-in-messages",
        (10, 12),
        "blindfit.parties.wire.codec:_numbers_mod_n_squared",
        "if type(value) is not ours:",
        'if not hasattr(value, "to_wire"):',
        ("tests/wire/test_codec.py::test_only_what_was_made_to_be_sent_is_sent",),
    ),
    # --- overflow
    Mutant(
        "a-bit-too-many-in-a-slot",
        (11,),
        "blindfit.algorithms.paillier.packing:Layout.check_bound",
        "if bound >= 1 << (self.slot_bits - 1):",
        "if bound >= 1 << self.slot_bits:",
        (f"{PACKING}::test_what_could_spill_is_refused_before_it_is_computed",),
    ),
    Mutant(
        "a-slot-too-many",
        (11,),
        "blindfit.algorithms.paillier.packing:Layout.of",
        "slots = (public_key.bits - 2) // max(1, slot_bits)",
        "slots = (public_key.bits - 2) // max(1, slot_bits) + 1",
        (f"{PACKING}::test_a_layout_has_as_many_slots_as_fit",),
    ),
    Mutant(
        "sums-past-half-the-modulus",
        (11,),
        "blindfit.algorithms.paillier.vectors:check_fits",
        "if 2 * bound >= public_key.n:",
        "if bound >= public_key.n:",
        (f"{VECTORS}::test_the_largest_numbers_fit_and_the_next_do_not",),
    ),
    Mutant(
        "64-bit-integers-wrap",
        (11,),
        "blindfit.algorithms.fixed_point:_wide",
        "return left.values if bound < 2**MAX_BITS else left.values.astype(object)",
        "return left.values",
        (f"{FIXED}::test_64_bit_integers_never_wrap",),
    ),
    Mutant(
        "decrypted-past-the-bound",
        (8, 11),
        "blindfit.algorithms.paillier.vectors:to_fixed",
        "if any(not -bound <= plaintext <= bound for plaintext in plaintexts):",
        "if any(not -bound <= plaintext for plaintext in plaintexts):",
        (f"{VECTORS}::test_a_decrypted_number_past_the_bound_is_refused",),
    ),
    Mutant(
        "noisy-sums-past-64-bits",
        (11,),
        "blindfit.algorithms.protocols.walr.request:step_2_check",
        "require(reach < 2**63,",
        "require(reach < 2**64,",
        ("tests/walr/test_steps.py::test_whatever_is_admitted_fits",),
    ),
    # --- texts
    Mutant(
        "a-share-of-the-key-in-a-text",
        (19,),
        "blindfit.algorithms.paillier.threshold:KeyShare.exponent",
        "exponent: int = field(repr=False)",
        "exponent: int = field()",
        (f"{THRESHOLD}::test_no_text_shows_an_exponent",),
    ),
    Mutant(
        "factors-in-a-text",
        (19,),
        "blindfit.algorithms.paillier.keys:PrivateKey.__repr__",
        'return f"PrivateKey({self.public_key.bits} bits, {self.public_key.fingerprint[:16]})"',
        'return f"PrivateKey({self.p}, {self.public_key.fingerprint[:16]})"',
        (f"{KEYS}::test_nothing_secret_is_in_a_text",),
    ),
)
