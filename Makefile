# The human entry. Everything is CMake and scripts below; `make help` lists what there is.
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing (Debian packages)
	@scripts/setup

.PHONY: release debug
release debug: ## Build a preset into build/NAME
	@cmake --preset $@ >build-$@.log 2>&1 || { cat build-$@.log; rm -f build-$@.log; exit 1; }; rm -f build-$@.log
	@cmake --build --preset $@ -j $(JOBS)

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf build
