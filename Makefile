# The human entry. The work is in scripts/ and CMake; `make help` lists what there is.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
SOAK_SECONDS ?= 1800
export JOBS

.PHONY: help
help: ## This list
	@echo "usage: make TARGET [VARIABLE=VALUE]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'variables: ARGS (options of the program that runs), JOBS, FUZZ_SECONDS, SOAK_SECONDS, SOAK_SEED'

.PHONY: setup
setup: ## Install what is missing (Debian packages)
	@scripts/setup

# Without tests and benchmarks, so that what only they need is not asked for. `exec`: a signal sent to the
# recipe reaches the playground.
.PHONY: up
up: ## Build, then grow a cluster under load and stay up (ARGS="--once --json")
	@scripts/setup --run >&2
	@test -x build/release/bin/ringshift || echo "make: building build/release; a few minutes the first time" >&2
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF >&2
	@exec build/release/bin/ringshift up $(ARGS)

.PHONY: test
test: ## Set up, then every test: unit, end to end, sanitizers
	@scripts/setup
	@scripts/test

.PHONY: model
model: ## The model of the resize protocol in full, with spin (ARGS="--quick", "--list", "--trail NAME")
	@scripts/setup
	@exec models/run $(if $(ARGS),$(ARGS),--full)

# Half an hour. What follows ARGS is tests/soak/run.py's: ARGS="--kills 50" instead of the mixture.
.PHONY: soak
soak: ## Load, resizes and faults at random, for SOAK_SECONDS (ARGS="--kills 50")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 tests/soak/run.py --seconds $(SOAK_SECONDS) $(if $(SOAK_SEED),--seed $(SOAK_SEED)) \
	  --json build/results/soak.json $(ARGS)

# A million keys, some forty minutes. ARGS="--quick", ARGS="--only 4-5,back-37", ARGS="--list".
.PHONY: proof
proof: ## Each big change and rollback under load, judged key by key: table, JSON (ARGS="--quick")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 tests/soak/transfers.py --json build/results/proof.json $(ARGS)

.PHONY: figures
figures: ## Throughput in DUAL and the length of HOLD on this machine (ARGS="--only hold")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 tests/soak/figures.py --json build/results/figures.json $(ARGS)

# Five minutes. ARGS come last and win: ARGS="--seconds 60", ARGS="--origin postgres", ARGS="--scenario kill".
.PHONY: drill
drill: ## The stampede drill: modulo, ring, dual reads, ringshift; report in build/results/drill
	@scripts/setup --run >&2
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF -DRINGSHIFT_DRILL_SERVERS=ON >&2
	@mkdir -p build/results
	@exec build/release/bin/ringshift drill --out build/results/drill $(ARGS)

.PHONY: bench
bench: ## Benchmarks of bench/ (ARGS="--benchmark_filter=...")
	@scripts/setup
	@scripts/build release -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=ON
	@for program in build/release/bin/*_bench; do "$$program" $(ARGS) || exit 1; done

# Twelve minutes at most. ARGS come last and win: ARGS="--quick", ARGS="--only get-p1,idle", ARGS="--list".
.PHONY: bench-proxy
bench-proxy: ## The proxy beside nutcracker and Redis: table, JSON, picture (ARGS="--quick")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 bench/proxy/run.py --json build/results/bench-proxy.json \
	  --picture build/results/bench-proxy.svg $(ARGS)

.PHONY: bench-mover
bench-mover: ## The mover beside MIGRATE in batches, and what clients see: table, JSON (ARGS="--rounds 9")
	@scripts/setup
	@scripts/build release mover_rate -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=ON
	@mkdir -p build/results
	@exec build/release/bin/mover_rate --json build/results/bench-mover.json $(ARGS)

.PHONY: bench-registry
bench-registry: ## One registry, a thousand routers, ten thousand watchers: delays, CPU, JSON (ARGS="--routers 100")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 bench/registry/run.py --json build/results/bench-registry.json $(ARGS)

.PHONY: bench-instructions
bench-instructions: ## Instructions per request, by callgrind (ARGS="--only get-p1")
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@exec /usr/bin/python3 bench/proxy/instructions.py --json build/results/bench-instructions.json $(ARGS)

.PHONY: lint
lint: ## Format and clang-tidy, without changing anything
	@scripts/setup
	@scripts/lint

.PHONY: format
format: ## Bring all sources into shape
	@git ls-files '*.h' '*.cpp' '*.cc' | xargs clang-format-19 -i

.PHONY: fuzz
fuzz: ## Each fuzzer for FUZZ_SECONDS
	@scripts/setup
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: dist
dist: ## Source and binary tarballs into build/dist
	@scripts/setup --run
	@scripts/dist

.PHONY: docs
docs: ## The user guide, to be read offline: build/docs/index.html
	@scripts/setup
	@scripts/build release ringshift -DRINGSHIFT_TESTS=OFF -DRINGSHIFT_BENCH=OFF
	@/usr/bin/python3 docs/guide/build.py --ringshift build/release/bin/ringshift --out build/docs

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf build
