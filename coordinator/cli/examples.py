"""Examples that end the help of each command."""

from __future__ import annotations

import typer

EXAMPLES = {
    "init": (
        "blindfit init --system taylor hospital.csv laboratory.csv --label malignant",
        "blindfit init --system dp-lr visits.csv --label saw_doctor --bounds age:0:110 --out joint",
    ),
    "import-falcon": ("blindfit import-falcon falcon_job.json --out joint",),
    "check": (
        "blindfit check examples/walr/job.toml",
        "blindfit check examples/walr/job.toml --set privacy.epsilon=0.5",
    ),
    "plan": (
        "blindfit plan examples/walr/job.toml --base-rate 0.7",
        "blindfit plan examples/walr/job.toml --epsilon 0.5 --epsilon 2 --wanted 0.95",
    ),
    "run": (
        "blindfit run examples/walr/job.toml",
        "blindfit run examples/taylor/job.toml --rehearse --network '40ms 100mbit'",
    ),
    "submit": ("blindfit submit job.toml --out runs/churn",),
    "predict": ("blindfit predict joint/predict.toml --model joint/run",),
    "evaluate": ("blindfit evaluate examples/walr/evaluate.toml --model runs/latest",),
    "export-model": (
        "blindfit export-model runs/latest/bank/model.json --format onnx",
        "blindfit export-model runs/latest/bank/model.json --format sql --dialect postgresql --out score.sql",
    ),
    "pretrain": ("blindfit pretrain shop.toml --dataset public --out pretrained.json",),
    "split-labels": ("blindfit split-labels registry.toml --dataset labels --out east.parquet west.parquet",),
    "simulate": (
        "blindfit simulate visits.csv --label saw_doctor",
        'blindfit simulate visits.csv --label saw_doctor --party "shop: age, income" --party "clinic: smoker"',
        "blindfit simulate visits.csv --label saw_doctor --systems walr,dp-lr --epsilon 0.5,1,2 --repeat 5",
    ),
    "show": ("blindfit show examples/walr/job.toml", "blindfit show examples/walr/job.toml --set privacy.epsilon=0.5"),
    "explain": ("blindfit explain taylor.epochs", "blindfit explain privacy", "blindfit explain"),
    "report": ("blindfit report state/shop/models/walr-9f3a1c22",),
    "jobs": ("blindfit jobs clinic.toml", "blindfit jobs clinic.toml --running"),
    "logs": ("blindfit logs clinic.toml walr-9f3a1c22",),
    "version": ("blindfit version", "blindfit version --json"),
    "party": ("blindfit party clinic.toml", "blindfit party clinic.toml --set log_level=debug"),
    "health": ("blindfit health clinic.toml",),
    "approve": ("blindfit approve clinic.toml", "blindfit approve clinic.toml walr-9f3a1c22 --refuse"),
    "cancel": ("blindfit cancel job.toml walr-9f3a1c22",),
    "snapshot": ("blindfit snapshot clinic.toml", "blindfit snapshot clinic.toml visits --remove-older"),
    "ledger": ("blindfit ledger clinic.toml", "blindfit ledger clinic.toml --export chain.jsonl"),
    "purge": (
        "blindfit purge clinic.toml walr-9f3a1c22",
        "blindfit purge clinic.toml --ended-before 2026-01-31 --dry-run",
    ),
    "lock": ("blindfit lock clinic.toml", "blindfit lock clinic.toml --old-passphrase-file old.txt"),
    "benchmark": ("blindfit benchmark clinic.toml",),
    "export": ("blindfit export runs/latest --out release.json",),
    "verify": ("blindfit verify release.json --authority authority.crt --server clinic",),
    "attack": (
        "blindfit attack laplace --epsilon 0.5",
        "blindfit attack model.json --members trained.csv --non-members others.csv",
    ),
    "certs authority": ("blindfit certs authority certificates --name 'Our authority'",),
    "certs issue": ("blindfit certs issue certificates shop --host shop.example.org --role active",),
    "certs renew": ("blindfit certs renew certificates shop --days 365",),
    "certs revoke": ("blindfit certs revoke certificates shop",),
    "certs crl": ("blindfit certs crl certificates",),
    "certs show": ("blindfit certs show certificates/shop",),
}
"""Examples by the words of the command."""


def add_examples(app: typer.Typer, prefix: str = "") -> None:
    """End the help of each command with its examples; a hidden command has none.

    Args:
        prefix: words before the name of a command, such as "certs ".
    """
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        if examples := EXAMPLES.get(prefix + name):
            command.epilog = "\n\n".join(["Examples:" if len(examples) > 1 else "Example:", *examples])
