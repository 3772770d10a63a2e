# Everything happens in .venv; `make demo` and `make test` set it up on a machine that has Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint benchmarks clean

.venv/.torch: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) torch
	$(INSTALL) --editable '.[torch]'
	touch $@

.venv/.dev: .venv/.torch
	$(INSTALL) --editable '.[dev]'
	touch $@

demo: .venv/.torch  ## train a toy translation and translate with it
	$(BIN)/python examples/toy_translation.py toy.safetensors

test: lint  ## everything that CI checks
	$(BIN)/python -m pytest -n auto

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmarks: .venv/.dev  ## the ones that run on a CPU in minutes; those over corpora take a data folder
	$(BIN)/python benchmarks/model_forward.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
