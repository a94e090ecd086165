# Copyright The kcm Authors.
# SPDX-License-Identifier: Apache-2.0

# Thin: each target is a script in hack, which says more. Flags for them go into ARGS: make up ARGS="--nodes 10"

ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

.PHONY: e2e
e2e: ## Run the end-to-end tests, on a local cluster of their own or on ARGS="--kubeconfig FILE"
	@hack/e2e.sh $(ARGS)

.PHONY: image
image: ## Make the container image, without Docker, in _output/image
	@hack/build-image.sh

.PHONY: release
release: ## Make a release in _output/release: make release VERSION=v1.37.2-kcm.1
	@hack/release.sh $(VERSION)

.PHONY: bazel-test
bazel-test: ## Build everything and run the unit tests with Bazel
	@hack/bazel.sh build //... && hack/bazel.sh test //...

.PHONY: verify
verify: ## Run the checks: format, headers, vet, staticcheck, modules, BUILD files
	@hack/verify.sh

.PHONY: clean
clean: ## Remove what was built here; the peers' cache and local clusters stay
	rm -rf _output
