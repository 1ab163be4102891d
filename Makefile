# make demo, make test; for work on the code: make setup, make check. pip's own variables (PIP_INDEX_URL, PIP_CERT, …) are honoured.
PYTHON ?= python3
VENV ?= .venv
READY ?= $(VENV)/.ready
WORKERS ?= auto
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: setup demo check test static explore faults format clean

setup: $(READY)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" || \
		{ echo "transduce needs Python 3.11, 3.12 or 3.13, and \`$(PYTHON)\` is not one of them." \
		"Name one: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" || \
		{ echo "\`$(PYTHON)\` cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: $(READY)
	$(BIN)/transduce demo

static: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: static
	$(PYTEST) -q -m "not slow"

test: static
	$(PYTEST) --cov --cov-report=term

# Property tests with new random examples, for as long as you let it run; a failure prints how to repeat it.
explore: $(READY)
	TRANSDUCE_EXAMPLES=explore $(PYTEST) -q -k "not faults" -m "not slow"

# The whole campaign of faults, about an hour; parts of it: make faults PARTS="forked models".
faults: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=src $(BIN)/python -m tests.faults.campaign $(PARTS)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache
