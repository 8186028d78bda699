"""Files that `blindfit init` writes: no password, nothing that only rows know, and a revocation list
that must exist.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SOURCES = "tests/init/test_sources.py"
PUBLIC = "tests/init/test_public_facts.py"

MUTANTS = (
    Mutant(
        "init-writes-the-password",
        (19,),
        "blindfit.coordinator.init.places:Place.url_from",
        "url = url._replace(password=None)",
        "url = url.set(database=url.database)",
        (f"{SOURCES}::test_no_password_is_shown_or_written",),
    ),
    Mutant(
        "init-writes-a-password-among-the-options",
        (19,),
        "blindfit.coordinator.init.places:_is_secret",
        "any(word in option.lower() for word in SECRETS)",
        "option == 'passfile'",
        (f"{SOURCES}::test_no_password_is_shown_or_written",),
    ),
    Mutant(
        "init-declares-levels-of-private-rows",
        (5,),
        "blindfit.coordinator.init.public_facts:agree",
        "why = {name: NO_LEVELS for name in private.categories if public is None and name not in known_levels}",
        "why: dict[str, str] = {}",
        (f"{PUBLIC}::test_bounds_leave_out_texts_whose_levels_only_the_rows_know",),
    ),
    Mutant(
        "init-fills-gaps-of-private-rows",
        (5,),
        "blindfit.coordinator.init.public_facts:agree",
        "    why |= dict.fromkeys(private.gaps, GAP)\n",
        "",
        (f"{PUBLIC}::test_a_column_with_a_gap_is_left_out_of_both",),
    ),
    Mutant(
        "init-takes-private-rows-for-public-ones",
        (5,),
        "blindfit.coordinator.init.command:_with_public_facts",
        "if place.url_from(Path()) == private.place.url_from(Path()):",
        "if not place.word:",
        (f"{PUBLIC}::test_what_is_not_public_is_asked_for",),
    ),
    Mutant(
        "init-names-no-revocation-list",
        (15,),
        "blindfit.coordinator.init.files:_identity",
        ', "revoked": "crl"}',
        "}",
        ("tests/identity/test_revoked_in_jobs.py::test_a_party_whose_file_names_a_list_does_not_start_without_it",),
    ),
)
