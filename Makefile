# A virtual environment is made in .venv at first use, from the versions pinned
# in requirements.txt. Needs Python 3.11 or 3.12, make and the package index.
# Choose another Python by `make PYTHON=...`, options of pytest by
# `make test PYTEST_ARGS=...`.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for name in python3.11 python3.12 python3; do \
  $$name -c '$(SUITS)' >/dev/null 2>&1 && { echo $$name; break; }; done)
SUITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))
VENV := .venv
INSTALLED := $(VENV)/.installed
INSTALLED_T5X := $(VENV)/.installed-t5x
INSTALLED_TPU := $(VENV)/.installed-tpu
T5X ?=
PYTEST_ARGS ?=

# A worker a core, each with whole files: their tests share what they compile.
PARALLEL := -n logical --dist loadfile

DEMO := $(VENV)/bin/speculative-t5x eval --gin_file=configs/runs/demo.gin
DEMO_RESULTS := runs/demo/results.jsonl

LOCK = $(VENV)/bin/uv pip compile --quiet --python-version 3.11 \
  --custom-compile-command 'make lock' $(LOCK_ARGS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Of pip's output, what takes long: files of 10 MB and more, and unpacking.
BRIEFLY := awk '/\([0-9][0-9][0-9.]* MB\)|[0-9] GB\)/ \
    { sub(/^ +/, ""); print "  " $$0; fflush() } \
  /^Installing collected packages/ { print "  Unpacking"; fflush() }'

.PHONY: help setup demo test test-all test-t5x lint lock pages bulletins clean

help:  ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' \
	  Makefile

setup: $(INSTALLED)  ## makes .venv and installs the package into it

demo: $(INSTALLED)  ## decodes with the embedded pair: runs/demo/results.jsonl
	$(DEMO)
	@echo "Records are in $(DEMO_RESULTS)."

test: $(INSTALLED_TPU)  ## runs the tests
	$(VENV)/bin/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-all: $(INSTALLED_TPU)  ## runs the tests, the exhaustive ones included
	$(VENV)/bin/python -m pytest $(PARALLEL) -m '' $(PYTEST_ARGS)

# T5X=<checkouts of T5X, AirIO and jestimator, parted by colons>, or nothing
# where .venv has them. Its last output is kept in results/, without paths.
test-t5x: export PYTHONPATH := $(T5X)
test-t5x: export SPECULATIVE_T5X_REQUIRES_T5X := 1
test-t5x: $(INSTALLED_T5X)  ## runs the tests that need T5X (T5X=<checkouts>)
	@$(VENV)/bin/python -c 'import t5x.eval, t5x.infer' 2>/dev/null || { \
	  echo 'T5X cannot be imported. Say where it is:' \
	    'make test-t5x T5X=<t5x>:<airio>:<jestimator>' >&2; exit 1; }
	@{ $(VENV)/bin/python -m tests.t5x_guest.versions; \
	  $(VENV)/bin/python -m pytest tests/t5x_guest -v --no-header \
	    --disable-warnings $(PYTEST_ARGS); } | tee results/test_t5x.txt

lint: $(INSTALLED)  ## checks the style
	$(VENV)/bin/ruff check

# What a TPU needs is pinned apart, to the versions that the tests run with.
# libtpu wants a newer C library than uv takes a Linux to have.
lock: $(INSTALLED)  ## pins both requirements anew (LOCK_ARGS=--upgrade: newest)
	$(LOCK) --python-platform linux --extra dev \
	  --output-file requirements.txt pyproject.toml
	$(LOCK) --python-platform x86_64-manylinux_2_31 \
	  --extra jobs --extra tpu-aot --constraint requirements.txt \
	  --output-file requirements-tpu.txt pyproject.toml

pages: $(INSTALLED)  ## writes the numbers of README and docs from results/
	$(VENV)/bin/python -m scripts.pages

bulletins: $(INSTALLED)  ## writes the embedded corpus anew
	$(VENV)/bin/python -m scripts.bulletins

clean:  ## removes .venv, caches and what was built; keeps runs
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): requirements.txt pyproject.toml
	@if [ -z '$(PYTHON)' ] || ! '$(PYTHON)' -c '$(SUITS)'; then \
	  echo 'Needs Python 3.11 or 3.12, which is not on the PATH. Install it,' \
	    'or name it: make PYTHON=/path/to/python3.11' >&2; \
	  exit 1; \
	fi
	@echo "Making $(VENV) with $$('$(PYTHON)' --version)."
	@[ -x $(VENV)/bin/pip ] || '$(PYTHON)' -m venv --clear $(VENV)
	@echo "Installing $$(grep -c == requirements.txt) packages, 1 GB to" \
	  'download the first time: some minutes.'
	@$(VENV)/bin/python -m pip install --progress-bar off \
	  -r requirements.txt | $(BRIEFLY)
	@$(VENV)/bin/python -m pip install --quiet --no-deps \
	  --no-build-isolation -e .
	@touch $@
	@echo 'Done.'

$(INSTALLED_T5X): $(INSTALLED) requirements-t5x.txt
	@$(VENV)/bin/python -m pip install --quiet -r requirements-t5x.txt
	@$(VENV)/bin/python -m pip install --quiet --no-deps t5==0.9.4
	@touch $@

# Only tests that compile for a TPU need it, so the demo does without.
$(INSTALLED_TPU): $(INSTALLED) requirements-tpu.txt
	@echo 'Installing libtpu, which compiles for a TPU: 0.2 GB to download.'
	@$(VENV)/bin/python -m pip install --quiet --progress-bar off \
	  -r requirements-tpu.txt
	@touch $@
