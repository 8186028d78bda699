"""Files on a party's disk are locked, readable only by their owner, and gone when they are purged."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

VAULT = "tests/keeping/test_vault.py"
PURGE = "tests/keeping/test_purge.py"
KEPT = "tests/keeping/test_kept_files.py"
GUARDED = "tests/keeping/test_guarded.py"
SEATS = "tests/vertical/test_seats.py"
ON_THE_DISK = "tests/identity/test_authority.py::test_a_file_that_is_written_has_its_name_on_the_disk"

MUTANTS = (
    # --- keys at rest
    Mutant(
        "checkpoints-not-locked",
        (24,),
        "blindfit.parties.vertical.checkpoints:Checkpoints._write",
        "self._vault.seal(name, written.encode_json(content))",
        "written.encode_json(content)",
        (f"{VAULT}::test_checkpoints_are_locked_and_come_back",),
    ),
    Mutant(
        "key-node-without-the-vault",
        (24,),
        "blindfit.parties.vertical.key_node:KeyNodeSeat.run",
        "Checkpoints.of(self._party.data_dir, session.job, session.id, self._party.vault)",
        "Checkpoints.of(self._party.data_dir, session.job, session.id)",
        (f"{GUARDED}::test_no_key_is_kept_in_the_clear[taylor]",),
    ),
    Mutant(
        "keys-of-the-label-index-not-locked",
        (24,),
        "blindfit.parties.measurement.label_index:write_index",
        "vault.seal(HEADER, Header(table, keys).to_json().encode())",
        "Header(table, keys).to_json().encode()",
        (f"{GUARDED}::test_no_key_is_kept_in_the_clear[label-dp]",),
    ),
    Mutant(
        "keys-of-released-labels-not-locked",
        (24,),
        "blindfit.parties.measurement.label_index_frozen:freeze",
        "vault.seal(HEADER, index.frozen(LABEL).to_json().encode())",
        "index.frozen(LABEL).to_json().encode()",
        (f"{GUARDED}::test_no_key_is_kept_in_the_clear[label-dp]",),
    ),
    Mutant(
        "signing-keys-locked-with-the-passphrase-alone",
        (24,),
        "blindfit.parties.files.vault:Vault.signing_key",
        "return SigningKey.load_or_create(path, self._pem_passphrase)",
        "return SigningKey.load_or_create(path, None)",
        (f"{VAULT}::test_signing_keys_are_locked_with_more_than_the_passphrase",),
    ),
    Mutant(
        "plain-file-taken-for-a-locked-one",
        (24,),
        "blindfit.parties.files.vault:Vault.read",
        "        if not content.startswith(LOCKED):\n            raise _not_locked(path)\n",
        "        if not content.startswith(LOCKED):\n            return content\n",
        (f"{VAULT}::test_a_file_that_is_not_locked_is_not_taken_for_one_that_is",),
    ),
    Mutant(
        "a-locked-file-stands-for-another",
        (24,),
        "blindfit.parties.files.vault:Vault.read",
        "decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], path.name.encode())",
        "decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], b'base.json')",
        (f"{VAULT}::test_a_file_does_not_stand_for_one_of_another_name", VAULT),
    ),
    Mutant(
        "passphrase-hardly-stretched",
        (24,),
        "blindfit.parties.files.vault:STRETCH",
        '"n": 2**15',
        '"n": 2**4',
        (f"{VAULT}::test_the_stretching_costs_what_is_recommended",),
    ),
    Mutant(
        "labels-that-others-can-read",
        (24,),
        "blindfit.parties.files.private_files:open_private",
        "os.open(name, flags, 0o600)",
        "os.open(name, flags, 0o666)",
        (f"{GUARDED}::test_files_are_their_owners_alone_whatever_the_umask[label-dp]",),
    ),
    Mutant(
        "directories-that-others-can-read",
        (24,),
        "blindfit.parties.files.private_files:make_private",
        "missing.mkdir(mode=0o700)",
        "missing.mkdir()",
        (f"{GUARDED}::test_files_are_their_owners_alone_whatever_the_umask[dp-lr]",),
    ),
    # --- power cuts
    Mutant(
        "a-new-name-is-not-on-the-disk",
        (17,),
        "blindfit.parties.files.private_files:write_new",
        "    finally:\n        os.unlink(temporary)\n    sync_directory(path.parent)\n",
        "    finally:\n        os.unlink(temporary)\n",
        (ON_THE_DISK,),
    ),
    Mutant(
        "a-replaced-name-is-not-on-the-disk",
        (17,),
        "blindfit.parties.files.private_files:replace_file",
        "        raise\n    sync_directory(path.parent)\n",
        "        raise\n",
        (ON_THE_DISK,),
    ),
    # --- purging
    Mutant(
        "purged-while-it-runs",
        (17, 24),
        "blindfit.parties.sessions.purge:_check_ended",
        "    if row is not None and row.state not in ENDS:\n",
        "    if row is None:\n",
        (f"{PURGE}::test_a_session_that_has_not_ended_is_refused",),
    ),
    Mutant(
        "checkpoints-purged-under-a-resumed-training",
        (17, 24),
        "blindfit.parties.sessions.purge:find_kept",
        "    _check_ended(reader, reader.session_of_file(os.path.relpath(roots[0], data_dir)))",
        "    _check_ended(reader, session)",
        (f"{PURGE}::test_checkpoints_that_a_running_session_resumed_are_in_use",),
    ),
    Mutant(
        "files-elsewhere-not-purged",
        (24,),
        "blindfit.parties.sessions.purge:find_kept",
        "dict.fromkeys([*roots, *noted])",
        "dict.fromkeys(roots)",
        (f"{PURGE}::test_files_in_a_directory_of_the_operators_are_found_without_its_name",),
    ),
    Mutant(
        "files-of-another-project-purged",
        (24,),
        "blindfit.parties.sessions.purge:_is_strangers",
        "isinstance(writer, str) and reader.session(writer) is None",
        "False and reader.session(str(writer)) is None",
        (f"{PURGE}::test_what_another_partys_job_wrote_to_the_same_place_stays",),
    ),
    Mutant(
        "a-file-forgotten-before-it-is-gone",
        (24,),
        "blindfit.parties.sessions.purge:forget",
        "            if not os.path.lexists(data_dir / path):\n                transaction.forget_file(path)\n",
        "            transaction.forget_file(path)\n",
        (f"{PURGE}::test_a_file_that_is_still_there_is_not_forgotten",),
    ),
    # --- whose a file is
    Mutant(
        "noted-before-it-is-written",
        (17, 24),
        "blindfit.parties.sessions.kept_files:write",
        "            transaction.begin_file(begun)",
        "            transaction.note_file(begun.path, session)",
        (f"{KEPT}::test_a_job_whose_disk_is_full_takes_nothing_over",),
    ),
    Mutant(
        "whoever-was-killed-has-what-it-had-begun",
        (17, 24),
        "blindfit.parties.sessions.kept_files:_settle",
        "is_written = _sha256(data_dir / one.path) == one.sha256",
        'is_written = _sha256(data_dir / one.path) != ""',
        (f"{KEPT}::test_whoever_is_killed_has_what_it_wrote_and_no_more",),
    ),
    Mutant(
        "a-file-of-one-that-was-killed-is-nobodys",
        (17, 24),
        "blindfit.parties.sessions.kept_files:files_of",
        "    settle(store, data_dir)\n    reader = store.reader()\n",
        "    reader = store.reader()\n",
        (f"{KEPT}::test_whoever_is_killed_has_what_it_wrote_and_no_more",),
    ),
    Mutant(
        "the-same-bytes-are-whose-they-were-not-yet",
        (17, 24),
        "blindfit.parties.sessions.kept_files:write",
        "    if _sha256(path) != begun.sha256:\n",
        "    if begun.sha256:\n",
        (f"{KEPT}::test_the_same_bytes_stay_the_earlier_sessions_until_they_are_noted",),
    ),
    Mutant(
        "what-is-being-replaced-is-purged",
        (17, 24),
        "blindfit.parties.sessions.kept_files:files_of",
        "in reader.files_of(session) if path not in begun]",
        "in reader.files_of(session) if path or begun]",
        (f"{KEPT}::test_what_a_running_session_is_about_to_replace_is_not_purged",),
    ),
    # --- a job that is stopped
    Mutant(
        "terminated-by-what-a-callback-may-drop",
        (17,),
        "blindfit.coordinator.running.driving:_terminates",
        "    loop.add_signal_handler(signal.SIGTERM, task.cancel)\n",
        "",
        ("tests/processes/test_terminated.py",),
    ),
    Mutant(
        "a-program-cancels-only-what-already-runs",
        (17,),
        "blindfit.coordinator.running.watcher:Stop.cancels",
        "        if self.is_asked:\n            task.cancel()\n",
        "",
        ("tests/python_calls/test_stop.py",),
    ),
    # --- a training that goes on; persons
    Mutant(
        "resumed-with-new-noise",
        (5, 17),
        "blindfit.parties.taylor.key_node:noise_key_of",
        "session.question, drawn.encode(), slots)",
        "session.id.encode(), drawn.encode(), slots)",
        ("tests/vertical/test_resumed.py",),
    ),
    Mutant(
        "rows-promised-of-persons",
        (22,),
        "blindfit.parties.training.unit:refuse_persons",
        "if dataset.person is not None:",
        "if dataset.person == dataset.id:",
        (f"{SEATS}::test_label_dp_of_rows_is_not_promised_of_persons",),
    ),
)
