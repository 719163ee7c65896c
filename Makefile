# All commands for developers and CI. They need make, Python 3.11+ with venv, and cargo. Everything else is installed
# into .venv. If Node.js 20 or newer and npm are installed, the JavaScript clients for the tests are installed into
# tests/node/node_modules.
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
# The time of the file $(STAMPS)/NAME is when the packages in .ci/locks/NAME.txt were last installed.
STAMPS := $(VENV)/.stamps
CARGO ?= cargo
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Put .venv first on PATH, and unset the variables of any active Python environment, so that tools use only .venv. The
# tests start many interpreters, which must not compile the package anew each time.
export PATH := $(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
unexport PYTHONPATH PYTHONHOME CONDA_PREFIX PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## show this help
	@echo 'streamweld: make <target>'
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo
	@echo '  PYTEST_ARGS="-k sse -n 0" make test    pass options to pytest (BENCH_ARGS for make bench)'
	@echo '  STREAMWELD_CORPUS=DIR                recorded streams; the default is ../shared/corpus'
	@echo '  PYTHON=python3.13 make demo          the Python that creates .venv'

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "streamweld needs Python 3.11 or newer, $(PYTHON) is %d.%d; set PYTHON=" % v[:2])'
	@command -v $(CARGO) >/dev/null || { echo 'streamweld is built with cargo, which is not on PATH: https://rustup.rs' >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade
	$(PY) -m pip install --quiet --require-hashes --requirement .ci/locks/build.txt
	@mkdir -p $(STAMPS) && touch $@

# Every other target that builds the extension waits for this one: maturin moves the built library after cargo has
# released its lock, so two builds at the same time take it from each other.
$(STAMPS)/editable: pyproject.toml | $(STAMPS)/venv
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Each set of packages has its own stamp, so that `make demo` does not install a type checker. All packages come from
# lock files with hashes, which .ci/locks/update writes from uv.lock.
$(STAMPS)/%: .ci/locks/%.txt pyproject.toml | $(STAMPS)/editable
	$(PY) -m pip install --quiet --require-hashes --requirement $<
	@touch $@

# This target always runs, because only cargo can detect whether a source, a lock file or an embedded table has changed.
.PHONY: build
build: | $(STAMPS)/editable ## build the extension in release mode into python/streamweld, if sources changed
	$(BIN)/maturin develop --release --locked --quiet --skip-install

.PHONY: dev
dev: | $(STAMPS)/editable ## build the extension for development: incremental, without link-time optimization
	$(BIN)/maturin develop --locked --quiet --skip-install

# A quick check while you change a rule. `make test` runs all suites.
VECTOR_SUITES := $(addprefix tests/,sse/test_sse_vectors.py parser/test_vectors.py convert/test_convert_vectors.py \
	repair/test_repair_vectors.py history/test_vectors.py requests/test_vectors.py)

.PHONY: check
check: $(STAMPS)/lint dev ## run vectors in both backends, layers and types; use it while you work
	$(PY) -m pytest -n auto -q $(VECTOR_SUITES) tests/package/test_layers.py $(PYTEST_ARGS)
	$(BIN)/mypy --strict python/

.PHONY: demo
demo: $(STAMPS)/demo build ## parse a bundled stream with a naive reader and with streamweld
	$(BIN)/streamweld demo

.PHONY: test test-all setup test-rust-setup test-rust test-python
# Independent steps run in parallel, because linking uses only one core, and a download uses almost none.
test: ## run every suite, slow suites on a fixed sample
	@$(MAKE) --no-print-directory --jobs=3 test-rust-setup setup
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-python

test-all: ## run every suite in full
	@$(MAKE) --no-print-directory STREAMWELD_FULL=1 test

test-rust-setup:
	$(CARGO) test --locked --no-run

test-rust:
	$(CARGO) test --locked

setup: $(STAMPS)/test node-modules environments

test-python: setup build
	$(PY) -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

# npm writes this file last. Without Node.js, the tests that need it are skipped.
NODE_MODULES := tests/node/node_modules/.package-lock.json

.PHONY: node-modules
node-modules: $(NODE_MODULES)

$(NODE_MODULES): tests/node/package.json tests/node/package-lock.json
	@if command -v node >/dev/null; then \
		cd tests/node && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json; \
	else echo 'no Node.js on PATH: tests that ask JavaScript clients are skipped'; fi

# The tests also pass repaired streams to clients and frameworks that cannot be installed in the same environment as the
# `test` extra. The frameworks take long to install, so only the full suites use them.
ENVIRONMENTS := old $(if $(STREAMWELD_FULL),recipes engines)

.PHONY: environments
environments: $(ENVIRONMENTS:%=$(VENV)/%/made)

$(VENV)/%/made: tests/integrations/dropin/environments/%.txt | $(STAMPS)/venv
	$(PY) -m venv --clear --without-pip $(@D)
	$(PY) -m pip --python $(@D)/bin/python install --quiet --no-compile --no-deps --only-binary :all: --requirement $<
	@touch $@

.PHONY: hunt
hunt: setup build ## search for streams that are misread (HUNT=100000 per backend); continues where it stopped
	$(PY) -m tests.testing.hunt --count $(or $(HUNT),100000) --state build/hunt-native.json
	$(PY) -m tests.testing.hunt --count $(or $(HUNT),100000) --state build/hunt-pure.json --backend pure

.PHONY: nightly reliability scorecard-short
nightly: setup build $(VENV)/engines/made ## measure the reliability scorecard (hours; continues where it stopped); ROWS="R4 R11" for some rows
	$(PY) .ci/scorecard.py run $(ROWS)

reliability: | $(STAMPS)/venv ## write reliability.json and docs/reliability.md; fails if a row is missing, stale or failing
	$(PY) .ci/scorecard.py assemble

scorecard-short: setup build ## run the short forms of scorecard rows that no suite covers, as .ci/run does
	$(PY) .ci/scorecard.py run --short $(ROWS)

.PHONY: conformance scoreboard
conformance: $(STAMPS)/test build ## package the conformance suite into dist/, and run streamweld on it
	PYTHONPATH=. $(PY) -m tests.conformance.package --out dist
	PYTHONPATH=. $(PY) -m tests.conformance.scoreboard run streamweld

scoreboard: $(STAMPS)/test node-modules build $(VENV)/conformance/readers/made $(VENV)/conformance/litellm/made ## run other readers on the suite; writes docs/scoreboard/
	PYTHONPATH=. $(PY) -m tests.conformance.scoreboard run $(READERS)
	PYTHONPATH=. $(PY) -m tests.conformance.scoreboard page

$(VENV)/conformance/%/made: tests/conformance/environments/%.txt | $(STAMPS)/venv
	$(PY) -m venv --clear --without-pip $(@D)
	$(PY) -m pip --python $(@D)/bin/python install --quiet --no-compile --no-deps --only-binary :all: --requirement $<
	@touch $@

.PHONY: fuzz wheels release-check reproducible audit
fuzz: build ## fuzz the core and the Python entry points (FUZZ_SECONDS=60 per target)
	$(PY) .ci/fuzz.py run --seconds $(or $(FUZZ_SECONDS),60)
	$(PY) .ci/fuzz_python.py --seconds $(or $(FUZZ_SECONDS),60)

wheels: build ## build the wheels from the source distribution, and try them in clean environments
	.ci/wheels

release-check: build ## check wheels, source distribution, clean environments, metadata, workflows and core crate
	.ci/release-check

reproducible: | $(STAMPS)/venv ## check that two builds of the wheel are equal, one from the source distribution, offline
	.ci/reproducible

audit: ## report known vulnerabilities of Python and npm packages (queries advisory databases)
	.ci/audit

.PHONY: bench
bench: $(STAMPS)/bench build ## compare the parser with other readers, minimal readers and the pure backend
	$(PY) -m pytest benches $(BENCH_ARGS)

.PHONY: bench-bulk
bench-bulk: $(STAMPS)/bulk build ## compare Arrow columns with orjson, DuckDB and Polars
	PYTHONPATH=python:. $(PY) -m benches.bulk $(BENCH_ARGS)

.PHONY: bench-history bench-convert race
bench-history: ## compare history converters, in a separate environment: litellm requires an older openai
	@$(MAKE) --no-print-directory VENV=.venv/history RACE=history race

bench-convert: ## compare stream converters, in the same environment
	@$(MAKE) --no-print-directory VENV=.venv/history RACE=convert race

race: $(STAMPS)/history build
	$(PY) -m pytest benches/test_$(RACE).py -k rivals -s $(BENCH_ARGS)

# Once $(STAMPS)/docs exists, the build needs no network: the site does not load fonts or scripts from other hosts.
SITE := build/site
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

.PHONY: docs docs-serve docs-generate docs-test
docs: $(STAMPS)/docs ## build the documentation into build/site; warnings and dead links are errors
	$(PY) docs/generate.py --check
	$(MKDOCS) build --quiet --strict --config-file docs/site/mkdocs.yml

docs-serve: $(STAMPS)/docs ## serve the documentation on http://127.0.0.1:8000, rebuilt after every change
	$(MKDOCS) serve --config-file docs/site/mkdocs.yml

docs-generate: $(STAMPS)/docs ## update the generated pages after a change to _spec or the vectors
	$(PY) docs/generate.py

docs-test: docs build ## run every code block of the documentation and open every page in Chromium
	STREAMWELD_SITE=$(SITE) $(PY) -m pytest tests/docs -n auto $(PYTEST_ARGS)

# The parts are independent, so that they can run in parallel (`make --jobs=2 lint`).
.PHONY: lint lint-python lint-types lint-pyright lint-stubs lint-rust
lint: lint-stubs lint-python lint-types lint-pyright lint-rust ## run ruff, mypy, pyright, stubtest, rustfmt and clippy

lint-python: $(STAMPS)/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types: $(STAMPS)/lint
	$(BIN)/mypy --strict python/

lint-pyright: $(STAMPS)/lint
	$(BIN)/pyright --pythonpath $(PY) --warnings
	PYTHONPATH=python $(BIN)/pyright --pythonpath $(PY) --verifytypes streamweld --ignoreexternal

lint-stubs: $(STAMPS)/lint build
	$(PY) -m mypy.stubtest streamweld._native --mypy-config-file pyproject.toml

lint-rust: | $(STAMPS)/venv
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(PY) .ci/unsafe_blocks.py

.PHONY: clean
clean: ## remove .venv, builds and caches
	rm -rf $(VENV) tests/node/node_modules target build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f python/streamweld/_native.*.so python/streamweld/_native.*.pyd python/streamweld/_native.*.dylib
	find $(wildcard .ci python tests benches) -name __pycache__ -type d -prune -exec rm -rf {} +
