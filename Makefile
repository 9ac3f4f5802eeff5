# Every target starts from a bare checkout: Python 3.11 or newer, make and pip are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-neural lint types bench results soak fuzz clean

demo: $(VENV)/installed
	$(BIN)/perikope demo

# Tests run in as many processes as there are cores; a file's tests stay together, because they share their fixtures.
test: lint types
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# The neural part: `make test` leaves it out where torch is not there. Brings torch, a large download.
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

# One page an experiment in docs/results, for the collections that are there. What is finished is kept in .bench/results and not run again;
# the program ends with 1 where topics were passed over, which the page says.
results: $(VENV)/installed-dev
	mkdir -p docs/results .bench/results
	for name in conditionalqa evidence-inference obliqa; do \
		if [ -d ../shared/data/$$name ]; then \
			$(BIN)/perikope experiment experiments/$$name.toml --out .bench/results/$$name || [ $$? -eq 1 ] || exit 2; \
			cp .bench/results/$$name/report.md docs/results/$$name.md && cp .bench/results/$$name/report.html docs/results/$$name.html || exit 2; \
		else echo "no collection $$name beside this folder: left out"; fi; \
	done

# The durability tests at length: a thousand kills, every byte flipped, every fault at every step. Takes the better part of an hour.
soak: $(VENV)/installed-dev
	PERIKOPE_KILLS=1000 PERIKOPE_SOAK=1 PERIKOPE_FORGERIES=5000 $(BIN)/python -m pytest tests/durability

# Damaged files for every reader, for FUZZ_SECONDS in all; what a reader does not cope with is kept in .fuzz/.
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
