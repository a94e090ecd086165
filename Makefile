# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Thin: each target is a script in hack, which says more. Flags for them go into ARGS: make up ARGS="--nodes 10"

ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: ## Start a local cluster with this checkout's controller manager, and leave it running
	@hack/local-up-cluster.sh $(ARGS)

.PHONY: down
down: ## Stop the local cluster; ARGS=--purge also removes its data
	@hack/local-down-cluster.sh $(ARGS)

.PHONY: status
status: ## Show what runs of the local cluster
	@hack/local-status-cluster.sh $(ARGS)

.PHONY: build
build: ## Compile everything, and build _output/bin/kube-controller-manager
	@hack/build.sh

.PHONY: test
test: ## Run all tests, unit and integration
	@hack/test.sh all $(ARGS)

.PHONY: test-unit
test-unit: ## Run the unit tests
	@hack/test.sh unit $(ARGS)

.PHONY: test-integration
test-integration: ## Run the tests on a real control plane
	@hack/test.sh integration $(ARGS)

.PHONY: verify
verify: ## Run the checks: format, headers, vet, staticcheck, modules
	@hack/verify.sh

.PHONY: clean
clean: ## Remove what was built here; the peers' cache and local clusters stay
	rm -rf _output
