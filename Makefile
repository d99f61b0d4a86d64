# `make help` lists what there is.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
CORES := $(shell nproc 2>/dev/null || echo 2)
PYTEST := $(BIN)/pytest
# which plans a sample of the simulator's draws: every n-th from this one on
FROM ?= 0
DRAW := --from $(FROM)

# Python without its cache compiles the operator at each start of a process, and all tests once a worker
unexport PYTHONDONTWRITEBYTECODE

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.runtime: setup.cfg pyproject.toml hack/setup.sh
	@hack/setup.sh .venv backup,ui,real
	@touch $@

.venv/.dev: setup.cfg pyproject.toml hack/setup.sh hack/dev.lock
	@hack/setup.sh .venv dev
	@touch .venv/.runtime $@

venv: .venv/.dev ## Make .venv with everything that tests and checks need

.venv/.docs: setup.cfg pyproject.toml hack/setup.sh
	@hack/setup.sh .venv docs
	@touch $@

docs: .venv/.docs ## Build the site of the documents into build/site; every broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

sample: .venv/.dev ## Print 60 texts of the code and 60 sentences of documents for a reader to grade [SEED=commit]
	@$(BIN)/python -m tests.style.sample $(SEED)

run: .venv/.runtime ## Start a sandbox, the controller-manager in it and a cluster [CLUSTER="file.yaml ..." EXIT_WHEN_READY=1 BINARIES=dir]
	@$(BIN)/tidb-operator run --sandbox --cluster $(or $(CLUSTER),manifests/samples/basic.yaml) $(if $(EXIT_WHEN_READY),--exit-when-ready) $(if $(BINARIES),--binaries $(BINARIES))

# more processes than cores: half of them run tests that wait most of their time (tests/distribution.py)
test: .venv/.dev ## Run the tests but for those of test-thorough; those on the real control plane, Azurite or fake-gcs-server skip where these were not built
	@$(PYTEST) --dist loadfile -n $$((2 * $(CORES) + 1)) -m "not planted and not thorough"

test-thorough: .venv/.dev ## Run the tests that `make test` leaves out: more cases of what others show, and the slowest ones
	@$(PYTEST) --dist loadfile -n $$((2 * $(CORES) + 1)) -m thorough

test-real: .venv/.dev ## Run clusters of real servers [BINARIES=dir]; a test skips with the names of the programs that the directory lacks
	@BINARIES=$(or $(BINARIES),$(error BINARIES is missing: make test-real BINARIES=~/.tiup/components)) $(PYTEST) -n 0 tests/real

test-fast: .venv/.dev ## Run the tests that need neither seconds nor a control plane
	@$(PYTEST) --dist worksteal -n $(CORES) -m "not slow and not controlplane"

lint: .venv/.dev ## Check format, style, types, import rules and generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/ruff check --preview --select PLW1514 .  # no file is opened in the encoding of the locale
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m apis.crd --check
	@$(BIN)/python -m cli.reasons --check
	@$(BIN)/python -m controller_manager.reference --check
	@$(BIN)/python -m cli.fields --check
	@$(BIN)/python -m cli.doctor.table --check
	@$(BIN)/python -m tests.states --check
	@$(BIN)/python -m tests.style
	@$(BIN)/python -m library.build --check

format: .venv/.dev ## Format the code, regenerate the CRDs, the pages of reasons, metrics and fields
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python -m apis.crd
	@$(BIN)/python -m cli.reasons
	@$(BIN)/python -m controller_manager.reference
	@$(BIN)/python -m cli.fields
	@$(BIN)/python -m cli.doctor.table
	@$(BIN)/python -m tests.states

check: lint test-fast ## What must pass at every commit

controlplane: ## Build etcd, the Kubernetes control plane and kubectl for tests (needs Go, or KUBEBUILDER_ASSETS)
	@hack/controlplane/build.sh

storages: ## Get the servers of Azure and Google Cloud Storage for tests (needs Go and npm); S3's comes with `make venv`
	@hack/storages/build.sh

axe: ## Get axe-core, which checks pages in a browser, for tests (needs npm)
	@hack/axe/build.sh

prometheus: ## Build Prometheus with its discovery of Kubernetes' pods for tests (needs Go)
	@hack/prometheus/build.sh

helm: ## Build Helm for tests and `make manifests` (needs Go)
	@hack/helm/build.sh

upstream: ## Build TiDB Operator v1.6 for tests beside it (needs Go)
	@hack/upstream/build.sh

peers: .venv/.dev ## Build the program of client-go that tests and benches run beside ours (needs Go)
	@$(BIN)/python -m bench.client_go

manifests: .venv/.dev helm ## Render manifests/operator and manifests/scheduler from charts/tidb-operator
	@$(BIN)/python hack/helm/render.py

release: .venv/.dev ## Build the artefacts of a release into dist; push nothing VERSION=1.0.0rc1 [RELEASE_FLAGS=--this-machine]
	@[ -x hack/helm/bin/helm ] || ! command -v go >/dev/null || $(MAKE) -s helm
	@$(BIN)/python -m release $(or $(VERSION),$(error VERSION is missing: make release VERSION=1.0.0rc1)) $(RELEASE_FLAGS)

bench: .venv/.dev ## Measure beside peers; one JSON line a figure [BENCH=workqueue|watch|lists|informers|bringup|lifecycle|clients|take_over|isolation|hostile|thousand|limit|plans|rehearsals|storage|scheduling|simulator|memories]
	@$(BIN)/python -m bench $(BENCH)

walk: .venv/.dev ## Print what reconciles call, and the stacks of their writes, in the simulator; compared by a test [RECORD=1]
	@$(BIN)/python -m bench.walk $(if $(RECORD),--record)

soak: .venv/.dev ## Informers under events, broken connections and restarts for half an hour [SOAK_SECONDS=1800]
	@$(BIN)/python -m bench.soak

simulate-slice: .venv/.dev ## Run a part of it, beside what `make test` draws, and plant defects that its judge must see [FROM=0]
	@$(PYTEST) -q --dist loadfile -n $(CORES) -m planted tests/simulate
	@$(BIN)/python -m simulate run tests/simulate/plans/*.yaml
	@$(BIN)/python -m simulate sweep bring-up-tiny tikv-in pd-failover tidb-config --every 240 $(DRAW)
	@$(BIN)/python -m simulate sweep pair mistake crossed dm other field same order backup schedule beside joined flip invalid --every 25 $(DRAW)
	@$(BIN)/python -m simulate sweep loss --every 37 $(DRAW)
	@$(BIN)/python -m simulate sweep midway --every 89 $(DRAW)
	@$(BIN)/python -m simulate sweep return --every 241 $(DRAW)
	@$(BIN)/python -m simulate sweep sidecar --every 30 $(DRAW)
	@$(BIN)/python -m simulate sweep log-flush --every 20 $(DRAW)
	@$(BIN)/python -m simulate sweep priority --every 60 $(DRAW)
	@$(BIN)/python -m simulate sweep addition --every 30 $(DRAW)
	@$(BIN)/python -m simulate sweep graceful --every 60 $(DRAW)
	@$(BIN)/python -m simulate sweep silence --every 20 $(DRAW)
	@$(BIN)/python -m simulate sweep refused --every 239 $(DRAW)
	@$(BIN)/python -m simulate sweep operator --every 60 $(DRAW)
	@$(BIN)/python -m simulate sweep outage --every 7 $(DRAW)
	@$(BIN)/python -m simulate sweep foreign foreign-others foreign-dm insist --every 100 $(DRAW)
	@$(BIN)/python -m simulate sweep no-resync --every 80 $(DRAW)
	@$(BIN)/python -m simulate sweep lag clock --every 200 $(DRAW)
	@$(BIN)/python -m simulate sweep admission --every 31 $(DRAW)
	@$(BIN)/python -m simulate sweep together --every 150 $(DRAW)
	@$(BIN)/python -m simulate sweep pd-ctl --every 20 $(DRAW)
	@$(BIN)/python -m simulate sweep consent --every 137 $(DRAW)
	@$(BIN)/python -m simulate sweep lie --every 97 $(DRAW)
	@$(BIN)/python -m simulate truth --every 97 $(DRAW)
	@$(BIN)/python -m simulate seeds 1000 60
	@$(BIN)/python -m simulate mixes --every 61

simulate: .venv/.dev ## Run a fault at writes of all workloads, pairs of changes, mistakes, losses, what others do and insist on, webhooks, two plans at once, life without resyncs, 100 random plans, 2500 manifests, 5000 objects with wrong types, metacharacters in every text [EVERY=960 EVERY_FIELD=8 EVERY_HAND=48 FROM=0]
	@$(BIN)/python -m simulate run tests/simulate/plans/*.yaml
	@$(BIN)/python -m simulate sweep --every $(or $(EVERY),960) $(DRAW)
	@$(PYTEST) -q --dist loadfile -n $(CORES) -m planted tests/simulate
	@$(BIN)/python -m simulate sweep loss --every 24 $(DRAW)
	@$(BIN)/python -m simulate sweep midway --every 48 $(DRAW)
	@$(BIN)/python -m simulate sweep return --every 96 $(DRAW)
	@$(BIN)/python -m simulate sweep sidecar --every 6 $(DRAW)
	@$(BIN)/python -m simulate sweep log-flush --every 2 $(DRAW)
	@$(BIN)/python -m simulate sweep priority --every 4 $(DRAW)
	@$(BIN)/python -m simulate sweep addition --every 2 $(DRAW)
	@$(BIN)/python -m simulate sweep graceful --every 4 $(DRAW)
	@$(BIN)/python -m simulate sweep silence $(DRAW)
	@$(BIN)/python -m simulate sweep refused --every 64 $(DRAW)
	@$(BIN)/python -m simulate sweep operator --every 8 $(DRAW)
	@$(BIN)/python -m simulate sweep outage
	@$(BIN)/python -m simulate sweep order backup schedule beside joined crossed invalid dm other --every 16 $(DRAW)
	@$(BIN)/python -m simulate sweep mistake field same --every $(or $(EVERY_FIELD),8) $(DRAW)
	@$(BIN)/python -m simulate sweep pair flip --every 64 $(DRAW)
	@$(BIN)/python -m simulate sweep no-resync --every 64 $(DRAW)
	@$(BIN)/python -m simulate sweep lag clock --every 80 $(DRAW)
	@$(BIN)/python -m simulate sweep admission --every 8 $(DRAW)
	@$(BIN)/python -m simulate sweep together --every 16 $(DRAW)
	@$(BIN)/python -m simulate sweep pd-ctl --every 4 $(DRAW)
	@$(BIN)/python -m simulate sweep consent --every 4 $(DRAW)
	@$(BIN)/python -m simulate sweep lie --every 6 $(DRAW)
	@$(BIN)/python -m simulate sweep foreign foreign-others foreign-dm insist --every $(or $(EVERY_HAND),48) $(DRAW)
	@$(BIN)/python -m simulate truth --every 8 $(DRAW)
	@$(BIN)/python -m simulate truth --drills --every 64 $(DRAW)
	@$(BIN)/python -m simulate seeds $$(($(FROM) * 100)) 100
	@$(BIN)/python -m simulate manifests $$(($(FROM) * 2500)) 2500
	@$(BIN)/python -m simulate mutants $$(($(FROM) * 5000)) 5000
	@GENERATED_TEXTS=all $(PYTEST) -q --dist worksteal -n $(CORES) -m thorough tests/security/test_generated_texts.py
	@FIELDS=all $(PYTEST) -q --dist worksteal -n $(CORES) -m thorough tests/simulate/test_fields_of_backups.py tests/simulate/test_fields_of_other_kinds.py tests/simulate/test_fields_in_a_running_cluster.py
	@$(BIN)/python -m simulate mixes --every 24
	@$(PYTEST) -q --dist worksteal -n $(CORES) tests/simulate/test_drills.py
	@SCHEDULING_RUNS=200 $(BIN)/pytest -q tests/scheduler/test_real_scheduler.py

clean: ## Remove what make made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info hack/axe/node_modules hack/controlplane/bin hack/helm/bin hack/prometheus/bin hack/storages/bin hack/storages/node_modules hack/upstream/bin

.PHONY: help venv docs sample run test test-thorough test-fast lint format check bench walk soak controlplane storages axe prometheus helm upstream peers manifests release simulate simulate-slice clean
