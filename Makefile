# Everything a contributor runs. `make setup` needs Python 3.11 or later and nothing else.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup demo quick unit properties test lint bench lock clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.complete .venv/.compiled ## a virtual environment in .venv/ with everything from the lock file

.venv/.complete: requirements.lock pyproject.toml
	@$(PYTHON) tools/set_up.py

# Those that pyproject.toml names; tools/compile.py looks at what is really older.
.venv/.compiled: $(wildcard src/tidegate/gateway/connection/*.py src/tidegate/gateway/identity/*.py src/tidegate/gateway/shared/*.py src/tidegate/mqtt/*.py src/tidegate/control/limiting/*.py) setup.py pyproject.toml | .venv/.complete
	@$(BIN)/python tools/compile.py

demo: setup ## the whole system, flooded without and with protection, and the verdict
	@$(BIN)/tidegate demo

quick: setup unit properties ## tests without brokers, Spark and browser: a minute or two

unit: setup
	$(BIN)/python -m pytest tests/unit $(PYTEST_ARGS)

properties: setup
	$(BIN)/python -m pytest tests/properties tests/scenarios $(PYTEST_ARGS)

# What starts nothing goes beside the linters; what starts brokers, Spark and browser has the machine for itself.
test: setup ## lint and all tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line unit lint properties
	$(BIN)/python -m pytest tests/live tests/browser $(PYTEST_ARGS)

lint: setup ## ruff, mypy and the layer rule
	$(BIN)/ruff check setup.py src benchmarks tests tools
	$(BIN)/ruff format --check setup.py src benchmarks tests tools
	$(BIN)/mypy
	PYTHONPATH=benchmarks:. $(BIN)/lint-imports --no-cache

bench: setup ## every benchmark, as ratios to a peer in the same run
	@for name in pipeline moves crashes chain endurance calm demo audit send-rate-scale gateway ledger storm interop hostile identity outage fuzz; do $(BIN)/tidegate bench $$name || exit $$?; done

lock: setup ## resolve the dependencies anew (versions and hashes, no addresses)
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --upgrade --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	  --output-file requirements.lock pyproject.toml

clean: ## remove what setup and tests left behind
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build
	find src -name '*.so' -delete
