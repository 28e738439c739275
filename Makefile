# `make help` lists what can be made. Options for a program go into ARGS: make demo ARGS="--out /tmp/demo"

.DEFAULT_GOAL := help
.PHONY: help bpf bpf-check build research-build demo reproduce test words fmt clippy purity doc unit properties python wasm bench-advice bench-gauntlet bench-lab bench-library bench-limits bench-live bench-matrix bench-population bench-measure bench-router bench-sim bench-stages bench-transfer constants man man-of book dist dist-test install install-of install-library-of library library-examples python-package python-tools deny oldest-rust fuzz miri clean tools tools-test test-tools test-kernels other-systems static-check unit-without-tools bare-test

SWEETSPOT := target/dist/sweetspot
# Benchmarks measure the program as it is installed.
RESEARCH := SWEETSPOT_BIN=$(SWEETSPOT) target/release/sweetspot-research
ARGS ?=

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null || \
		sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

demo: build ## Move a file across an emulated long path, several ways, and draw why one wins
	$(SWEETSPOT) demo $(ARGS)

SKIPPED := $(CURDIR)/target/skipped.txt
# The tests of the program built it already.
test: AFTER_UNIT := yes
test: tools-test words bpf-check fmt clippy purity static-check doc unit python ## Language, formatting, lints, purity, documentation, every test; says what was skipped
	@scripts/skipped.sh $(SKIPPED)

test-tools: ## The programs that some tests compare with or run, by apt-get
	apt-get install --yes --no-install-recommends bsdutils clang chromium chromium-driver curl iproute2 iputils-ping libcurl4-openssl-dev llvm openssh-client openssh-server pkg-config rsync strace tcptrace tshark util-linux valgrind

bpf: ## Compile the BPF programs, whose object is committed (clang 14, llvm 14)
	@scripts/bpf.sh

bpf-check: ## The committed BPF object is the one of its sources
	@scripts/bpf.sh check

bench-advice: build research-build ## Compare advised windows with the best in random situations; writes docs/results/advice.md (about 6 minutes)
	$(RESEARCH) bench advice $(ARGS)

# Seeds on which parameters of `sobas` were chosen: they do not measure it.
CHOSEN_ON := 7
bench-gauntlet: build research-build ## Compare sizings on random paths with the kernel's own; writes docs/results/gauntlet.md and gauntlet-again.md (about 45 minutes)
	$(RESEARCH) gauntlet --population drawn,sizes,long,changes,transfers --seed 606 --chosen-on $(CHOSEN_ON) \
		--congestion cubic,reno,bbr --sizing sobas,sobas:live --paths 300 --seeds 4 \
		--journal target/gauntlet.journal --worst target/gauntlet --out docs/results/gauntlet.md $(ARGS)
	$(RESEARCH) gauntlet --population again --seed 606 --chosen-on 1,2,3,7,8 --congestion cubic,reno,bbr --sizing sobas:live \
		--paths 300 --seeds 4 --journal target/gauntlet.journal --out docs/results/gauntlet-again.md $(ARGS)

bench-lab: build research-build ## Measure on this kernel: the demo path and the matrix, the standing set, the blog's experiment; writes docs/results/lab.md, validate.md, blog.md (about 30 minutes)
	$(RESEARCH) validate --standing --out docs/results/validate.md
	$(RESEARCH) lab blog --out docs/results/blog.md
	$(RESEARCH) bench lab $(ARGS)

bench-library: library library-examples python-package research-build ## Measure the examples of the library, sized and left alone; writes docs/results/library.md (about 45 minutes; root)
	$(RESEARCH) bench library $(ARGS)

bench-limits: build research-build ## Diagnose 440 flows of known cause; writes docs/results/limits.md (about 35 minutes; ARGS="--seed N": others)
	$(RESEARCH) bench limits $(ARGS)

bench-live: build research-build ## Measure `tune` on curl, rsync and iperf3, via pidfd and via bpf; writes docs/results/live.md (about an hour and a half)
	$(RESEARCH) bench live $(ARGS)

bench-matrix: research-build ## Run the BBR team's tests and the TCP evaluation suite's scenarios in the simulator; writes docs/results/matrix.md (an hour; ARGS="--longest 20s": ten minutes)
	$(RESEARCH) bench matrix $(ARGS)

# Seeds on whose paths the simulator was mended: they do not measure it.
MENDED_ON := 1
bench-population: build research-build ## Run 60 random paths by the simulator and by this kernel; writes docs/results/validate-population.md (about 35 minutes)
	$(RESEARCH) validate --population --paths 60 --drawn-by 910 --chosen-on $(MENDED_ON) --alternate \
		--journal target/population.journal --out docs/results/validate-population.md $(ARGS)

bench-measure: build research-build ## Measure random paths whose truth is known; writes docs/results/measure.md (about 50 minutes)
	$(RESEARCH) bench measure $(ARGS)

bench-router: research-build ## Run random router links and fit the predictions of `advise router` to them (about 10 minutes)
	$(RESEARCH) bench router $(ARGS)

bench-sim: build research-build ## Measure the simulator beside ns-2 and ns-3; writes docs/results/speed.md (about 6 minutes)
	$(RESEARCH) bench sim $(ARGS)

bench-stages: build research-build ## Measure the CPU time of each stage of a copy; writes docs/results/stages.md (about 3 minutes; root)
	$(RESEARCH) bench stages $(ARGS)
	scripts/gains-pictures.py

bench-transfer: build research-build ## Move files beside scp and rsync, across lossy, long and drawn paths, and interrupt a thousand; writes docs/results/transfer.md (an hour and the thousand; root)
	$(RESEARCH) bench transfer $(ARGS)

constants: ## Set each constant of the controllers to half and to double; writes docs/results/constants.md (about half an hour)
	scripts/constants.py $(ARGS) > docs/results/constants.md

reproduce: build research-build ## Run ns-2's cases and the papers' figures again; writes docs/results/ns2.md, papers.md and router.md (about three quarters of an hour)
	$(RESEARCH) reproduce ns2 router-tables all --careful --out docs/results $(ARGS)

man: build ## Man pages and shell completions, into target/man and target/completions
	@$(MAKE) --no-print-directory man-of PROGRAM=$(SWEETSPOT)

# Those of the binary PROGRAM, which is there already.
man-of:
	mkdir -p target/man target/completions
	$(PROGRAM) generate man target/man
	for shell in bash zsh fish; do $(PROGRAM) generate completions $$shell > target/completions/sweetspot.$$shell; done

PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
install: build library ## The program, man pages, completions and libsweetspot into PREFIX (/usr/local; make install PREFIX=~/.local needs no root)
	@$(MAKE) --no-print-directory install-of PROGRAM=$(SWEETSPOT)
	@$(MAKE) --no-print-directory install-library-of LIBRARIES=target/release

# The binary PROGRAM, which is there already.
install-of:
	@$(MAKE) --no-print-directory man-of PROGRAM=$(PROGRAM)
	install -D -s -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/sweetspot
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 target/man/man1/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 target/man/man5/*.5
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man7 target/man/man7/*.7
	install -D -m 644 target/completions/sweetspot.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sweetspot
	install -D -m 644 target/completions/sweetspot.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sweetspot
	install -D -m 644 target/completions/sweetspot.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sweetspot.fish

# The libraries in the directory LIBRARIES, which are there already. The number is that of the interface (crates/capi/build.rs).
install-library-of:
	install -D -m 644 crates/capi/include/sweetspot.h $(DESTDIR)$(PREFIX)/include/sweetspot.h
	install -D -m 644 $(LIBRARIES)/libsweetspot.a $(DESTDIR)$(PREFIX)/lib/libsweetspot.a
	install -D -s -m 755 $(LIBRARIES)/libsweetspot.so $(DESTDIR)$(PREFIX)/lib/libsweetspot.so.1
	ln -sf libsweetspot.so.1 $(DESTDIR)$(PREFIX)/lib/libsweetspot.so
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@prefix@|$(PREFIX)|; s|@version@|$(VERSION)|' packaging/sweetspot.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/sweetspot.pc

library: tools ## libsweetspot for C, optimised
	cargo build --release --locked -p sweetspot-capi

library-examples: tools
	cargo build --release --locked -p sweetspot-socket --examples

build: tools wasm ## The sweetspot program, as it is installed
	cargo rustc --profile dist --locked -p sweetspot --bin sweetspot --features jemalloc -- $$(scripts/link-flags.sh)

research-build: tools wasm
	cargo build --release --locked --bin sweetspot-research

wasm: tools ## The simulator and the diagnosis for the pages of `sweetspot ui` and of the book
	@scripts/build-wasm.sh

words: ## Count translated constructions; more than the limits are an error
	@scripts/check-words

fmt: tools-test ## Check the formatting
	cargo fmt --all --check

clippy: tools-test ## Lints; a warning is an error
	cargo clippy --workspace --all-targets --locked -- -D warnings

purity: tools ## Pure crates build without an operating system
	scripts/check-purity.sh

static-check: tools ## The program compiles for the static binary (rustup target x86_64-unknown-linux-musl)
	@scripts/check-static.sh

other-systems: tools ## What needs no Linux, checked for macOS and Windows; 32-bit machines are refused (rustup targets)
	@scripts/other-systems.sh

doc: tools ## The crates' documentation, the links of all Markdown, the list of dependencies; a broken or stale one is an error
	python3 scripts/check-links.py
	scripts/gains-pictures.py --check
	scripts/dependencies.py --check
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

unit: tools wasm ## Every test, and nothing else
	@mkdir -p target && rm -f $(SKIPPED)
	SWEETSPOT_SKIPPED=$(SKIPPED) scripts/run-tests.py

PROPERTY_CASES := 4096
properties: tools ## The property tests of the pure crates with PROPERTY_CASES random cases each, others in every run
	PROPTEST_CASES=$(PROPERTY_CASES) cargo test --locked --no-fail-fast -p sweetspot-units -p sweetspot-statistics -p sweetspot-path -p sweetspot-sizing -p sweetspot-protocol \
		-p sweetspot-control -p sweetspot-scenario -p sweetspot-theory -p sweetspot-advise -p sweetspot-trace -p sweetspot-diagnose -p sweetspot-tcp -p sweetspot-sim

unit-without-tools: tools ## The tests that run other programs, once more, with optional tools hidden (root, Debian)
	@scripts/test-without-tools.py

bare-test: ## README's two commands on a fresh Debian (root, debootstrap; ARGS="unit": other targets)
	@scripts/bare-test.sh $(ARGS)

test-kernels: build ## Every verb on the kernels of scripts/kernels/list, in QEMU without KVM; writes docs/results/kernels.md (Debian, root)
	scripts/test-kernels.py --out docs/results/kernels.md $(ARGS)

PYTHON := target/python/bin/python
# Optimised, but not across crates: tests need no more, and it builds sooner.
QUICK_BUILD := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
python-tools: tools
	test -x $(PYTHON) || python3 -m venv target/python
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r python/requirements.lock

# Built in place: what is tested is what is in the tree.
python-package: python-tools wasm
	$(QUICK_BUILD) VIRTUAL_ENV=target/python target/python/bin/maturin develop --release --locked --quiet

# Its tests share what the workspace's tests compiled. Incremental builds would inline nothing from other crates, and simulate slowly.
python: export CARGO_TARGET_DIR := $(CURDIR)/target
python: export CARGO_INCREMENTAL := 0
python: tools-test python-tools wasm ## The Python package: build, lints, types, tests
	cargo fmt --manifest-path python/Cargo.toml --check
	cargo clippy --manifest-path python/Cargo.toml --locked -- -D warnings
	VIRTUAL_ENV=target/python target/python/bin/maturin develop --locked --quiet
	$(if $(AFTER_UNIT),,cargo build --locked --quiet --bin sweetspot)
	SWEETSPOT_BIN=target/debug/sweetspot $(PYTHON) -m pytest -q -rs

dist: tools-test wasm ## What can be installed, into target/packages: binaries, Debian package, wheel, checksums
	@scripts/dist.sh

dist-test: ## Install what make dist made into fresh roots, and start it there
	@scripts/dist-test.sh

book: tools wasm ## The documents as a site, into target/book
	cargo run --locked --quiet -p sweetspot-book -- docs target/book

deny: ## Dependencies of all workspaces: advisories, licences, duplicates, sources (cargo install cargo-deny)
	for workspace in . python fuzz; do \
		cargo deny --manifest-path $$workspace/Cargo.toml --config deny.toml check $(ARGS) || exit 1; done

OLDEST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
oldest-rust: ## Everything compiles with the oldest Rust that is stated (rustup)
	rustup toolchain install $(OLDEST) --profile minimal
	cargo +$(OLDEST) check --workspace --all-targets --locked

FUZZ_SECONDS := 60
fuzz: ## Each fuzz target for FUZZ_SECONDS (nightly Rust; cargo install cargo-fuzz)
	for target in $$(cargo +nightly fuzz list); do \
		mkdir -p fuzz/corpus/$$target fuzz/seeds/$$target; \
		cargo +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -len_control=0 -timeout=60 -rss_limit_mb=2048 || exit 1; done

# The pure crates that have no C code and whose tests end within minutes there. proptest asks for its directory.
miri: ## Undefined behaviour in the tests of small crates (nightly Rust with miri)
	MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=16 cargo +nightly miri test --locked -p sweetspot-units -p sweetspot-statistics -p sweetspot-path --lib

clean: ## Remove what was built
	cargo clean

tools:
	@scripts/check-tools.sh

tools-test:
	@scripts/check-tools.sh test
