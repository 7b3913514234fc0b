# Every target makes what it needs first; nothing has to be installed by hand but Python 3.11 or newer.
SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# Bytecode is kept, whatever this machine has set: without it each process of pytest compiles all tests anew.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# uv with the lock as constraints; the canvas is built by its own rule, which knows when its sources changed.
INSTALL := $(PY) tools/packages.py install
LOCK := requirements.lock
BUNDLE := widgets/static/canvas.js
BUNDLE_SOURCES := $(wildcard widgets/js/src/* widgets/js/src/inspect/* widgets/js/*.mjs widgets/js/package*.json)
# Copied beside JupyterLab by the installation, an editable one too.
LAB := $(wildcard widgets/lab/*.json widgets/lab/static/*)
TESTS ?= tests
# Searches against time have less of it beside others: what failed is tried once more, alone, and said so.
AGAIN = { printf '\n== %s\n' "once more, alone: what failed beside others" && $(PY) -m pytest --all --last-failed --last-failed-no-failures none $(TESTS); }
say = @printf '\n== %s\n' "$(1)"

.PHONY: help run lessons test check lint js unit every browser extras fuzz fuzz-server load faults bench lock licences clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

run: $(VENV)/.for-run $(BUNDLE) ## open the designer on 127.0.0.1:8050
	$(BIN)/topoloom design

# With settings of its own: a Lab that offers no build of what Dash brings, and asks nobody for news.
# A Lab refuses root, whom containers have, unless it is told.
lessons: $(VENV)/.for-run $(BUNDLE) ## open the lessons in JupyterLab
	JUPYTER_CONFIG_PATH=tools/jupyter $(BIN)/jupyter lab --ip=127.0.0.1 $$([ "$$(id -u)" != 0 ] || echo --allow-root) gallery/notebooks/README.md

test: lint js unit ## what to run before a commit: ten minutes on two cores

check: lint js every browser ## everything that CI runs

lint: $(VENV)/.for-test $(BUNDLE) ## ruff, mypy, import-linter, licences
	$(call say,ruff)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	$(call say,mypy --strict)
	@$(BIN)/mypy
	$(call say,import-linter)
	@$(BIN)/lint-imports --no-logo
	$(call say,licences)
	@$(PY) tools/audit.py

js: $(VENV)/.for-test $(BUNDLE) ## the types of the canvas, and its tests that need no browser
	$(call say,tsc)
	@$(PY) tools/bundle.py run types --silent
	$(call say,node --test)
	@said=$$($(PY) tools/bundle.py test --silent 2>&1) || { printf '%s\n' "$$said"; exit 1; }; \
		printf '%s\n' "$$said" | grep -E '^. (tests|pass|fail) '

unit: $(VENV)/.for-test ## the tests without a screen, on all cores; a cover of the large families
	$(call say,pytest without a screen)
	@$(PY) -m pytest -n auto -q -m "not browser and not notebook and not alone" $(TESTS)

every: $(VENV)/.for-test ## the same with every case, and what is slow
	$(call say,pytest without a screen: every case)
	@$(PY) -m pytest -n auto --all -m "not browser and not notebook and not alone" $(TESTS) || $(AGAIN)

# Two files at a time, since a page waits for its server most of the time; then one after the other what times itself.
browser: $(VENV)/.for-test $(BUNDLE) ## the tests in Chromium and JupyterLab, and those of searches against time
	$(call say,pytest in a browser)
	@chromium=$$($(PY) tools/chromium.py) && export CHROMIUM="$$chromium" && \
		{ $(PY) -m pytest -n 2 --all --dist loadfile -m "(browser or notebook) and not alone" $(TESTS) || $(AGAIN); } && \
		printf '\n== %s\n' "pytest against time" && $(PY) -m pytest --all -m alone $(TESTS)

extras: $(VENV)/.for-test ## install PyTorch, to run plans over gloo, and PyAV, for films as WebM (large)
	@$(INSTALL) --no-build-isolation -e '.[gloo,video]'

fuzz: $(VENV)/.for-test ## feed every reader broken files for ten minutes
	@$(PY) -m tests.robust.fuzz --seconds 600

fuzz-server: $(VENV)/.for-test $(BUNDLE) ## ask a designer ten thousand hostile things, some five minutes
	@$(PY) -m tests.robust.fuzz_server --requests 10000

load: $(VENV)/.for-test ## fifty sessions draw and solve for five minutes
	@$(PY) -m tests.robust.load --seconds 300

faults: $(VENV)/.for-test ## kill solvers, servers and workers a hundred times
	@$(PY) -m tests.robust.faults --kills 100

bench: $(VENV)/.for-run ## our figures beside the published ones
	$(PY) -m benchmarks table8

lock: $(VENV)/.for-test ## pin the newest set that pyproject.toml allows
	$(PY) tools/packages.py lock

licences: $(VENV)/.for-test ## write the table of licences anew
	@$(PY) tools/audit.py --write

clean: ## remove what was built, the environment too
	rm -rf $(VENV) $(BUNDLE) $(BUNDLE).map build dist widgets/js/node_modules .mypy_cache \
		.pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(PY): | tools/venv.sh
	@sh tools/venv.sh $(VENV)

# The searches are compiled beside the designer's first page, and here before the tests.
$(VENV)/.for-run: pyproject.toml $(LOCK) $(LAB) | $(PY)
	$(call say,installing)
	@$(INSTALL) hatchling hatch-jupyter-builder editables $$($(PY) tools/bundle.py --requirement)
	@$(INSTALL) --no-build-isolation -e .
	@$(PY) -m compileall -q ccl interchange formulations gallery widgets designer
	@touch $@

$(VENV)/.for-test: $(VENV)/.for-run
	$(call say,installing what the tests need)
	@$(INSTALL) --no-build-isolation -e '.[test]'
	$(call say,compiling the searches)
	@$(PY) -m formulations.solving.compile_kernels
	@touch $@

$(BUNDLE): $(BUNDLE_SOURCES) | $(VENV)/.for-run
	$(call say,building the canvas)
	@$(PY) tools/bundle.py
