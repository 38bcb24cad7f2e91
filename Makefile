PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := .venv-core
HOME_FOLDER ?= warehouse
# random: make test-slow also runs the property tests, with other examples each time. fixed: it leaves them to make test.
EXAMPLES ?= random
# Bytecode is kept even where the environment forbids it: the tests start Python a few hundred times.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadgroup
ANNOTATED ?= $(wildcard ../shared/data/annotations/*.json)

.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-core agreement benchmarks docs lint types check clean constraints

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: $(VENV)/.installed  ## run the whole pipeline on the default corpus: land, tables, train, score, report
	$(BIN)/ssrem run --home $(HOME_FOLDER) $(ARGS)

test: $(VENV)/.installed-dev  ## run all tests except the slow ones
	OMP_NUM_THREADS=1 $(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.installed-dev  ## run the slow tests: a real server and worker, clusters, faults, random examples
	$(if $(filter random,$(EXAMPLES)),FUZZ=5) $(PYTEST) \
		-m "slow$(if $(filter random,$(EXAMPLES)), or hypothesis)" --hypothesis-profile $(EXAMPLES) $(ARGS)

test-core: $(CORE)/.installed  ## run the tests of what pip install ssrem alone can do, in an environment that has no more
	@rm -rf build  # modules of earlier builds would be installed, too
	@$(CORE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --force-reinstall .
	@# From its own folder, so that the installed package is tested, not the one beside it.
	cd tests/core && ../../$(CORE)/bin/python -P -m pytest -q -c /dev/null --rootdir . --confcutdir . $(ARGS) test_core.py

agreement: $(VENV)/.installed  ## compare every evaluator with the papers' figures (hours, resumable; ANNOTATED="FILE ...")
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[base,lm]'
	@test -e $(HOME_FOLDER)/catalog.duckdb || $(BIN)/ssrem run --home $(HOME_FOLDER)
	$(BIN)/python -m benchmarks.agreement $(ANNOTATED) --home $(HOME_FOLDER) $(ARGS)

benchmarks: $(VENV)/.installed  ## measure the speed table of docs/results.md (minutes; ARGS="ROW ... " for others)
	$(BIN)/python -m benchmarks.speed --write $(ARGS)

docs: $(VENV)/.installed  ## renew the generated parts of docs/sql.md
	$(BIN)/python -m ssrem.report.sql_docs docs/sql.md

lint: $(VENV)/.installed-dev  ## run ruff, sqlfluff, lint-imports (the contracts of imports), and build the docs as a site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint --disable-progress-bar sql
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

types: $(VENV)/.installed-dev  ## run mypy
	$(BIN)/mypy

check: lint types test test-core test-slow  ## run lint, types and all tests, as CI does

constraints: $(VENV)/.installed-dev  ## write constraints.txt from this environment, all extras included
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev,bench,base,lm]'
	$(BIN)/python -m pip freeze --exclude-editable --exclude ssrem > constraints.txt

clean:  ## delete the environment and caches, but not the home folder
	rm -rf $(VENV) $(CORE) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"ssrem needs Python 3.11 to 3.13, {sys.executable} is {v[0]}.{v[1]}; name another with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing into $(VENV): the first time takes a few minutes"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing into $(VENV): the first time takes a few minutes"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(CORE)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@test -x $(CORE)/bin/python || $(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt . pytest
	@touch $@
