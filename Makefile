# The commands people and CI use. `make help` lists them.
.PHONY: help tools test zoo swarm conformance grants lint bench demo schemas

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

test: ## Run every test; print how many ran and why any was skipped
	@tools/run-tests

tools: ## Install the real parts that the tests run beside drydock (needs Go and Python)
	@tools/install

zoo: ## Put every known bug into the code, one at a time; each must be caught by its test
	@tools/zoo

swarm: ## Random rollouts with two to eight faults each: RUNS=2000 SEED=1
	SEAWAY_SWARM=$(or $(RUNS),2000) SEAWAY_SEED=$(or $(SEED),1) \
		tools/demand-tests faults::swarm_of_random_runs -- \
		cargo test --workspace --test seaway faults::swarm_of_random_runs -- --nocapture

conformance: ## Generated request sequences on drydock and on a real kube-apiserver: RUNS=10000 SEED=1
	SEAWAY_REAL=required SEAWAY_CONFORMANCE=$(or $(RUNS),10000) SEAWAY_CONFORMANCE_FIRST=$(or $(SEED),1) \
		tools/demand-tests conformance:: -- cargo test --workspace --test seaway conformance:: -- --nocapture

grants: ## Take each grant of the chart away from the operator, one at a time; a test must notice: AT_ONCE=3, DRAWN=3 for a few
	@tools/grants $(DRAWN)

lint: ## Formatting, clippy and documentation, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items --quiet

bench: ## What rollouts cost, and what many canaries cost: SIZES=100,1000,10000 GROUND=real
	cargo bench --package seaway-cli --bench rollouts
	cargo bench --package seaway-cli --bench scale

demo: ## A promotion and an automatic rollback, in one process
	cargo run --release -- demo

schemas: ## Regenerate drydock's schema tables (needs Go)
	cd tools/schemas && go run . -out ../../crates/drydock/src/schema
