# Every target starts from a bare checkout: Python 3.11 or newer, make and pip are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-adapters test-cluster test-neural test-docs page-tools page-check screenshots docs release-check lint types kernels checked-kernels bench results soak fuzz clean

demo: $(VENV)/installed
	$(BIN)/perikope demo

# Everything that a change must pass. The aim is less than 12 minutes on two cores in a new clone, so the slow suites run
# at a reduced size: `soak` and `fuzz` below run them in full. Kernels are compiled once for all processes, beside the
# check of types. Tests run in as many processes as there are cores. The tests of a file stay together, because they
# share their fixtures; files run in their order, so that the small ones at the end fill up the last gaps. At the end, the
# parts that were skipped for lack of a package, a browser or data are named.
test: $(VENV)/installed-dev
	$(MAKE) --jobs=2 lint checked-kernels kernels types
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
	@$(BIN)/python -m tests.skipped

# Tests of the neural part, which `make test` skips if torch is not installed. Installs torch, a large download.
test-neural: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,neural,onnx]'
	$(BIN)/python -m pytest tests/neural src/perikope/neural

# Tests of the adapters with the newest versions of the frameworks that pip finds. `make test` runs the same tests with
# the versions that are installed.
test-adapters: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable '.[dev]'
	$(BIN)/python -m pytest tests/adapters src/perikope/adapters

# Clusters on Ray with simulated nodes that are killed, which `make test` leaves out: the nodes must start within fixed
# times, and take some minutes. Installs Ray, and the schemas of Kubernetes for the example in deploy: large downloads.
test-cluster: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,cluster]' kubernetes-validate
	PERIKOPE_TEST_RAY=1 $(BIN)/python -m pytest tests/unit/cluster
	PERIKOPE_TEST_RAY=1 $(BIN)/python -m tests.soak --reduced --scenario cluster
	PERIKOPE_TEST_RAY=1 $(BIN)/python -m tests.soak --prove --scenario cluster

# Runs every command and program that the documentation prints, also those that `make test` leaves out because they are
# slow or need torch. Each page runs in a clone of the last commit, with an environment of its own that only has what the
# page installs.
test-docs: $(VENV)/installed-dev
	PERIKOPE_DOCUMENTATION=all $(BIN)/python -m pytest tests/documentation

# What the tests of the page need besides Chromium: Playwright, and from npm TypeScript and axe. Nothing of it is part of
# the package. `make test` runs these tests where everything is installed, and else says what it left out.
page-tools: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'playwright>=1.45'
	npm install --prefix tests/page --no-audit --no-fund --no-package-lock --loglevel error

page-check: page-tools
	$(BIN)/python -m pytest tests/page tests/server/test_page.py
	@$(BIN)/python -m tests.page

# Writes the pictures of the page in docs/images, light and dark.
screenshots: page-tools
	$(BIN)/python -m tests.page.screenshots docs/images

# Writes the documentation as a site to build/site, from the Markdown files as they lie; docs/index.md declares the
# navigation. A warning of Sphinx, a link without a target, or anything that a page would load from elsewhere is an error.
docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	rm -rf build/site build/site-state
	$(BIN)/python -m sphinx --builder html --conf-dir scripts/website --doctree-dir build/site-state \
		--fail-on-warning --keep-going --nitpicky --quiet . build/site
	$(BIN)/python scripts/website/check_site.py build/site

# Builds sdist and wheel from the last commit and checks what users would install: metadata, sizes, licence, undeclared
# imports; in bare environments, with the lowest and the newest versions of the dependencies and each supported Python on
# this machine, the demonstration and tests of the installed package; `make demo` in the unpacked sdist.
release-check: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/python scripts/release_check.py

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

kernels: $(VENV)/installed-dev
	$(BIN)/perikope warmup

# Kernels that check bounds, with which tests/durability reads damaged indexes.
checked-kernels: $(VENV)/installed-dev
	$(BIN)/python -m tests.durability.probe

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

# Writes one page per experiment to docs/results, for the collections that are present. Finished work is kept in
# .bench/results and is not repeated. The program exits with 1 if topics were left out; the page lists them. Figures are
# in the HTML page only; the Markdown page links to it.
results: $(VENV)/installed-dev
	mkdir -p docs/results .bench/results
	for name in conditionalqa evidence-inference obliqa; do \
		if [ -d ../shared/data/$$name ]; then \
			$(BIN)/perikope experiment experiments/$$name.toml --out .bench/results/$$name || [ $$? -eq 1 ] || exit 2; \
			sed -E "s/^!\[(.*)\]\(figures\/[^)]*\)$$/Figure: [\1]($$name.html)/" .bench/results/$$name/report.md > docs/results/$$name.md && \
				cp .bench/results/$$name/report.html docs/results/$$name.html || exit 2; \
		else echo "collection ../shared/data/$$name not found: skipped"; fi; \
	done

# First the stress scenarios of tests/soak, for SOAK_SECONDS each. Without SOAK_SECONDS, each takes what it declares:
# mostly two minutes. That of clusters needs Ray (make test-cluster installs it). A table sums them up. Then the durability and property tests in full: a thousand kills, every byte
# flipped, every column forged in every way, every fault at every step, and ten times as many random examples as `test`
# tries. Takes about an hour. The second part also runs if the first one fails.
SOAK_SECONDS ?=
soak: $(VENV)/installed-dev checked-kernels kernels
	PERIKOPE_TEST_RAY=1 $(BIN)/python -m tests.soak $(if $(SOAK_SECONDS),--seconds-per-scenario $(SOAK_SECONDS)); scenarios=$$?; \
	PERIKOPE_KILLS=1000 PERIKOPE_SOAK=1 PERIKOPE_FORGERIES=5000 PERIKOPE_EXAMPLES=5 \
		$(BIN)/python -m pytest --numprocesses auto --dist loadfile tests/durability tests/properties && exit $$scenarios

# Damaged files for every reader, for FUZZ_SECONDS in total. `test` tries 25 per reader. Files on which a reader fails are
# stored in .fuzz/.
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
