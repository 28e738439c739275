# `make help` lists what can be made. Options for a program go into ARGS: make demo ARGS="--out /tmp/demo"

.DEFAULT_GOAL := help
.PHONY: help build demo reproduce test fmt clippy purity doc unit bench-lab bench-limits bench-live man clean tools tools-test

SWEETSPOT := target/release/sweetspot
ARGS ?=

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null || \
		sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

demo: build ## Move a file across an emulated long path, several ways, and draw why one wins
	$(SWEETSPOT) demo $(ARGS)

test: tools-test fmt clippy purity doc unit ## Formatting, lints, purity, documentation, every test

bench-lab: build ## Measure the demo path and the matrix; writes docs/results/lab.md (about 25 minutes)
	$(SWEETSPOT) bench-lab $(ARGS)

bench-limits: build ## Judge a hundred flows of known cause; writes docs/results/limits.md (about 8 minutes)
	$(SWEETSPOT) bench-limits $(ARGS)

bench-live: build ## Measure `tune` on curl, rsync and iperf3; writes docs/results/live.md (about 6 minutes)
	$(SWEETSPOT) bench-live $(ARGS)

reproduce: build ## Play ns-2's cases and the papers' figures again; writes docs/results/ns2.md and papers.md (about 25 minutes)
	$(SWEETSPOT) reproduce ns2 all router-simulations --careful --out docs/results $(ARGS)

man: build ## Man pages and shell completions, into target/man and target/completions
	mkdir -p target/man target/completions
	$(SWEETSPOT) man target/man
	for shell in bash zsh fish; do $(SWEETSPOT) completions $$shell > target/completions/sweetspot.$$shell; done

build: tools ## The sweetspot program, optimised
	cargo build --release --locked --bin sweetspot

fmt: tools-test ## Check the formatting
	cargo fmt --all --check

clippy: tools-test ## Lints; a warning is an error
	cargo clippy --workspace --all-targets --locked -- -D warnings

purity: tools ## Pure crates build without an operating system
	scripts/check-purity.sh

doc: tools ## The crates' documentation; a broken link is an error
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

unit: tools ## Every test, and nothing else
	cargo test --workspace --locked

clean: ## Remove what was built
	cargo clean

tools:
	@scripts/check-tools.sh

tools-test:
	@scripts/check-tools.sh test
