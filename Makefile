# Every task that people do is a target; `make` alone lists them. CARGO_TARGET_DIR is honoured.

CARGO ?= cargo
RUSTC ?= rustc
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

SEEDS ?= 10000
FIRST ?= 1

# The tag that compose.yaml and the overlays of k8s/ name.
IMAGE := floodline:dev
WORKERS ?= 4
KIND := floodline
KIND_KUBECTL := kubectl --context kind-$(KIND)

.DEFAULT_GOAL := help
.PHONY: help build demo test sim sim-selftest worlds endure transcripts mutants verify fix pure clean \
	engine image up down scale logs submit jaeger jaeger-show e2e kind-up kind-deploy kind-demo kind-down k8s-test k8s-verify

help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## Build the program, optimised
	$(CARGO) build --release --locked

demo: build ## Start a cluster, compute, kill nodes, and watch it go on
	$(CARGO) run --release --locked --example demo

image: engine ## Build the container image
	BUILDX_NO_DEFAULT_ATTESTATIONS=1 docker build --network=host --file docker/Dockerfile --tag $(IMAGE) \
		--build-arg VERSION=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml) \
		--build-arg REVISION=$$(git rev-parse HEAD 2> /dev/null || echo unknown) .

up: image ## Start a cluster in containers, with WORKERS=n workers (4), and Jaeger
	docker compose up --wait --scale worker=$(WORKERS)

scale: engine ## Change the number of workers to WORKERS=n
	docker compose up --wait --no-recreate --scale worker=$(WORKERS) worker

submit: engine ## Submit some jobs to the cluster of make up
	docker compose exec worker floodline submit max 3 -7 12
	docker compose exec worker floodline submit primecount 2 3 4 5 18446744073709551557
	docker compose exec worker floodline submit primesum 1 10000000000

logs: engine ## Follow the logs of the cluster of make up
	docker compose logs --follow --tail 100

jaeger-show: ## Print the last election and the last job as Jaeger has them; TRACE=id prints that trace
	JAEGER=$${JAEGER:-http://$$(docker compose port jaeger 16686)} $(CARGO) run --release --locked --quiet --example jaeger_show -- $(TRACE)

jaeger: ## Open Jaeger's page of the cluster of make up, or print its address
	@echo http://$$(docker compose port jaeger 16686)
	@! command -v xdg-open > /dev/null || xdg-open http://$$(docker compose port jaeger 16686)

down: engine ## Stop the cluster of make up; its data stays
	docker compose down

e2e: image ## Test the image in containers: start, scale, kill, restart, recreate, resume
	$(CARGO) test --locked --test e2e -- --nocapture --test-threads=1 $(TEST)

kind-up: engine ## Start a Kubernetes cluster in a container, with kind
	kind get clusters | grep -qx $(KIND) || kind create cluster --name $(KIND) --wait 3m

kind-deploy: OVERLAY = kind
kind-deploy: ## Deploy to that cluster
kind-demo: OVERLAY = demo
kind-demo: ## Deploy to that cluster, with Jaeger
# Under a tag of its own, so that pods are replaced if and only if the image has changed. As an archive, since the
# image store of newer engines has more in it than kind can load by name.
kind-deploy kind-demo: kind-up image
	set -e; tagged=floodline:$$(docker image inspect --format '{{slice .Id 7 19}}' $(IMAGE)); \
	docker tag $(IMAGE) $$tagged; docker save $$tagged | kind load image-archive /dev/stdin --name $(KIND); \
	kubectl kustomize k8s/overlays/$(OVERLAY) | sed "s|image: $(IMAGE)|image: $$tagged|" | $(KIND_KUBECTL) apply -f -
	$(KIND_KUBECTL) -n floodline rollout status --timeout 3m deployment/bootstrap
	$(KIND_KUBECTL) -n floodline rollout status --timeout 3m statefulset/worker
	@echo "try: $(KIND_KUBECTL) -n floodline exec worker-0 -- floodline submit primesum 1 1000000000"

kind-down: ## Remove that cluster
	kind delete cluster --name $(KIND)

k8s-test: ## Test the manifests on the cluster of kubectl's present context, which has to have the image floodline:dev
	@kubectl get --raw /readyz > /dev/null || { echo "this needs a Kubernetes cluster as kubectl's present context" >&2; exit 1; }
	$(CARGO) test --locked --test k8s -- --nocapture --test-threads=1 $(TEST)

k8s-verify: ## Render every overlay of k8s/ and check it strictly; needs no cluster
	@mkdir -p $(TARGET_DIR)
	k8s/verify $(abspath $(TARGET_DIR))

engine:
	@docker info > /dev/null 2>&1 || { echo "this needs a Docker engine, running, with compose; docker info says:" >&2; docker info 2>&1 | tail -n 1 >&2; exit 1; }

test: sim ## Run all tests
	$(CARGO) test --release --locked --test worlds
	$(CARGO) test --release --locked --test endure -- --nocapture --test-threads=1
	$(CARGO) test --locked

sim: ## Simulate whole clusters from SEEDS seeds (10000), beginning with FIRST (1); SEED=n replays one and prints it
	FLOODLINE_SEEDS=$(SEEDS) FLOODLINE_FIRST_SEED=$(FIRST) $(if $(SEED),FLOODLINE_SEED=$(SEED)) $(CARGO) test --release --locked --test sim -- --nocapture

worlds: ## Search small worlds exhaustively, within the bounds that it prints; WORLD=n runs the n-th search alone
	FLOODLINE_WORLDS=$(or $(WORLD),all) $(CARGO) test --release --locked --test worlds -- --nocapture

sim-selftest: ## Break rules of the core on purpose (BREAK=words for some): the simulator has to notice each within 1,000 seeds
	@mkdir -p $(TARGET_DIR)/selftest
	$(RUSTC) --edition 2024 --test -o $(TARGET_DIR)/selftest/selftest tests/selftest/main.rs
	FLOODLINE_SELFTEST="$(or $(BREAK),all)" FLOODLINE_SELFTEST_DIR=$(TARGET_DIR)/selftest $(TARGET_DIR)/selftest/selftest --nocapture

endure: ## Kill, freeze, wipe, split and count real clusters in full, for twenty minutes; TEST=name runs one of them
	FLOODLINE_KILLS=20 FLOODLINE_FREEZES=5 FLOODLINE_SPLIT_SECONDS=60 FLOODLINE_ELECTIONS=10000 FLOODLINE_STARTS=1000 \
	FLOODLINE_SUBMISSIONS=200 FLOODLINE_LARGE_JOBS=3 FLOODLINE_COLLECTOR_SECONDS=600 FLOODLINE_TRACED_JOBS=15 \
	$(CARGO) test --release --locked --test endure -- --nocapture --test-threads=1 $(TEST)

transcripts: ## Write anew what happens in the transcripts of src/protocol/testdata; review the difference like code
	FLOODLINE_TRANSCRIPTS=write $(CARGO) test --locked --quiet --lib protocol::testkit::transcript

mutants: ## Change the pure core in one place at a time and expect a test to fail; SHARD=0/20 takes one change of 20
	nice .ci/mutants

verify: pure k8s-verify ## Check format, lints, purity, structure, documentation and manifests; writes nothing but build output
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --test sim --test worlds --test endure --test e2e --test k8s -- -D warnings
	$(CARGO) test --locked --quiet --test structure
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --lib

fix: ## Format, and apply what the lints suggest
	$(CARGO) fmt
	$(CARGO) clippy --locked --all-targets --fix --allow-dirty --allow-staged
	$(CARGO) fmt

pure: ## Compile the pure modules with plain rustc: they depend on std alone
	@mkdir -p $(TARGET_DIR)/pure
	$(RUSTC) --edition 2024 --crate-type lib --crate-name floodline_pure --emit metadata --out-dir $(TARGET_DIR)/pure -D warnings src/pure.rs

clean: ## Remove all build output, and the containers, data and image of make up
	! docker info > /dev/null 2>&1 || { docker compose down --volumes --remove-orphans && docker image rm --force $(IMAGE); }
	$(CARGO) clean
