# What one does with this repository. `make` alone lists it.

# Version of cargo-deny that deny.toml is written for.
CARGO_DENY_VERSION := 0.20.2

# Installing packages needs root. Nothing but `make setup` asks for it.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Servers are programs of administrators, which ordinary users have no way to.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

# What tests and benchmarks need of Debian: fio to compare with, job files of fio, two MPI libraries, what building with
# them takes, a browser with letters to look at pages with, and NFS servers: nfs-ganesha, and the Linux
# kernel's with a kernel that is a process, for both of which a library is built. An ordinary user's tests
# are root in namespaces of their own, with users that `uidmap` gives them. One more NFS server, rclone, and
# mdbook, which makes the book, are packages of Python's index, and are put into the source tree
# (scripts/setup-program). Test beds of the kind
# `replicated` are Ceph, GlusterFS and MooseFS, `local` makes file systems of three types, `smb` is Samba, and
# `knfsd` can run in QEMU, with a kernel that is put into the source tree too (scripts/setup-kernel). Runs on other
# machines are tested with servers of ssh, which tests start. Packages are checked by lintian and skopeo, and installed in a
# bare Debian 12 (scripts/setup-debian-root); programs for arm64 run in an emulator. Tables and the Python module are read
# with packages of Python's index (scripts/setup-python). libFuzzer is compiled by a compiler of C++.
PACKAGES := fio fio-examples strace libopenmpi-dev openmpi-bin libmpich-dev mpich libclang-dev chromium \
	fonts-dejavu-core nfs-ganesha nfs-ganesha-vfs nfs-ganesha-mem rpcbind iproute2 user-mode-linux nfs-kernel-server \
	kmod quota e2fsprogs gcc libc6-dev uidmap python3-venv \
	nfs-ganesha-proxy-v4 ceph-common ceph-mon ceph-mgr ceph-mds ceph-osd ceph-fuse glusterfs-server \
	glusterfs-cli glusterfs-client moosefs-master moosefs-chunkserver moosefs-client moosefs-cli \
	xfsprogs btrfs-progs samba cifs-utils qemu-system-x86 busybox-static g++ \
	openssh-server openssh-client dpkg-dev lintian mmdebstrap debian-archive-keyring binutils rpm skopeo \
	qemu-user-static

# Installs packages, without starting the services that some would start (invoke-rc.d asks this file).
define INSTALL
policy=/usr/sbin/policy-rc.d
if [ ! -e $$policy ]; then
	printf '#!/bin/sh\nexit 101\n' > $$policy
	trap "rm $$policy" EXIT
	chmod +x $$policy
fi
apt-get update
apt-get install --yes --no-install-recommends "$$@"
# Nor are those that were missing to start with the machine: tests start servers of their own. A server that was
# installed before stays as it is.
for package do
	case $$package in
	rpcbind) units="rpcbind.socket rpcbind.service" ;;
	nfs-kernel-server) units=nfs-server.service ;;
	quota) units=quotarpc.service ;;
	nfs-ganesha) units="nfs-ganesha.service nfs-ganesha-lock.service" ;;
	ceph-common) units="ceph.target rbdmap.service" ;;
	ceph-osd) units="ceph-osd.target ceph-crash.service" ;;
	ceph-mon|ceph-mgr|ceph-mds|ceph-fuse) units=$$package.target ;;
	glusterfs-server) units="glusterd.service glustereventsd.service" ;;
	samba) units="smbd.service nmbd.service samba-ad-dc.service" ;;
	openssh-server) units="ssh.socket ssh.service" ;;
	moosefs-master|moosefs-chunkserver) units=$$package.service ;;
	*) continue ;;
	esac
	command -v systemctl >/dev/null && systemctl --quiet disable $$units || true
done
endef
export INSTALL

# The MPI libraries that `make test` tests with, by the last part of their `mpicc.*`.
MPI_LIBRARIES ?= openmpi mpich

.PHONY: help setup check test models fuzz vopr sanitize mutants coverage test-mpi test-root audit bench soak install dist \
	dist-check docs book

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## get what tests and benchmarks need besides Rust: fio, MPI, Chromium, NFS servers, mdbook, cargo-deny
	@command -v cargo >/dev/null || { echo "Rust is needed first: https://rustup.rs"; exit 1; }
	@if command -v apt-get >/dev/null; then \
		missing=$$(for p in $(PACKAGES); do \
			dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
		[ -z "$$missing" ] || [ -z "$(SUDO)" ] || command -v sudo >/dev/null || { \
			echo "Packages are installed by root: install sudo, or run this as root. Missing:" $$missing; exit 1; }; \
		[ -z "$$missing" ] || $(SUDO) sh -ec "$$INSTALL" install $$missing; \
	else \
		for c in cc c++ fio chromium ganesha.nfsd rpcbind linux.uml rpc.nfsd ip setquota mkfs.ext4 newuidmap python3 smbd mount.cifs sshd ssh qemu-system-x86_64 busybox readelf dpkg-deb dpkg-shlibdeps lintian mmdebstrap rpmbuild skopeo qemu-aarch64-static $(MPI_LIBRARIES:%=mpicc.%) $(MPI_LIBRARIES:%=mpiexec.%); do \
			command -v $$c >/dev/null || { echo "Install $$c with your system's package manager."; exit 1; }; \
		done; \
	fi
	@scripts/setup-namespaces
	@scripts/setup-program rclone
	@scripts/setup-program mdbook
	@scripts/setup-kernel
	@scripts/setup-python
	@scripts/setup-debian-root
	@cargo deny --version >/dev/null 2>&1 || cargo install --debug --locked cargo-deny --version $(CARGO_DENY_VERSION)

# Unit tests need no rights but a user's.
check: ## format, lints and unit tests, in a minute or so after a change
	@scripts/steps \
		'cargo fmt --all --check' \
		'cargo clippy --workspace --all-targets -- -D warnings' \
		'cargo test --workspace --lib --bins --no-fail-fast --quiet'

# Most of the time tests wait: for windows, servers and time limits. Three run at a time on each processor.
test test-root: export RUST_TEST_THREADS ?= $(shell echo $$((3 * $$(nproc))))

# Where an ordinary user may make no namespaces, tests that need root's rights get them by `sudo -n`.
test test-mpi: export PLIMSOLL_TEST_SUDO := 1

# Every step runs, also after one has failed; what failed is listed in the end. The steps of MPI include clippy, with
# every feature.
test: ## everything that must hold before a commit is merged
	@scripts/steps \
		'cargo fmt --all --check' \
		'cargo test --workspace --no-fail-fast' \
		'cargo test --workspace --no-fail-fast --test seeds -- --ignored --nocapture seeds_for_a_minute' \
		'$(MODELS)' \
		$(MPI_STEPS) \
		'RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps' \
		'scripts/fuzz 60' \
		'cargo deny check bans licenses sources'

# Every order of the threads of a model with a few preemptions, whose number each model says. More: PREEMPTIONS=5.
MODELS := RUSTC_WORKSPACE_WRAPPER=scripts/rustc-loom cargo test --no-fail-fast \
	-p plimsoll-measure -p plimsoll-lane -p plimsoll-engine --lib models::

models: ## check the models of lock-free code; longer with PREEMPTIONS=5
	$(if $(PREEMPTIONS),LOOM_MAX_PREEMPTIONS=$(PREEMPTIONS)) $(MODELS)

# The pinned compiler has the runtime of the sanitizer, but only allows it with this variable. The standard library is
# as it is shipped, without checks of its own; calls of it are checked where they touch memory that was allocated.
sanitize: ## run the tests of crates with unsafe code under AddressSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(TARGET)/sanitize \
		cargo test --target x86_64-unknown-linux-gnu --no-fail-fast \
		-p plimsoll-lane -p plimsoll-measure -p plimsoll-target -p plimsoll-engine

# Version of cargo-mutants that .cargo/mutants.toml is written for.
CARGO_MUTANTS_VERSION := 27.1.0
# Packages that cargo-mutants changes; all packages take days. One package: `make mutants MUTATE="-p plimsoll-sim"`.
MUTATE := $(addprefix -p plimsoll-,measure plan lane ranks results workload)
# Of the engine, only the choice of files and what a mix does: `make mutants MUTATE='$(MUTATE_ENGINE)'`.
MUTATE_ENGINE := -p plimsoll-engine -f 'crates/plimsoll-engine/src/file_pool/*' -f 'crates/plimsoll-engine/src/worker/mix/*'

mutants: ## change the code in every way that a test should notice (MUTATE=...)
	@[ "$$(cargo mutants --version 2>/dev/null)" = "cargo-mutants $(CARGO_MUTANTS_VERSION)" ] || { \
		echo "Install it: cargo install --locked cargo-mutants@$(CARGO_MUTANTS_VERSION)"; exit 1; }
	@# Survivors of the first packages are no reason to leave out the engine.
	status=0; cargo mutants --output $(TARGET) $(MUTATE) || status=$$?; \
	$(if $(findstring command,$(origin MUTATE)),,cargo mutants --output $(TARGET)/engine-mutants $(MUTATE_ENGINE) || status=$$?;) \
	exit $$status

# The newest LLVM of Debian that reads the profiles of the pinned compiler, whose LLVM has this number.
COVERAGE_LLVM := 22
COVERAGE_PACKAGES := workload plan measure lane

coverage: ## list lines that tests of COVERAGE_PACKAGES never run
	@command -v llvm-cov-$(COVERAGE_LLVM) >/dev/null || { \
		echo "Install it: apt-get install llvm-$(COVERAGE_LLVM)"; exit 1; }
	@cargo llvm-cov --version >/dev/null 2>&1 || { \
		echo "Install it: cargo install --locked cargo-llvm-cov"; exit 1; }
	LLVM_COV=llvm-cov-$(COVERAGE_LLVM) LLVM_PROFDATA=llvm-profdata-$(COVERAGE_LLVM) \
		cargo llvm-cov --show-missing-lines $(addprefix -p plimsoll-,$(COVERAGE_PACKAGES))

# mpi-sys does not notice a changed MPICC, so its build is removed between two MPI libraries; cargo then rebuilds mpi-sys
# and its dependents only. The build has all features, because cargo unifies features in a workspace.
TEST_WITH_MPI := cargo clean --quiet -p mpi-sys && cargo test --workspace --no-fail-fast \
	--all-features --test processes --test launchers -- --test-threads=2 mpi
CLIPPY_WITH_MPI := cargo clippy --workspace --all-features --all-targets -- -D warnings
MPI_STEPS = $(foreach l,$(MPI_LIBRARIES),'export MPICC=mpicc.$l; $(TEST_WITH_MPI)') \
	'export MPICC=mpicc.$(lastword $(MPI_LIBRARIES)); $(CLIPPY_WITH_MPI)'

test-mpi: ## run processes of mpiexec together, with each MPI library
	@scripts/steps $(MPI_STEPS)

# Tests that need root's rights, those of every NFS server of the table, and those of what a file system permits.
ROOT_TESTS = $(sort $(shell grep -rhB1 --include=*.rs 'needs_root!();' crates benches \
	| sed -n 's/.*fn \([a-z0-9_]*\)().*/\1/p')) nfs_table:: servers:: \
	posix_in_memory posix_on_disk

# `make test` of root includes these tests. plimsoll-ranks and plimsoll-series have none, and their test programs accept one
# name at a time.
test-root: ## run as root the tests that an ordinary user runs in namespaces
	@[ "$$(id -u)" = 0 ] || { echo "Run this as root."; exit 1; }
	@scripts/steps 'cargo test --workspace --exclude plimsoll-ranks --exclude plimsoll-series --tests --no-fail-fast -- $(ROOT_TESTS)'

# Seconds of fuzzing, over all targets together. FUZZ_PROFILE=fuzz is optimised, for long runs.
SECONDS ?= 60
# Those to fuzz; all by default.
TARGETS ?=

fuzz: ## fuzz every input for SECONDS (60): docs/testing.md
	scripts/fuzz "$(SECONDS)" $(TARGETS)

# Advisories appear without any change here, so they are no part of `test`.
audit: ## look for known vulnerabilities in the dependencies (needs the network)
	cargo deny check advisories

# A seed that breaks a rule is shown with the smallest scenario that does.
vopr: HOURS = 8
vopr: ## run the engine and its ranks in a simulation, with new seeds for HOURS (8)
	cargo run --release -p plimsoll-vopr -- --seed $$(date +%s)0000 --seconds $$(awk "BEGIN { print int($(HOURS) * 3600) }")

bench: ## measure Plimsoll itself, and write docs/performance.md
	cargo bench -p plimsoll-benches

soak: HOURS = 2
soak: ## run fileserver, the results browser and a browser for HOURS (2), and check what grows
	cargo build --locked --release -p plimsoll
	scripts/soak "$(TARGET)/release/plimsoll" "$(HOURS)"

PREFIX ?= $(HOME)/.local
# Features that the installed program has: `make install FEATURES=mpi`.
FEATURES ?=

# Installed programs: the benchmark and its companion program for test beds.
PROGRAMS := plimsoll plimsoll-testbed

# Cargo's directory, in which packages and book are made.
TARGET := $(or $(CARGO_TARGET_DIR),target)

install: ## put the programs, their manuals, completions and dashboard below PREFIX (~/.local)
	@scripts/install-notes before
	programs=$$(scripts/build-program "$(PROGRAMS)" shipping --features "$(FEATURES)") && \
	printf '%s\n' "$$programs" | while read -r program; do \
		scripts/install-program "$$program" "$(PREFIX)/bin" && \
		scripts/install-shared "$$program" "$(PREFIX)" || exit 1; \
	done
	@scripts/install-notes after "$(PREFIX)"

dist: ## make the packages: Debian, RPM, Python, tarball, image, crates (docs/install.md)
	@[ -z "$(FEATURES)" ] || { echo "FEATURES is for make install: packages have those that run everywhere."; exit 1; }
	@scripts/make-dist "$(TARGET)"

# Both builds take as long as `make dist`, one after the other, which is too long for `make test`.
dist-check: ## make the packages twice, compare them, and test them
	@scripts/check-dist "$(TARGET)"

docs: ## build the API documentation
	cargo doc --workspace --no-deps
	@echo "Open target/doc/plimsoll/index.html"

# The programs write the book's reference; the profile dev is built already if tests have run.
book: ## make the book: tutorial, how-to, explanations, reference, with search
	programs=$$(scripts/build-program "$(PROGRAMS)" dev) && \
	scripts/book "$$(printf '%s\n' "$$programs" | head -n 1)" $(TARGET)/book
	@echo "Open $(TARGET)/book/index.html"
