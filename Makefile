# joust: `make run` for a verdict over the servers on this machine, `make test` for the whole gate.
CARGO ?= cargo
# Where cargo builds: target, unless somebody has told it otherwise.
BUILT := $(or $(CARGO_TARGET_DIR),target)
JOUST := $(BUILT)/release/joust

.PHONY: help run studies build check test test-minimal bench bench-serve bench-serve-soak bench-load bench-lab-starts bench-screen bench-fidelity prove picture audit clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 16

run: build ## build, then run the default study; the last line says where the report lies
	$(JOUST) run

build: ## the release binary, target/release/joust
	$(CARGO) build --release --locked

check: ## format, lints, house rules and unit tests: no root, no other servers, under 4 minutes when warm
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --locked --lib --bins --test tidy

test: ## the whole gate: other servers from Debian's packages, format, lints, docs, every test
	scripts/peers.sh
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	scripts/test.sh

test-minimal: ## unit tests and a smoke test of joust without its optional features
	$(CARGO) test --locked --package joust --package joust-classic --package joust-history --package joust-report \
		--no-default-features --lib --bins --test smoke

studies: build ## every shipped study in its short form, one after the other; reports below joust-results/
	scripts/peers.sh
	for study in studies/*.toml; do $(JOUST) run $$study --short || test $$? -eq 3 || exit 1; done

bench: bench-serve bench-load ## server and generator beside their peers, interleaved, ratios with intervals

bench-serve: build ## our server's models beside nginx, lighttpd, h2o, Apache, Tomcat
	scripts/peers.sh
	$(CARGO) bench --locked --package joust --bench serve_beside_peers

bench-serve-soak: ## a million requests with faults under each model, ten minutes each at most: nothing stays behind
	$(CARGO) build --release --locked --package joust-serve --examples
	$(BUILT)/release/examples/soak 1000000 10m

bench-load: build ## our load generator beside wrk, h2load, ab, hey and a bare loop
	scripts/peers.sh
	$(CARGO) bench --locked --package joust --bench load_beside_peers

bench-lab-starts: build ## a hundred starts and ends of every server: times, and nothing is left
	scripts/peers.sh
	$(CARGO) build --release --locked --package joust-lab --examples
	$(BUILT)/release/examples/starts

prove: build ## the doctor measured: what it finds of planted artifacts, and false alarms (root; an hour)
	scripts/peers.sh
	JOUST_BENCH_BINARY=$(abspath $(JOUST)) JOUST_PROVE_PAGE=$(CURDIR)/docs/doctor-proof.md $(CARGO) bench --locked --package joust --bench prove

bench-screen: build ## the live screen beside none: what it costs the load
	$(CARGO) bench --locked --package joust --bench screen_costs_nothing

bench-fleet: ## a fleet of one beside a load alone, the broker's traffic, and the sums of a thousand agents
	scripts/peers.sh
	$(CARGO) bench --locked --package joust-fleet --bench merge
	$(CARGO) bench --locked --package joust --bench fleet_costs

bench-fidelity: ## every latency figure beside a server of known delays, and beside a packet capture (root)
	$(CARGO) bench --locked --package joust-load --bench known_delay
	scripts/peers.sh
	$(CARGO) bench --locked --package joust --bench beside_capture

picture: build ## docs/report.svg, the picture in the README, from the newest default run
	$(JOUST) report "$$(ls -dt joust-results/*quick*/run.json | head -n 1)" --format picture > docs/report.svg.new
	mv docs/report.svg.new docs/report.svg

audit: ## licences and sources of every dependency
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --all-features check licenses sources bans

clean: ## remove what was built
	$(CARGO) clean
