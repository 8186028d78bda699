"""`blindfit run`: real processes, real TLS, real files; what a user sees in success and failure."""

from __future__ import annotations

import json

import pytest

from blindfit import load_model
from tests.processes.reading import error_line


def test_a_run_leaves_a_model_and_reports(ran):
    model = load_model(ran.path("out/shop/model.json"))
    assert model.feature_weights["f0"] > 0.5 > model.feature_weights["f1"]
    report = json.loads(ran.path("out/report.json").read_text())
    assert report["session"].startswith("test-")
    assert "epsilon" in ran.path("out/report.html").read_text()
    scores = ran.path("out/shop/held_out_scores.csv").read_text().splitlines()
    assert scores[0].replace('"', "") == "id,probability"
    assert len(scores) > 200


def test_the_same_job_again_costs_nothing_and_gives_the_same_model(ran):
    second = ran.blindfit("run", "job.toml", "--out", "two")
    assert second.returncode == 0, second.stderr
    models = [json.loads(ran.path(f"{out}/shop/model.json").read_text())["weights"] for out in ("out", "two")]
    assert models[0] == models[1]
    shown = ran.blindfit("ledger", "meter.toml")
    assert "shop" in shown.stdout
    assert "people/labels" in shown.stdout
    exported = ran.blindfit("ledger", "meter.toml", "--export", "chain.jsonl")
    assert exported.returncode == 0
    assert len(ran.path("chain.jsonl").read_text().splitlines()) == 1
    assert ran.blindfit("ledger", "chain.jsonl", "--verify").returncode == 0


def test_a_tampered_export_is_noticed(ran):
    ran.blindfit("ledger", "meter.toml", "--export", "chain.jsonl")
    ran.edit("chain.jsonl", '"epsilon":1.0', '"epsilon":0.5')
    verified = ran.blindfit("ledger", "chain.jsonl", "--verify")
    assert verified.returncode == 1
    assert "entry 1 is wrong" in error_line(verified)


def test_a_job_over_the_budget_is_refused_in_one_line_before_any_row(ran):
    again = ("--set", "privacy.release=second", "--set", "privacy.epsilon=1.9")
    refused = ran.blindfit("run", "job.toml", "--out", "out2", *again)
    assert refused.returncode == 1
    assert error_line(refused).startswith("error: the budget of people would be passed: epsilon 1 of 2 is spent")
    assert "send rows" not in refused.stdout


def test_policy_refuses_before_the_session_starts(project):
    refused = project.blindfit("run", "job.toml", "--set", "privacy.epsilon=3")
    assert refused.returncode == 1
    assert error_line(refused) == "error: meter refuses the job: privacy.epsilon: 3 is more than its max_epsilon = 2"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("u8,", "u7,", "row 9 (line 10), column id: the id is that of row 8 (line 9) again"),
        ("f2", "f0", "f0"),
    ],
)
def test_bad_features_are_named(project, old, new, expected):
    text = project.path("rows.csv").read_text()
    project.path("rows.csv").write_text(text.replace(old, new, 1))
    refused = project.blindfit("run", "job.toml")
    assert refused.returncode == 1
    assert "rows.csv" in error_line(refused)
    assert expected in error_line(refused)
    assert "Traceback" not in refused.stderr


def set_last_value(project, row: int, value: str) -> None:
    lines = project.path("rows.csv").read_text().splitlines()
    lines[row] = lines[row].rsplit(",", 1)[0] + f",{value}"
    project.path("rows.csv").write_text("\n".join(lines) + "\n")


def test_a_value_that_is_no_number_is_named_but_not_shown(project):
    set_last_value(project, 500, "secret-canary")
    refused = project.blindfit("run", "job.toml")
    assert "column f3" in error_line(refused)
    assert "500" in error_line(refused)
    assert "canary" not in refused.stderr + refused.stdout


def test_a_missing_value_is_named(project):
    set_last_value(project, 40, "")
    refused = project.blindfit("run", "job.toml")
    assert "row 40" in error_line(refused)
    assert "column f3" in error_line(refused)


def test_a_missing_label_column_is_named(project):
    project.edit("meter.toml", 'label = "label"', 'label = "lable"')
    refused = project.blindfit("run", "job.toml")
    assert "labels.csv" in error_line(refused)
    assert "lable" in error_line(refused)


def test_what_a_party_has_to_say_of_its_labels_is_said_where_it_is_run(project):
    """The message is not a refusal: a party in the middle of a job would learn about labels from one."""
    project.edit("meter.toml", 'label = "label"', 'label = "label"\npositive = "yes"')
    done = project.blindfit("run", "job.toml", "--out", "out")
    assert "meter: no row has the text 'yes', which stands for label 1: correct datasets." in done.stdout
    assert "no row has" not in project.blindfit("run", "job.toml", "--out", "quiet", "--quiet").stdout
    assert json.loads(project.blindfit("run", "job.toml", "--out", "document", "--json").stdout)


def test_an_id_that_the_server_does_not_know(project):
    for number in range(700, 706):  # some of them are trained on, and so are sent
        project.edit("rows.csv", f"u{number},", f"stranger{number},")
    refused = project.blindfit("run", "job.toml")
    # an operator who runs all parties has all logs
    assert "has an id that the table of labels does not have" in error_line(refused)


def test_a_missing_file_says_who_makes_it(project):
    project.path("rows.csv").unlink()
    refused = project.blindfit("run", "job.toml")
    assert "rows.csv" in error_line(refused)
    assert "does not exist" in error_line(refused)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "privacy.epsilom=1",
            "error: job.toml with --set privacy.epsilom: privacy.epsilom is not an option; did you mean epsilon?",
        ),
        ("privacy.epsilon=-1", "error: job.toml with --set privacy.epsilon: privacy.epsilon: must be above 0"),
        ("privacy.epsilon=nan", "error: job.toml with --set privacy.epsilon: privacy.epsilon: "),
        ("walr.solver=lbfgs", ""),
        ("walr.rate=0.1", "error: job.toml with --set walr.rate: walr: rate: "),
        ("privacy.mechanism=classic", "error: job.toml with --set privacy.mechanism: privacy: "),
        ("nonsense", "error: --set nonsense: not of the form key.path=value"),
        ("protocol=nonsense", "error: job.toml with --set protocol: protocol: "),
    ],
)
def test_options_act_or_are_refused(project, override, expected):
    shown = project.blindfit("show", "job.toml", "--set", override)
    if expected:
        assert shown.returncode == 2
        assert error_line(shown).startswith(expected)
    else:
        assert 'solver = "lbfgs"' in shown.stdout


def test_show_gives_every_default_and_reads_back(project):
    shown = project.blindfit("show", "job.toml")
    assert 'frac_bits = "auto"' in shown.stdout
    assert "# walr.rate is not set" in shown.stdout
    project.path("again.toml").write_text(shown.stdout)
    assert project.blindfit("show", "again.toml").stdout == shown.stdout


def test_check_says_what_it_sees_and_refuses(project):
    fine = project.blindfit("check", "job.toml")
    assert fine.returncode == 0, fine.stdout
    assert "rows to train on" in fine.stdout
    assert "labels is not published" in fine.stdout
    project.edit("rows.csv", "u8,", "u7,")
    twice = project.blindfit("check", "job.toml")
    assert twice.returncode == 1
    assert "the id is that of row 8 (line 9) again" in " ".join(twice.stdout.split())
    project.edit("rows.csv", "u7,", "u8,")
    assert "sees the ids" in fine.stdout
    bad = project.blindfit("check", "job.toml", "--set", "privacy.epsilon=4")
    assert bad.returncode == 1
    assert "refuses" in bad.stdout


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gradient-descent", "hybrid-minibatch"])
def test_every_solver_ends_near_the_same_weights(ran, solver):
    other = ran.blindfit("run", "job.toml", "--out", "other", "--set", f"walr.solver={solver}")
    assert other.returncode == 0, other.stderr
    weights = [load_model(ran.path(f"{o}/shop/model.json")).feature_weights for o in ("out", "other")]
    for name in weights[0]:
        assert weights[0][name] == pytest.approx(weights[1][name], abs=0.05)


def test_a_run_keeps_its_keys_locked_and_what_it_wrote_is_purged(project):
    """This holds although a party's file does not name --out, and another key stands in for that of its passphrase."""
    project.path("words").write_text("four random words here")
    project.edit("meter.toml", "[identity]", '[identity]\npassphrase_file = "words"')
    done = project.blindfit("run", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert b"ENCRYPTED" in project.path("state/meter/receipt_key.pem").read_bytes()
    session = json.loads(project.path("out/report.json").read_text())["session"]
    written = [project.path(f"out/shop/{name}") for name in ("model.json", "report.json", "held_out_scores.csv")]
    assert all(path.exists() for path in written)
    purged = project.blindfit("purge", "shop.toml", session, "--yes")
    assert purged.returncode == 0, purged.stderr
    assert all(f"removed {path.relative_to(project.root)} (" in purged.stdout for path in written)
    assert not any(path.exists() for path in written)
    assert project.blindfit("run", "job.toml", "--out", "out").returncode == 0  # for nothing: the server remembers
    assert len(project.blindfit("ledger", "meter.toml", "--export", "c").stdout.split("1 entry;")) == 2
