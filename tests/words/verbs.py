"""The verbs that a function's docstring may open with."""

from __future__ import annotations

import re

VERBS = frozenset(
    """
    abort accept account acknowledge act adapt add adjust admit advance agree align allocate allow analyse announce
    answer append apply approve approximate arrange ask assemble assert assign attach attack authenticate await back
    balance begin benchmark bind blame block bound break bring broadcast build cache calculate calibrate call cancel
    carry cast catch change charge check choose clamp clean clear clip close coerce collect combine commit compare
    compile complete compose compress compute concatenate configure confirm connect construct consume continue
    convert copy correct count cover create cross cut deal debias decide declare decline decode decompress decrypt
    deduce define delay delete deliver demand deny derive describe deserialize destroy detach detect determine
    digest disable discard disconnect display distinguish distribute divide do double draw drive drop dump edit
    embed emit empty enable encode encrypt end enforce enter enumerate erase escape establish estimate evaluate
    examine exchange exclude execute exit expand expect explain export express extend extract fail fetch fill filter
    find finish fit fix flatten flip flush fold follow forbid forecast forget fork form format forward free freeze
    gather generate get give go grant group guard guess halve handle hash have help hide hold identify ignore import
    improve include increase increment infer inform initialise initialize insert inspect install interleave
    interpolate interpret interrupt intersect introduce invert invoke issue iterate join keep kill label launch lay
    lead leave lend let limit link list listen load locate lock log look lower make map mark mask match maximise
    measure mend merge migrate minimise mirror mix model modify monitor move multiply name narrow negate negotiate
    normalise note notice notify number obey observe obtain offer omit open operate order own pack pad pair parse
    partition pass patch pause perform permute pick place plan play plot point pool prepare present preserve pretend
    prevent print probe proceed process produce project promise propagate prove provide prune publish pull purge
    push put query quote raise randomise range rank reach read rebuild recall receive recognise recompute reconnect
    reconstruct record recover reduce refer refill refresh refuse register rehearse reject relay release reload
    remember remove rename render renew reorder repeat replace replay report represent request require rerandomise
    rerandomize rescale reserve reset reshape resolve respond restart restore restrict resume retrain retry return
    reuse reveal reverse revoke rewrite rotate round route run sample save scale scan schedule score search seed
    select send separate serialise serialize serve set settle share shift shorten show shrink shuffle shut sign
    simulate skip sleep slice slow solve sort specify split square stack stamp standardise start state stop store
    stream strip study submit subtract suggest sum summarise supply support suspend swap sweep switch take tamper
    terminate test tie time trace track train transfer transform translate transpose traverse treat trim truncate
    try turn type uncompress undo unify unlock unpack unwrap update upgrade upload use validate verify view visit
    wait wake walk warn watch weigh weight wipe withdraw wrap write yield zero zip
    """.split()  # noqa: SIM905
)
SECTIONS = ("Raises:", "Step", "Steps", "Yields:", "Returns:")
"""Docstrings that are only a section, or that quote a step of a protocol, open with these."""

FORMULA = re.compile(r"\W*[\w.'^]{0,12}\W*(?:[=<>(^\[{*/+|]|\bin\b|->)|\W*X\b")
"""A text such as "X = X + X", "E[x] = 0" or "n^2 in Z_n"; X stands for code."""


def opens_with_a_verb(text: str) -> bool:
    """Return True if a docstring opens with a verb in the imperative, a section, or a formula."""
    first = text.split()[0] if text.split() else ""
    return first.strip("*_\"'(,.:;").lower() in VERBS or first in SECTIONS or FORMULA.match(text) is not None
