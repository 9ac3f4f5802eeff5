# Every target starts from a bare checkout: Python 3.11 or newer, make and pip are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types bench soak clean

demo: $(VENV)/installed
	$(BIN)/perikope demo

test: lint types
	$(BIN)/python -m pytest

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

# The durability tests at length: a thousand kills, every byte flipped, every fault at every step. Takes the better part of an hour.
soak: $(VENV)/installed-dev
	PERIKOPE_KILLS=1000 PERIKOPE_SOAK=1 PERIKOPE_FORGERIES=5000 $(BIN)/python -m pytest tests/durability

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/installed
