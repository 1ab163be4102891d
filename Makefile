# make demo, make test; for work on the code: make setup, make check. pip's own variables (PIP_INDEX_URL, PIP_CERT, …) are honoured.
PYTHON ?= python3
VENV ?= .venv
READY ?= $(VENV)/.core
WORKERS ?= auto
CORE := $(wildcard core/*.cpp core/*.h core/CMakeLists.txt)
comma := ,
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: setup demo check test extended static explore faults core-tests format clean

setup: $(READY)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" || \
		{ echo "transduce needs Python 3.11, 3.12 or 3.13, and \`$(PYTHON)\` is not one of them." \
		"Name one: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" || \
		{ echo "\`$(PYTHON)\` cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt scikit-build-core nanobind cmake ninja
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	@touch $@

# Builds the C++ core again if one of its files changed. Without a compiler translation runs on torch.
$(VENV)/.core: $(VENV)/.ready $(CORE)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Half a GB, which only tests of a Ray cluster need.
$(VENV)/.ray: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "ray[data]"
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
	$(PYTEST) --cov --cov-report=term -m "not extended"

# Fuzzing at length, campaigns of faults, ranks that are killed, corpora beyond the memory.
extended: $(READY) $(VENV)/.ray
	$(PYTEST) -q -m extended
	@if which clang++ aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null; then $(MAKE) core-tests; \
		else echo "core-tests are left out: they need clang, g++-aarch64-linux-gnu and qemu-user"; fi

# Property tests with new random examples, for as long as you let it run; a failure prints how to repeat it.
explore: $(READY)
	TRANSDUCE_EXAMPLES=explore $(PYTEST) -q -m hypothesis

# The whole campaign of faults, about an hour; parts of it: make faults PARTS="forked models".
faults: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=src $(BIN)/python -m tests.faults.campaign $(PARTS)

# The C++ tests with two compilers, under sanitizers, and for aarch64 in an emulator (clang, g++-aarch64-linux-gnu, qemu-user).
CORE_TESTS = $(BIN)/cmake -S core -B build/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DTRANSDUCE_MODULE=OFF \
	-DTRANSDUCE_TESTS=ON -DCMAKE_CXX_FLAGS=-Werror $(2) && $(BIN)/cmake --build build/$(1) && $(3) build/$(1)/core_tests
core-tests: $(READY)
	$(call CORE_TESTS,gcc,-DCMAKE_CXX_COMPILER=g++)
	$(call CORE_TESTS,clang,-DCMAKE_CXX_COMPILER=clang++)
	$(call CORE_TESTS,address,-DCMAKE_CXX_COMPILER=g++ -DTRANSDUCE_SANITIZE=address$(comma)undefined)
	$(call CORE_TESTS,thread,-DCMAKE_CXX_COMPILER=g++ -DTRANSDUCE_SANITIZE=thread)
	$(call CORE_TESTS,aarch64,-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_SYSTEM_NAME=Linux \
		-DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_EXE_LINKER_FLAGS=-static,qemu-aarch64)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache
