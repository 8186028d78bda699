# Take python3 of the PATH. If it was compiled without optimization (the default of pyenv), take the system's Python if
# that is new enough: without optimization the tests take a sixth longer.
SYSTEM_PYTHON := /usr/bin/python3
WILL_DO := import sys, ensurepip, venv; assert (3, 11) <= sys.version_info < (3, 14)
OPTIMIZED := import sysconfig; assert "--enable-optimizations" in sysconfig.get_config_var("CONFIG_ARGS")
COMMA := ,
PYTHON ?= $(shell if python3 -c '$(OPTIMIZED)' 2>/dev/null || ! $(SYSTEM_PYTHON) -c '$(WILL_DO)' 2>/dev/null; \
	then echo python3; else echo $(SYSTEM_PYTHON); fi)
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .venv-tools
DOCS := .venv-docs
LOWEST := .venv-lowest
export MPLBACKEND := Agg
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process of a job compiles every module again

.PHONY: help setup demo demo-taylor demo-falcon demo-label-dp demo-dp-lr test lowest mutants lint types wheel soak docs protos protocols-page options-page pictures commands-page constraints clean

help:  ## list all targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python $(TOOLS)/bin/python $(DOCS)/bin/python $(LOWEST)/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Blindfit needs Python 3.11 or newer; name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments: install its package venv (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@$(PYTHON) -m venv $* || { rm -rf $*; exit 1; }  # half of one would pass for whole the next time

# Packages are installed in the versions of constraints/, which have hashes. $(1): environment; $(2): file of pins;
# $(3): what pip chooses versions for where the Python has no pins.
PINNED := import sys; assert (3, 11) <= sys.version_info < (3, 14)
define install
	@pip="$(1)/bin/python -m pip install --quiet --quiet --disable-pip-version-check"; \
	if $(1)/bin/python -c '$(PINNED)' 2>/dev/null; then \
		$$pip --require-hashes -r $(2) || { \
			echo "error: pip cannot install the versions that constraints/ pins; the reason is above"; \
			echo "hint: if your package index lacks a version, pin versions that it has: make constraints"; \
			exit 1; }; \
	else \
		echo "constraints/ pins packages for Python 3.11 to 3.13: pip chooses the versions for $$($(1)/bin/python -V)"; \
		$$pip $(3); \
	fi
endef
install_blindfit = @$(1)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

$(VENV)/.demo: pyproject.toml constraints/all.txt constraints/subset.py | $(BIN)/python
	@echo "Setting up $(VENV) with $$($(BIN)/python -V) (a minute; longer where packages are not cached) ..."
	@$(BIN)/python constraints/subset.py project demo phe build > $(VENV)/demo.txt
	$(call install,$(VENV),$(VENV)/demo.txt,hatchling -e '.[demo$(COMMA)phe]')
	$(call install_blindfit,$(VENV))
	@touch $@

$(VENV)/.dev: pyproject.toml constraints/all.txt | $(BIN)/python
	@echo "Setting up $(VENV) with $$($(BIN)/python -V) and what the tests need (a minute or two) ..."
	$(call install,$(VENV),constraints/all.txt,-e '.[dev]')
	$(call install_blindfit,$(VENV))
	@touch $@ $(VENV)/.demo

$(TOOLS)/.made: constraints/tools.in constraints/tools.txt | $(TOOLS)/bin/python
	$(call install,$(TOOLS),constraints/tools.txt,-r constraints/tools.in)
	@touch $@

$(DOCS)/.made: pyproject.toml constraints/docs.txt | $(DOCS)/bin/python
	@echo "Setting up $(DOCS) with $$($(DOCS)/bin/python -V) and what the documentation needs (a minute or two) ..."
	$(call install,$(DOCS),constraints/docs.txt,-e '.[docs]')
	$(call install_blindfit,$(DOCS))
	@touch $@

$(LOWEST)/.made: constraints/lowest.txt | $(LOWEST)/bin/python
	@$(LOWEST)/bin/python -c 'import sys; assert sys.version_info[:2] == (3, 11)' 2>/dev/null || { echo "constraints/lowest.txt is for Python 3.11; name it: make PYTHON=python3.11 lowest"; rm -rf $(LOWEST); exit 1; }
	@echo "Setting up $(LOWEST) with the lowest versions that pyproject.toml allows (a minute) ..."
	$(call install,$(LOWEST),constraints/lowest.txt,)
	$(call install_blindfit,$(LOWEST))
	@touch $@

setup: $(VENV)/.dev  ## make .venv with everything that a developer needs

demo: $(VENV)/.demo  ## walr: one noisy sum, between two processes on real data (two minutes at most)
	@$(BIN)/python -m examples.walr.demo

demo-taylor: $(VENV)/.demo  ## taylor: vertical training with encrypted gradients, between four processes (three minutes at most)
	@$(BIN)/python -m examples.taylor.demo

demo-falcon: $(VENV)/.demo  ## falcon: vertical training on secret shares and with encrypted weights, between four processes (two minutes at most)
	@$(BIN)/python -m examples.falcon.demo

demo-label-dp: $(VENV)/.demo  ## label-dp: noisy labels, by every mechanism (two minutes at most)
	@$(BIN)/python -m examples.label_dp.demo

demo-dp-lr: $(VENV)/.demo  ## dp-lr: a private model from one party's rows, with and without pre-training (two minutes at most)
	@$(BIN)/python -m examples.dp_lr.demo

test: $(VENV)/.dev  ## run the tests; install PostgreSQL and a Java runtime if that is allowed
	@sh tests/install_packages.sh
	@$(BIN)/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 2)) --dist loadfile $(PYTEST_ARGS)  # two more than cores: many wait

# One run of each system, the messages between parties, and the columns of a table.
LOWEST_TESTS := tests/columns tests/data/test_spelling.py tests/dp_lr/test_processes.py tests/falcon/test_seats.py \
	tests/hints/test_identity.py tests/label_dp/test_processes.py tests/privacy/test_gaussian.py \
	tests/processes/test_run.py tests/processes/test_vertical_training.py tests/shown/test_exit_codes.py tests/toy_system \
	tests/wire/test_codec.py tests/wire/test_error_codes.py tests/wire/test_exchange.py tests/wire/test_guard.py \
	tests/wire/test_overload.py tests/work

lowest: $(LOWEST)/.made  ## run a short selection of the tests with the lowest versions that pyproject.toml allows (three minutes)
	@$(LOWEST)/bin/python -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist loadfile $(LOWEST_TESTS) $(PYTEST_ARGS)

mutants: $(VENV)/.dev  ## make dangerous changes, one at a time, which the tests must notice (twenty minutes)
	@$(BIN)/python -m tests.mutants.run $(MUTANTS_ARGS)

soak: $(VENV)/.dev  ## run the tests that measure every promise in full (hours)
	@$(BIN)/python -m pytest -m soak --timeout 36000 tests

lint: $(VENV)/.dev $(TOOLS)/.made  ## check format, code, import contracts and generated code
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@sh protos/generate.sh --check

types: $(VENV)/.dev  ## check types with mypy
	@$(BIN)/mypy

wheel: $(VENV)/.dev  ## build dist/*.whl, and check its contents
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@$(BIN)/python -m zipfile --list dist/blindfit-*.whl | grep -q '^blindfit/py\.typed ' || { echo "the wheel has no blindfit/py.typed"; exit 1; }
	@ls dist/*.whl

docs: $(DOCS)/.made  ## build the site docs/_build/html, run every notebook, and check every link (four minutes)
	@$(DOCS)/bin/python docs/build_site.py

protos: $(VENV)/.dev $(TOOLS)/.made  ## regenerate protos/*_pb2*.py
	@sh protos/generate.sh

protocols-page: $(VENV)/.dev  ## regenerate docs/reference/messages.md
	@$(BIN)/python docs/protocols_page.py

pictures: $(VENV)/.dev  ## draw docs/pictures again: the chooser, who sends what, the lives of a session and a release
	@$(BIN)/python docs/drawing

options-page: $(VENV)/.dev  ## regenerate docs/reference/options
	@$(BIN)/python -m blindfit.coordinator.explain.pages docs/reference/options

commands-page: $(VENV)/.dev  ## regenerate docs/reference/command_line.md
	@$(BIN)/python docs/commands_page.py

COMPILE := $(TOOLS)/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make constraints" $(CONSTRAINTS_ARGS)

constraints: $(TOOLS)/.made  ## rewrite constraints/*.txt for pyproject.toml; newer versions: CONSTRAINTS_ARGS=--upgrade
	@$(COMPILE) --universal --extra dev -o constraints/all.txt pyproject.toml
	@$(COMPILE) --universal --extra docs --constraint constraints/all.txt -o constraints/docs.txt pyproject.toml
	@$(COMPILE) --universal -o constraints/tools.txt constraints/tools.in
	@$(COMPILE) --resolution lowest-direct --only-binary :all: --extra dev -o constraints/lowest.txt pyproject.toml

clean:  ## remove everything that can be made again
	rm -rf $(VENV) $(TOOLS) $(DOCS) $(LOWEST) docs/_build .site .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants runs
