# Three commands: make setup, make check, make test. PIP_* variables (index, cache, proxy) are honoured as pip does.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY ?= $(VENV)/.ready
WORKERS ?= 2

.PHONY: setup check test format clean

setup: $(READY)

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -m "not slow" -n $(WORKERS)

test: check
	$(BIN)/python -m pytest -m slow -n $(WORKERS) --cov --cov-report=term

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .coverage .import_linter_cache
