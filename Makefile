# What one does with this repository. `make` alone lists it.

# Version of cargo-deny that deny.toml is written for.
CARGO_DENY_VERSION := 0.20.2

# Installing packages needs root; elsewhere sudo asks for it.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help setup test audit bench install docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## get what tests and benchmarks need besides Rust: fio and cargo-deny
	@command -v cargo >/dev/null || { echo "Rust is needed first: https://rustup.rs"; exit 1; }
	@command -v fio >/dev/null || { \
		command -v apt-get >/dev/null || { echo "Install fio with your system's package manager."; exit 1; }; \
		$(SUDO) apt-get update && $(SUDO) apt-get install --yes --no-install-recommends fio; }
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny --version $(CARGO_DENY_VERSION)

test: ## everything that must hold before a commit is merged
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	cargo deny check bans licenses sources

# Advisories appear without any change here, so they are no part of `test`.
audit: ## look for known vulnerabilities in the dependencies (needs the network)
	cargo deny check advisories

bench: ## measure Plimsoll itself, and write docs/performance.md
	cargo bench -p plimsoll-benches

PREFIX ?= $(HOME)/.local

install: ## put the program, its manual and its completions below PREFIX (~/.local)
	cargo build --locked --release --bin plimsoll
	install -D target/release/plimsoll $(PREFIX)/bin/plimsoll
	install -d $(PREFIX)/share/man/man1 $(PREFIX)/share/bash-completion/completions \
		$(PREFIX)/share/zsh/site-functions $(PREFIX)/share/fish/vendor_completions.d
	target/release/plimsoll man --dir $(PREFIX)/share/man/man1
	target/release/plimsoll completions bash > $(PREFIX)/share/bash-completion/completions/plimsoll
	target/release/plimsoll completions zsh > $(PREFIX)/share/zsh/site-functions/_plimsoll
	target/release/plimsoll completions fish > $(PREFIX)/share/fish/vendor_completions.d/plimsoll.fish

docs: ## build the API documentation
	cargo doc --workspace --no-deps
	@echo "Open target/doc/plimsoll/index.html"
