# Everything a newcomer needs: `make gate` and `make test`; both set up .venv when it is missing or out of date.
# The kept records are of 3.11 with the lock's versions of its packages: where it is there it is taken, so that they need not be made anew.
PYTHON ?= $(shell python3.11 -c 'import ensurepip, venv; print("python3.11")' 2>/dev/null || echo python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH ?=

.PHONY: help setup gate test lint bench lock clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 10

setup: $(READY)  ## make .venv from the lock, with this project in it

# Rebuilt when the lock or the project's own table changes. The stamp comes last: an interrupted set-up is done again.
$(READY): requirements/dev.txt pyproject.toml
	@echo "setting up $(VENV) (torch and its CUDA libraries: about 3 GB to fetch the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

gate: setup  ## whether this tree may be merged: goldens, tests, mutants, claims, trailers; with TORCH=2.9.1 its CPU goldens alone
	@$(BIN)/gate $(if $(TORCH),verify --torch $(TORCH),run --allow-stale h200)

test: setup  ## the tests, on two workers; leaves evidence of them
	@$(BIN)/python -m pytest -n 2 --dist worksteal -p gate.evidence.session

lint: setup  ## ruff and mypy --strict over gate, src, goldens and tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: setup  ## measure what recording costs; writes docs/benchmarks.md
	@$(BIN)/python -m tests.bench

lock: setup  ## resolve requirements/dev.txt anew
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header \
	  --extra checks --extra detector --extra dev pyproject.toml -o requirements/dev.txt

clean:  ## remove .venv and caches
	rm -rf $(VENV) .gate .mypy_cache .pytest_cache .ruff_cache build dist
