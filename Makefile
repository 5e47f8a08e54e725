# The two commands are "make demo" and "make test". Each makes .venv and installs what it needs.
# README.md says what they come to, for machines without make.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# The oldest SDK that the kit promises to work with, in a virtual environment of its own.
OLD_SDK = 0.2.177
OLD_VENV ?= .venv-oldest-sdk
PIP_FLAGS = --quiet --disable-pip-version-check

# What the kernel, the rule language or the command line decides, whichever SDK asks: run once, with the
# newest.
OF_ONE_SDK = --ignore=tests/doors --ignore=tests/attacks --ignore=tests/cli --ignore=tests/examples \
	--ignore-glob='tests/e2e/test_confined_holes_*' --ignore=tests/e2e/test_confined_ends.py \
	--ignore=tests/e2e/test_confined_in_containers.py --ignore=tests/e2e/test_confined_shells.py \
	--ignore=tests/e2e/test_confined_as_anybody.py --ignore=tests/e2e/test_confined_extras.py \
	--ignore=tests/e2e/test_permission_rules_cli.py --ignore=tests/e2e/test_rules_on_the_cli.py \
	--ignore=tests/e2e/test_mentions_on_the_cli.py --ignore=tests/e2e/test_hostile_project.py \
	--ignore=tests/e2e/test_prepared_projects.py --ignore=tests/e2e/test_broker_on_the_cli.py

.PHONY: demo test lint types contracts unit e2e oldest bench check-mac clean

demo: $(VENV)/installed
	$(BIN)/agent-kit demo

test: lint types contracts unit e2e oldest
	@echo "all checks passed"

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agent-kit needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	touch $@

$(OLD_VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(OLD_VENV)
	grep -v -i -E '^(claude-agent-sdk|mcp|mcp-types)==' constraints.txt > $(OLD_VENV)/constraints.txt
	echo 'claude-agent-sdk==$(OLD_SDK)' >> $(OLD_VENV)/constraints.txt
	$(OLD_VENV)/bin/python -m pip install $(PIP_FLAGS) -c $(OLD_VENV)/constraints.txt -e '.[dev]'
	touch $@

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

contracts: $(VENV)/installed
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/installed
	$(BIN)/python -m pytest -q -m 'not e2e' -n 3 --dist worksteal --cov --cov-report=term-missing:skip-covered

e2e: $(VENV)/installed
	$(BIN)/python -m pytest -q -m e2e -n 4 --dist worksteal

oldest: $(OLD_VENV)/installed
	$(OLD_VENV)/bin/python -m pytest -q -m e2e -n 4 --dist worksteal $(OF_ONE_SDK)

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks

# On macOS: whether the seatbelt profile holds what it should. Elsewhere it says so and fails.
check-mac: $(VENV)/installed
	$(BIN)/python -m agent_kit.confine.check_mac

clean:
	rm -rf $(VENV) $(OLD_VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
