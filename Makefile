# A virtual environment is made in .venv at first use, from the versions pinned
# for its Python: the newest of 3.11, 3.12 and 3.13 that works here. Needs make
# and the package index. `make PYTHON=python3.12` chooses the Python, and
# replaces a .venv of another; `make PYTHON=python3.12 VENV=.venv-py312` keeps
# both.
# `make test PYTEST_ARGS=...` passes options to pytest.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
# Debian's Python may lack what makes environments.
SUITS := import ensurepip, sys; \
  sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for name in $(VENV)/bin/python \
    python3.13 python3.12 python3.11 python3; do \
  $$name -c '$(SUITS)' >/dev/null 2>&1 && { echo $$name; break; }; done)

# Each Python has versions of its own: JAX 0.10.2 on 3.11, whose last it is, and
# 3.13, the newest JAX on 3.12. That one takes twice as long to compile the programs
# of the tests (see tests/cheap_compilation.py), and four fifths for those of users.
PRINT_VERSION := import sys; print("%d.%d" % sys.version_info[:2])
VERSION := $(shell '$(PYTHON)' -c '$(PRINT_VERSION)' 2>/dev/null)
LOCK_SUFFIX := $(patsubst %,-py%,$(subst .,,$(filter 3.11 3.12,$(VERSION))))
REQUIREMENTS := requirements$(LOCK_SUFFIX).txt
REQUIREMENTS_TPU := requirements-tpu$(LOCK_SUFFIX).txt
# Each names its Python, so that none holds for an environment of another.
INSTALLED := $(VENV)/.installed-py$(VERSION)
INSTALLED_T5X := $(VENV)/.installed-t5x-py$(VERSION)
INSTALLED_TPU := $(VENV)/.installed-libtpu-py$(VERSION)
T5X ?=
PYTEST_ARGS ?=

# Programs that earlier tests compiled are read from here for two weeks.
TEST_PROGRAMS := $(CURDIR)/.pytest_cache/programs
test test-all: export JAX_COMPILATION_CACHE_DIR ?= $(TEST_PROGRAMS)
# Where libtpu is found, JAX opens a TPU that is not there and prints errors, as
# in notebooks. So only the tests, which compile for a TPU, find it.
LIBTPU := $(abspath $(VENV))/libtpu
test test-all: export PYTHONPATH := $(LIBTPU)
FORGET_OLD := find $(TEST_PROGRAMS) -type f -mtime +14 -delete 2>/dev/null || true

# One worker more than there are cores, since tests wait for processes that they
# start. A worker that is done with a file takes the next one, in random order.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

DEMO := $(VENV)/bin/speculative-t5x eval

# Pins both requirements of a Python: $(call LOCK,<version>,<suffix>). What a
# TPU needs is pinned separately, to the versions that the tests run with.
# libtpu needs a newer C library than uv assumes on Linux.
UV_COMPILE = $(VENV)/bin/uv pip compile --quiet \
  --custom-compile-command 'make lock' $(LOCK_ARGS)
define LOCK
$(UV_COMPILE) --python-version $(1) --python-platform linux --extra dev \
  --output-file requirements$(2).txt pyproject.toml
$(UV_COMPILE) --python-version $(1) \
  --python-platform x86_64-manylinux_2_31 --extra jobs --extra ray --extra tpu-aot \
  --constraint requirements$(2).txt \
  --output-file requirements-tpu$(2).txt pyproject.toml
endef

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Of pip's output, what takes long: files of 10 MB and more, and unpacking.
BRIEFLY := awk '/\([0-9][0-9][0-9.]* MB\)|[0-9] GB\)/ \
    { sub(/^ +/, ""); print "  " $$0; fflush() } \
  /^Installing collected packages/ { print "  Unpacking"; fflush() }'

.PHONY: help setup demo test test-all test-t5x lint lock pages clean

help:  ## lists the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' \
	  Makefile

setup: $(INSTALLED)  ## makes .venv and installs the package into it

demo: $(INSTALLED)  ## translates and summarizes with the embedded pairs: runs/
	$(DEMO) --gin_file=configs/runs/demo.gin
	$(DEMO) --gin_file=configs/runs/demo_summary.gin

test: $(INSTALLED_TPU)  ## runs the tests (slowest on Python 3.12)
	@$(FORGET_OLD)
	$(VENV)/bin/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-all: $(INSTALLED_TPU)  ## runs the tests, the exhaustive ones too (an hour)
	@$(FORGET_OLD)
	$(VENV)/bin/python -m pytest $(PARALLEL) -m '' $(PYTEST_ARGS)

# T5X=<checkouts of T5X, AirIO and jestimator, parted by colons>, or nothing
# where .venv has them. Its last output is kept in results/, without paths.
test-t5x: export PYTHONPATH := $(if $(T5X),$(T5X):)$(LIBTPU)
test-t5x: export SPECULATIVE_T5X_REQUIRES_T5X := 1
test-t5x: $(INSTALLED_T5X) $(INSTALLED_TPU)  ## runs the tests that need T5X (T5X=<checkouts>)
	@$(VENV)/bin/python -c 'import t5x.eval, t5x.infer' 2>/dev/null || { \
	  echo 'T5X cannot be imported. Say where it is:' \
	    'make test-t5x T5X=<t5x>:<airio>:<jestimator>' >&2; exit 1; }
	@{ $(VENV)/bin/python -m tests.t5x_guest.versions; \
	  $(VENV)/bin/python -m pytest $(PARALLEL) tests/t5x_guest -v --no-header \
	    --disable-warnings $(PYTEST_ARGS); } | tee results/test_t5x.txt

lint: $(INSTALLED)  ## checks the style
	$(VENV)/bin/ruff check

lock: $(INSTALLED)  ## pins all requirements anew (LOCK_ARGS=--upgrade: newest)
	$(call LOCK,3.13)
	$(call LOCK,3.12,-py312)
	$(call LOCK,3.11,-py311)

pages: $(INSTALLED)  ## writes tables and figures from results/
	$(VENV)/bin/python -m scripts.pages

clean:  ## removes .venv, caches and what was built; keeps runs
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): $(REQUIREMENTS) pyproject.toml
	@if ! '$(PYTHON)' -c '$(SUITS)' 2>/dev/null; then \
	  echo 'Needs Python 3.11, 3.12 or 3.13 that can make environments, which' \
	    "$(if $(PYTHON),'$(PYTHON)' is not,is not on the PATH). Install one," \
	    'or name it: make PYTHON=/path/to/python3.13' >&2; \
	  exit 1; \
	fi
	@if [ "$$($(VENV)/bin/python -c 'import pip; $(PRINT_VERSION)' \
	    2>/dev/null)" != '$(VERSION)' ]; then \
	  clear=; \
	  if [ -e $(VENV)/pyvenv.cfg ]; then \
	    echo 'Replacing $(VENV), which is not of Python $(VERSION).'; \
	    clear=--clear; \
	  fi; \
	  echo "Making $(VENV) with $$('$(PYTHON)' --version)."; \
	  '$(PYTHON)' -m venv $$clear $(VENV); \
	fi
	@echo "Installing $$(grep -c == $(REQUIREMENTS)) packages, 1 GB to" \
	  'download the first time: some minutes.'
	@$(VENV)/bin/python -m pip install --progress-bar off \
	  -r $(REQUIREMENTS) | $(BRIEFLY)
	@$(VENV)/bin/python -m pip install --quiet --no-deps \
	  --no-build-isolation -e .
	@touch $@
	@echo 'Done.'

$(INSTALLED_T5X): $(INSTALLED) requirements-t5x.txt
	@$(VENV)/bin/python -m pip install --quiet -r requirements-t5x.txt
	@touch $@

# Of requirements-tpu.txt only libtpu is missing.
$(INSTALLED_TPU): $(INSTALLED) $(REQUIREMENTS_TPU)
	@echo 'Installing libtpu, which compiles for a TPU: 0.2 GB to download.'
	@$(VENV)/bin/python -m pip uninstall --quiet --yes libtpu
	@$(VENV)/bin/python -m pip install --quiet --progress-bar off --no-deps \
	  --upgrade --target $(LIBTPU) $$(grep '^libtpu==' $(REQUIREMENTS_TPU))
	@touch $@
