# Two commands matter: `make dashboard` and `make test`. Both set up .venv on first use and are quick afterwards.
PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: dashboard test lint bench examples calculators calibrate accuracy peers wheel clean

dashboard: $(VENV)/.installed
	@$(BIN)/breakeven dashboard --port $(PORT)

test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	@$(BIN)/python -m bench.run

examples: $(VENV)/.installed
	@$(BIN)/python -m bench.examples

calculators: $(VENV)/.installed
	@$(BIN)/python -m bench.calculators
	@$(BIN)/python -m bench.talking

calibrate: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.calibrate

accuracy: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.accuracy

peers: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.peers

wheel: $(VENV)/.installed-dev
	@$(BIN)/python -m build --wheel

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed and '$(PYTHON)' was not found: install it, or run make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, '$(PYTHON)' is $$($(PYTHON) -V 2>&1): run make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing: on Debian or Ubuntu run 'sudo apt-get install python3-venv', then make again" >&2; exit 2; }
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing breakeven (a minute, once) ..." >&2
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e . || { echo "The installation failed: check the network or set HTTPS_PROXY, then run make again" >&2; exit 3; }
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing breakeven and its test tools (a minute, once) ..." >&2
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]' || { echo "The installation failed: check the network or set HTTPS_PROXY, then run make again" >&2; exit 3; }
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
