# The few commands of this repository. PYTHON chooses the interpreter, SLIPWAY_PORT the demo's port.
# Unless it is chosen, it is python3, or the distribution's where a version manager built that one slow.
PYTHON ?= $(shell python3 -m portal.management.interpreters --fast || echo python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Every part is a process of its own: without compiled files each would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-reset test test-cluster test-engines coverage check bench engines install openapi lock sbom release FORCE
.DEFAULT_GOAL := demo

demo: $(STAMP)
	@$(BIN)/python -m slipway_demo

demo-reset: $(STAMP)
	@$(BIN)/python -m slipway_demo --reset

# Shows why each skipped test was skipped. ARGS narrows it down: make test ARGS=tests/fleet
# Four workers on two cores, because those with the demo and with local clusters mostly wait; in a new
# clone each of the four would compile every file. The walk of the README is run by .ci/quickstart.
# Journeys wait until they pass every time: pytest tests/journeys.
test: $(STAMP)
	@$(BIN)/python -m compileall -q -j 2 portal deployments fleet client/src localcluster/src demo/src
	@$(BIN)/python -m tests.compiled
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder -q -rs --durations=10 --ignore tests/e2e/test_readme.py --ignore tests/journeys $(ARGS)

# The portal on a real control plane with KServe, built from Go modules into a cache; see CONTRIBUTING.md.
test-cluster: $(STAMP)
	@$(BIN)/python -m tests.cluster $(ARGS)

# The commands of rendered pods on real engines, installed into a cache; see CONTRIBUTING.md.
test-engines: $(STAMP)
	@$(BIN)/python -m tests.engines $(ARGS)

# Branch coverage of the product, without the embedded cluster. Not a part of `make test`, which it would
# slow down by a third; the end-to-end tests are left out, because what they reach others reach too.
COVERED ?= tests --ignore tests/e2e
coverage: $(STAMP)
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -n 4 --dist loadgroup --no-loadscope-reorder -q $(COVERED)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage report

check: $(STAMP)
	@$(BIN)/python -m portal.management.check

bench: $(STAMP)
	@$(BIN)/python -m tests.benchmarks $(NAME)

openapi: $(STAMP)
	@$(BIN)/python -m portal.management.check --write-openapi

# Adds the newest release of each engine to deployments/engines, and prints what it changed.
engines: $(STAMP)
	@$(BIN)/python -m tests.engine_releases $(ARGS)

# Pins versions anew: make lock keeps what is pinned, make lock ARGS=--upgrade renews all.
lock: $(STAMP)
	@$(BIN)/python -m portal.management.lock $(ARGS)

# Lists what the production image installs, as CycloneDX: var/slipway.cdx.json.
sbom: $(STAMP)
	@$(BIN)/python -m portal.management.sbom

# Builds the wheels, the chart's package, SBOM and OpenAPI document of the version in pyproject.toml: dist/.
release: $(STAMP)
	@$(BIN)/python -m portal.management.release

install: $(STAMP)

# Whoever names an interpreter gets that one, also where another made the environment before.
ifneq ($(origin PYTHON),file)
$(STAMP): FORCE
endif

$(STAMP): requirements.lock portal/management/install.py portal/management/interpreters.py
	@$(PYTHON) -m portal.management.install $(VENV)
	@touch $@
