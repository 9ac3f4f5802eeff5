# Every target starts from a bare checkout: Python 3.11 or newer, make and pip are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-neural lint types bench results soak fuzz clean

demo: $(VENV)/installed
	$(BIN)/perikope demo

# Tests run in one process per core. The tests of a file stay in one process, because they share fixtures.
test: lint types
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# Tests of the neural part, which `make test` skips if torch is not installed. Installs torch, a large download.
test-neural: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,neural,onnx]'
	$(BIN)/python -m pytest tests/neural src/perikope/neural

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

# Writes one page per experiment to docs/results, for the collections that are present. Finished work is kept in
# .bench/results and is not repeated. The program exits with 1 if topics were left out; the page lists them.
results: $(VENV)/installed-dev
	mkdir -p docs/results .bench/results
	for name in conditionalqa evidence-inference obliqa; do \
		if [ -d ../shared/data/$$name ]; then \
			$(BIN)/perikope experiment experiments/$$name.toml --out .bench/results/$$name || [ $$? -eq 1 ] || exit 2; \
			cp .bench/results/$$name/report.md docs/results/$$name.md && cp .bench/results/$$name/report.html docs/results/$$name.html || exit 2; \
		else echo "collection ../shared/data/$$name not found: skipped"; fi; \
	done

# The durability tests at length: a thousand kills, every byte flipped, every fault at every step. Takes almost an hour.
soak: $(VENV)/installed-dev
	PERIKOPE_KILLS=1000 PERIKOPE_SOAK=1 PERIKOPE_FORGERIES=5000 $(BIN)/python -m pytest tests/durability

# Gives damaged files to every reader, for FUZZ_SECONDS in total. Files that make a reader fail are kept in .fuzz/.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/installed-dev
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m tests.fuzz

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .bench .fuzz

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/installed
