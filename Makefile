# Installs what a package would: the program, its manual pages and the completions.
#
#   make && make install PREFIX=/usr DESTDIR=/tmp/root     make deb     make dist     make check-packages

PREFIX = /usr/local
DESTDIR =
CARGO = cargo

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
# As they lie here, so that their links lead somewhere.
DOCS = README.md CHANGELOG.md CONTRIBUTING.md LICENSE-MIT LICENSE-APACHE $(shell find docs -type f)
# Apart from `cargo build --release`, which has other flags.
BUILT = target/package
BINARY = $(BUILT)/$(TARGET)/release/outlive
ROOT = $(DESTDIR)$(PREFIX)

# Where the sources of libraries are is nobody's affair but the builder's, and would make each build another.
CARGO_HOME ?= $(HOME)/.cargo
REMAP = --config 'target.$(TARGET).rustflags = ["--remap-path-prefix=$(CARGO_HOME)/registry/src=/registry"]'

# All times in packages: that of the commit, or where there is none, of the change log.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
TAR = tar --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --format=ustar

all: $(BINARY)

# The program names its commit: another one is another program.
$(BINARY): Cargo.toml Cargo.lock build.rs order.ld $(shell find src -name '*.rs') $(wildcard .git/logs/HEAD)
	$(CARGO) build --release --locked --target-dir $(BUILT) $(REMAP)

test:
	$(CARGO) test

install: $(BINARY)
	install -D -m 755 $(BINARY) $(ROOT)/bin/outlive
	install -d $(ROOT)/share/man/man1
	install -m 644 man/*.1 $(ROOT)/share/man/man1
	install -D -m 644 completions/outlive.bash $(ROOT)/share/bash-completion/completions/outlive
	install -D -m 644 completions/_outlive $(ROOT)/share/zsh/site-functions/_outlive
	install -D -m 644 completions/outlive.fish $(ROOT)/share/fish/vendor_completions.d/outlive.fish
	for file in $(DOCS); do install -D -m 644 $$file $(ROOT)/share/doc/outlive/$$file || exit 1; done

uninstall:
	rm -f $(ROOT)/bin/outlive $(patsubst man/%,$(ROOT)/share/man/man1/%,$(wildcard man/*.1))
	rm -f $(ROOT)/share/bash-completion/completions/outlive $(ROOT)/share/zsh/site-functions/_outlive
	rm -f $(ROOT)/share/fish/vendor_completions.d/outlive.fish
	rm -rf $(ROOT)/share/doc/outlive

deb: $(BINARY)
	packaging/deb $(VERSION) target/deb

# The sources, and what `make install` would install; the program is static and needs nothing else.
dist: $(BINARY)
	rm -rf target/dist
	mkdir -p target/dist
	git archive --format=tar --prefix=outlive-$(VERSION)/ HEAD | gzip -9n >target/dist/outlive-$(VERSION).tar.gz
	umask 022; $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/target/dist/ PREFIX=outlive-$(VERSION)-$(TARGET)
	cd target/dist && $(TAR) -c outlive-$(VERSION)-$(TARGET) | gzip -9n >outlive-$(VERSION)-$(TARGET).tar.gz
	rm -rf target/dist/outlive-$(VERSION)-$(TARGET)
	cd target/dist && sha256sum *.tar.gz >SHA256SUMS

check-packages: deb dist
	packaging/check target/deb/outlive_$(VERSION)_*.deb target/dist
	packaging/reproduce

.PHONY: all test install uninstall deb dist check-packages
