# Every task that people do is a target; `make` alone lists them. CARGO_TARGET_DIR is honoured.

CARGO ?= cargo
RUSTC ?= rustc
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

SEEDS ?= 10000
FIRST ?= 1

.DEFAULT_GOAL := help
.PHONY: help build demo test sim sim-selftest worlds endure transcripts mutants verify fix pure clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## Build the program, optimised
	$(CARGO) build --release --locked

demo: build ## Start a cluster, compute, kill nodes, and watch it go on
	$(CARGO) run --release --locked --example demo

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

endure: ## Kill, freeze, wipe, split and count real clusters in full, for a quarter of an hour; TEST=name runs one of them
	FLOODLINE_KILLS=20 FLOODLINE_FREEZES=5 FLOODLINE_SPLIT_SECONDS=60 FLOODLINE_ELECTIONS=10000 FLOODLINE_STARTS=1000 \
	FLOODLINE_SUBMISSIONS=200 FLOODLINE_LARGE_JOBS=3 \
	$(CARGO) test --release --locked --test endure -- --nocapture --test-threads=1 $(TEST)

transcripts: ## Write anew what happens in the transcripts of src/protocol/testdata; review the difference like code
	FLOODLINE_TRANSCRIPTS=write $(CARGO) test --locked --quiet --lib protocol::testkit::transcript

mutants: ## Change the pure core in one place at a time and expect a test to fail; SHARD=0/20 takes one change of 20
	nice .ci/mutants

verify: pure ## Check format, lints, purity, structure and documentation; writes nothing but build output
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --test sim --test worlds --test endure -- -D warnings
	$(CARGO) test --locked --quiet --test structure
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --lib

fix: ## Format, and apply what the lints suggest
	$(CARGO) fmt
	$(CARGO) clippy --locked --all-targets --fix --allow-dirty --allow-staged
	$(CARGO) fmt

pure: ## Compile the pure modules with plain rustc: they depend on std alone
	@mkdir -p $(TARGET_DIR)/pure
	$(RUSTC) --edition 2024 --crate-type lib --crate-name floodline_pure --emit metadata --out-dir $(TARGET_DIR)/pure -D warnings src/pure.rs

clean: ## Remove all build output
	$(CARGO) clean
