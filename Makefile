# Installs what a package would: the program, its manual pages and the completions.
#
#   make && make install PREFIX=/usr DESTDIR=/tmp/root     make deb     make dist

PREFIX = /usr/local
DESTDIR =
CARGO = cargo

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
BINARY = target/$(TARGET)/release/outlive
ROOT = $(DESTDIR)$(PREFIX)

all: $(BINARY)

$(BINARY): Cargo.toml Cargo.lock build.rs $(shell find src -name '*.rs')
	$(CARGO) build --release --locked

test:
	$(CARGO) test

install: $(BINARY)
	install -D -m 755 $(BINARY) $(ROOT)/bin/outlive
	install -d $(ROOT)/share/man/man1
	install -m 644 man/*.1 $(ROOT)/share/man/man1
	install -D -m 644 completions/outlive.bash $(ROOT)/share/bash-completion/completions/outlive
	install -D -m 644 completions/_outlive $(ROOT)/share/zsh/site-functions/_outlive
	install -D -m 644 completions/outlive.fish $(ROOT)/share/fish/vendor_completions.d/outlive.fish
	for file in README.md CHANGELOG.md docs/agents.md docs/json.md LICENSE-MIT LICENSE-APACHE; do \
		install -D -m 644 $$file $(ROOT)/share/doc/outlive/$${file##*/} || exit 1; \
	done
	install -d $(ROOT)/share/doc/outlive/schema
	install -m 644 docs/schema/*.json $(ROOT)/share/doc/outlive/schema

uninstall:
	rm -f $(ROOT)/bin/outlive $(patsubst man/%,$(ROOT)/share/man/man1/%,$(wildcard man/*.1))
	rm -f $(ROOT)/share/bash-completion/completions/outlive $(ROOT)/share/zsh/site-functions/_outlive
	rm -f $(ROOT)/share/fish/vendor_completions.d/outlive.fish
	rm -rf $(ROOT)/share/doc/outlive

deb: $(BINARY)
	packaging/deb $(VERSION) target/deb

dist:
	mkdir -p target/dist
	git archive --prefix=outlive-$(VERSION)/ -o target/dist/outlive-$(VERSION).tar.gz HEAD

.PHONY: all test install uninstall deb dist
