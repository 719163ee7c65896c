# Everything a person or CI runs. Needs make, Python 3.11+ with venv, and cargo; the rest goes into .venv, and what the
# tests ask JavaScript clients for into tests/node/node_modules, where there is Node.js 20 or newer with npm.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

ifndef PYTHON
PYTHON := $(shell command -v python3 || command -v python || echo python3)
endif
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PY := $(BIN)/python
# What a stamp stands for: the Python environment was filled from this pyproject.toml.
STAMPS := $(VENV)/.stamps
CARGO ?= cargo
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Tools that look for their programs on PATH find those of .venv first; an outer environment does not leak in.
export PATH := $(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
unexport PYTHONPATH PYTHONHOME CONDA_PREFIX

.PHONY: help
help: ## show this text
	@echo 'streamweld: make <target>'
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo
	@echo '  PYTEST_ARGS="-k sse -n 0" make test    passes arguments on (BENCH_ARGS for make bench)'
	@echo '  STREAMWELD_CORPUS=DIR                recorded streams; without it ../shared/corpus'
	@echo '  PYTHON=python3.13 make demo          which Python makes .venv'

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "streamweld needs Python 3.11 or newer, $(PYTHON) is %d.%d; set PYTHON=" % v[:2])'
	@command -v $(CARGO) >/dev/null || { echo 'streamweld is built with cargo, which is not on PATH: https://rustup.rs' >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade
	$(PY) -m pip install --quiet --upgrade 'pip>=25.1' 'maturin>=1.14,<2'
	@mkdir -p $(STAMPS) && touch $@

# One stamp for each set of extras, so that `make demo` need not wait for a type checker.
EXTRAS_demo := cli
EXTRAS_test := cli,test
EXTRAS_bench := cli,test,bench
EXTRAS_lint := cli,test,bench,lint
EXTRAS_history := cli,bench-history
EXTRAS_bulk := cli,test,bench-bulk

$(STAMPS)/%: pyproject.toml | $(STAMPS)/venv
	$(PY) -m pip install --quiet --no-build-isolation --editable '.[$(EXTRAS_$*)]'
	@touch $@

# Always asked for: cargo alone knows whether a source, a lock file or an embedded table has changed.
.PHONY: build
build: | $(STAMPS)/venv ## build the extension (release) into python/streamweld if anything changed
	$(BIN)/maturin develop --release --locked --quiet --skip-install

.PHONY: dev
dev: | $(STAMPS)/venv ## build the extension for development: incremental, without link-time optimization
	$(BIN)/maturin develop --locked --quiet --skip-install

.PHONY: demo
demo: $(STAMPS)/demo build ## replay a bundled stream: what a naive reader counts, what streamweld makes of it
	$(BIN)/streamweld demo

.PHONY: test test-all setup test-rust-setup test-rust test-python
# What needs no other is set up at the same time: a linker leaves the other cores idle, a download all of them.
test: ## every suite, slow ones on a fixed sample
	@$(MAKE) --no-print-directory --jobs=3 test-rust-setup setup
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-python

test-all: ## every suite with its full counts
	@$(MAKE) --no-print-directory STREAMWELD_FULL=1 test

test-rust-setup:
	$(CARGO) test --locked --no-run

test-rust:
	$(CARGO) test --locked

setup: $(STAMPS)/test node-modules environments

test-python: setup build
	$(PY) -m pytest -n auto $(PYTEST_ARGS)

# npm writes this file last. Without Node.js the tests that need it skip, and say so.
NODE_MODULES := tests/node/node_modules/.package-lock.json

.PHONY: node-modules
node-modules: $(NODE_MODULES)

$(NODE_MODULES): tests/node/package.json tests/node/package-lock.json
	@if command -v node >/dev/null; then \
		cd tests/node && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json; \
	else echo 'no Node.js on PATH: tests that ask JavaScript clients are skipped'; fi

# Clients and frameworks that cannot live beside those of the test extra: what they make of repaired streams is tested.
# The frameworks take long to install: they are for the full counts.
ENVIRONMENTS := old $(if $(STREAMWELD_FULL),recipes engines)

.PHONY: environments
environments: $(ENVIRONMENTS:%=$(VENV)/%/made)

$(VENV)/%/made: tests/dropin/environments/%.txt | $(STAMPS)/venv
	$(PY) -m venv --clear --without-pip $(@D)
	$(PY) -m pip --python $(@D)/bin/python install --quiet --no-compile --no-deps --only-binary :all: --requirement $<
	@touch $@

.PHONY: nightly
nightly: setup build $(VENV)/engines/made ## memory caps at 128 MB and time up to 64,000 things, on a machine that does nothing else (hours)
	STREAMWELD_NIGHTLY=1 $(PY) -m pytest -n 0 --timeout 7200 tests/test_memory_caps.py tests/test_linear_time.py tests/test_cut_silent.py tests/test_cut_wire.py tests/test_twins_repair.py tests/bulk/test_engines.py $(PYTEST_ARGS)
	$(CARGO) test --locked --release scaling -- --ignored --nocapture

.PHONY: bench
bench: $(STAMPS)/bench build ## named stream shapes against rivals, floors and the pure backend
	$(PY) -m pytest benches $(BENCH_ARGS)

.PHONY: bench-bulk
bench-bulk: $(STAMPS)/bulk build ## columns of recorded bodies over Arrow, beside orjson, DuckDB and Polars
	PYTHONPATH=python:. $(PY) -m benches.bulk $(BENCH_ARGS)

.PHONY: bench-history bench-convert race
bench-history: ## converters of histories, in an environment of their own: litellm wants an older openai
	@$(MAKE) --no-print-directory VENV=.venv/history RACE=history race

bench-convert: ## converters of streams, in the same environment
	@$(MAKE) --no-print-directory VENV=.venv/history RACE=convert race

race: $(STAMPS)/history build
	$(PY) -m pytest benches/test_$(RACE).py -k rivals -s $(BENCH_ARGS)

.PHONY: lint lint-python lint-types lint-rust
lint: lint-python lint-types lint-rust ## ruff, mypy, pyright, stubtest, rustfmt, clippy

lint-python: $(STAMPS)/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types: $(STAMPS)/lint build
	$(BIN)/mypy --strict python/
	$(BIN)/pyright --pythonpath $(PY) --warnings
	PYTHONPATH=python $(BIN)/pyright --pythonpath $(PY) --verifytypes streamweld --ignoreexternal
	$(PY) -m mypy.stubtest streamweld._native --mypy-config-file pyproject.toml

lint-rust: | $(STAMPS)/venv
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: clean
clean: ## remove .venv, builds and caches
	rm -rf $(VENV) tests/node/node_modules target build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f python/streamweld/_native.*.so python/streamweld/_native.*.pyd python/streamweld/_native.*.dylib
	find $(wildcard .ci python tests benches) -name __pycache__ -type d -prune -exec rm -rf {} +
