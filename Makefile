# The path's python3; the system's own, if it will do and the path's was compiled without optimization (as pyenv compiles
# unless it is told otherwise), which takes a sixth longer for the tests.
SYSTEM_PYTHON := /usr/bin/python3
WILL_DO := import sys, ensurepip, venv; assert (3, 11) <= sys.version_info < (3, 14)
OPTIMIZED := import sysconfig; assert "--enable-optimizations" in sysconfig.get_config_var("CONFIG_ARGS")
PYTHON ?= $(shell if python3 -c '$(OPTIMIZED)' 2>/dev/null || ! $(SYSTEM_PYTHON) -c '$(WILL_DO)' 2>/dev/null; \
	then echo python3; else echo $(SYSTEM_PYTHON); fi)
VENV := .venv
BIN := $(VENV)/bin
export MPLBACKEND := Agg
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process of a job compiles every module anew

.PHONY: help setup demo demo-taylor demo-falcon demo-label-dp demo-dp-lr test mutants lint types wheel soak protos protocols-page options-page clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Blindfit needs Python 3.11 or newer; name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments: install its package venv (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }  # half of one would pass for whole the next time

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) with $$($(BIN)/python -V) (a minute; longer where packages are not cached) ..."
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check -e '.[demo,phe]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) with $$($(BIN)/python -V) and what the tests need (a minute or two) ..."
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

setup: $(VENV)/.dev  ## .venv with everything a developer needs

demo: $(VENV)/.demo  ## WALR between two processes on real data (two minutes at most)
	@$(BIN)/python -m examples.walr.demo

demo-taylor: $(VENV)/.demo  ## vertical regression between four processes, under encryption (three minutes at most)
	@$(BIN)/python -m examples.taylor.demo

demo-falcon: $(VENV)/.demo  ## vertical regression between four processes, in secret shares and with encrypted weights (two minutes at most)
	@$(BIN)/python -m examples.falcon.demo

demo-label-dp: $(VENV)/.demo  ## regression on labels released row by row, every mechanism (two minutes at most)
	@$(BIN)/python -m examples.label_dp.demo

demo-dp-lr: $(VENV)/.demo  ## logistic regression with DP of whole rows, with and without pre-training (two minutes at most)
	@$(BIN)/python -m examples.dp_lr.demo

test: $(VENV)/.dev  ## the tests; installs PostgreSQL where it may
	@sh tests/install_postgresql.sh
	@$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 2)) --dist loadfile $(PYTEST_ARGS)  # two more than cores: many wait

mutants: $(VENV)/.dev  ## dangerous changes, one at a time, which the tests must notice (twenty minutes)
	@$(BIN)/python -m tests.mutants.run $(MUTANTS_ARGS)

soak: $(VENV)/.dev  ## the full figures of every promise (hours)
	@$(BIN)/python -m pytest -m soak --timeout 36000 tests

lint: $(VENV)/.dev  ## ruff, import contracts, generated code
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@sh protos/generate.sh --check

types: $(VENV)/.dev  ## mypy, strict
	@$(BIN)/mypy

wheel: $(VENV)/.dev  ## dist/*.whl, and a look into it: typed, and one name
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@$(BIN)/python -m zipfile --list dist/blindfit-*.whl | grep -q '^blindfit/py\.typed ' || { echo "the wheel has no blindfit/py.typed"; exit 1; }
	@ls dist/*.whl

protos: $(VENV)/.dev  ## regenerate protos/*_pb2*.py
	@sh protos/generate.sh

protocols-page: $(VENV)/.dev  ## regenerate docs/protocols.md
	@$(BIN)/python docs/protocols_page.py

options-page: $(VENV)/.dev  ## regenerate docs/options.md
	@$(BIN)/python -m blindfit.coordinator.explain.command > docs/options.md.new && mv docs/options.md.new docs/options.md

clean:  ## everything that can be made again
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants runs
