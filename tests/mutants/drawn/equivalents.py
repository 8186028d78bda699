"""Drawn mutants whose change no test can notice, and why."""

from __future__ import annotations

EQUIVALENT = {
    (
        "algorithms/privacy/noisy_iterations.py",
        "guess = max(without_sampling * privacy.batch_fraction, _LEAST_GUESS)",
        "min",
    ): "A search begins there. It finds the same root, in more steps.",
    (
        "algorithms/privacy/privacy_losses.py",
        "while high < MOST_MULTIPLIER and reveals_as_much(high):",
        "(high < MOST_MULTIPLIER or reveals_as_much(high))",
    ): "A search begins with a higher end. It finds the same root, in more steps.",
    (
        "algorithms/protocols/walr/shared_rows.py",
        "for block, ((rows, _), rows_of_block) in enumerate(zip(blocks, self.dealt.plan.blocks, strict=True)):",
        "zip(blocks, self.dealt.plan.blocks)",
    ): "Both have an item for each block of one plan.",
    (
        "algorithms/sharing/descent.py",
        'hidden = [truncation.mask(party.holder, share, one["r"]) '
        "for one, (_, share, _) in zip(dealt, asked, strict=True)]",
        "zip(dealt, asked)",
    ): "The first is made of the second, item by item.",
    (
        "algorithms/sharing/products.py",
        'return {"c": f.multiply(arrays["a"], arrays["b"])}',
        "(f.multiply(arrays['b'], arrays['a']))",
    ): "A product of the field is the same in both orders.",
    (
        "algorithms/sharing/shares.py",
        "return self._each(lambda part: np.take_along_axis(part, places, axis=1))",
        "np.take_along_axis(part, places)",
    ): "The arrays have two dimensions, and the default is the last. NumPy before 2.3 has none: `make lowest` fails.",
    (
        "parties/measurement/client.py",
        "reconnect_s: float = 30.0,",
        "(30.0 - 1)",
    ): "Every party passes its own timeout.",
    (
        "parties/measurement/label_index.py",
        "if self._counts is None or self._cap is None:",
        "(self._counts is None and self._cap is None)",
    ): "Persons are counted where there is a bound, and only there: both are None, or neither is.",
    (
        "parties/measurement/label_index_build.py",
        "COPIED_BYTES = 1 << 22  # at a time",
        "(1 >> 22)",
    ): "shutil.copyfileobj takes a size of its own in the place of 0, and the copy is the same.",
    (
        "parties/wire/link.py",
        "return False",
        "ack",
    ): "The object that ends a stream, grpc.aio.EOF, is false.",
}
"""The reasons, by the file, the line in which the change begins, and the text that is there afterwards."""
