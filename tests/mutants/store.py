"""A party's database over versions: migrated once and whole, and what was asked before stays what it was."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MIGRATIONS = "tests/store/test_migrations.py"
DIGESTS = "tests/store/test_digests.py"

LOST = "tests/keeping/test_lost_database.py"

CLOSING = "tests/store/test_closing.py"

MUTANTS = (
    *(
        Mutant(name, (1, 21), f"blindfit.parties.store.database:{definition}", before, after, (f"{CLOSING}::{test}",))
        for name, definition, before, after, test in (
            (
                "a-connection-is-closed-under-its-thread",
                "Store.close",
                "            self._left.wait_for(lambda: not self._inside)\n",
                "",
                "test_close_waits_for_a_thread_that_is_inside",
            ),
            (
                "a-closed-database-is-opened-again",
                "Store._open",
                "            if self._is_closed:",
                "            if False:",
                "test_a_thread_that_comes_later_is_refused",
            ),
        )
    ),
    *(
        Mutant(
            name,
            (1, 21),
            f"blindfit.parties.store.losses:{definition}",
            before,
            after,
            (f"{LOST}::{test}",),
        )
        for name, definition, before, after, test in (
            (
                "keys-without-a-database",
                "begin",
                "if has_rows or not any((*_keys(folder), *_snapshots(folder))):",
                "if True:",
                "test_a_party_that_lost_its_database_does_not_start",
            ),
            (
                "a-snapshot-that-the-database-does-not-know",
                "find_unexplained",
                "sorted(set(snapshots) - reader.list_snapshots())",
                "()",
                "test_another_loss_is_refused_again",
            ),
            (
                "one-reason-for-every-loss",
                "find_unexplained",
                "return [path for path in found if path not in acknowledged]",
                "return [] if acknowledged - {BEGUN} else found",
                "test_another_loss_is_refused_again",
            ),
        )
    ),
    Mutant(
        "two-processes-migrate-twice",
        (1, 21),
        "blindfit.parties.store.migrations:migrate",
        "for step in MIGRATIONS[version_of(database) :]:",
        "for step in MIGRATIONS:",
        (f"{MIGRATIONS}::test_a_database_that_many_open_at_once_is_migrated_once",),
    ),
    Mutant(
        "half-a-migration-stays",
        (1, 21),
        "blindfit.parties.store.migrations:migrate",
        '        database.execute("ROLLBACK")\n',
        '        database.execute("COMMIT")\n',
        (f"{MIGRATIONS}::test_a_migration_that_fails_changes_nothing_and_can_be_tried_again",),
    ),
    Mutant(
        "a-later-database-is-opened",
        (1, 21, 23),
        "blindfit.parties.store.migrations:check_known",
        "if (found := version_of(database)) > newest():",
        "if (found := version_of(database)) > newest() + 1:",
        (f"{MIGRATIONS}::test_a_database_of_a_later_version_is_refused_and_left_as_it_is",),
    ),
    Mutant(
        "a-process-from-before-a-migration-writes",
        (1, 23),
        "blindfit.parties.store.database:Store.transaction",
        "                    self._check_version()\n",
        "",
        (f"{MIGRATIONS}::test_a_process_from_before_a_migration_writes_nothing_after_it",),
    ),
    Mutant(
        "a-new-option-makes-every-question-a-new-one",
        (1, 26),
        "blindfit.algorithms.digest_format:DigestFormat.fields",
        " if n not in self.added or value != self.added[n]}",
        "}",
        (f"{DIGESTS}::test_a_job_has_the_same_digests_after_options_were_renamed_added_and_removed",),
    ),
    Mutant(
        "an-option-that-was-added-and-set-counts-for-nothing",
        (3, 26),
        "blindfit.algorithms.digest_format:DigestFormat.fields",
        " if n not in self.added or value != self.added[n]}",
        " if n not in self.added}",
        (f"{DIGESTS}::test_an_option_that_was_added_is_in_the_digest_once_it_says_something_else",),
    ),
)
