# Thin: every target hands over to cmake, ctest or a script of tools/. Build folders: build (release),
# build-asan, build-tsan, build-vulkan, build-fuzz. `make help` lists the targets.
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DESTDIR ?=

configure = cmake --preset $(1) --log-level=NOTICE
build = cmake --build $(1) -j $(JOBS) $(2)
run_tests = ctest --test-dir $(1) --output-on-failure -j $(JOBS) $(2)

.PHONY: all setup demo test test-release test-asan test-tsan test-vulkan test-vm bench lint fuzz install clean help

all: ## build the program: build/sluice
	@tools/setup.sh --check build
	@$(call configure,release)
	@$(call build,build,--target sluice_cli sluice_shared manual)

setup: ## install what is missing from Debian (root or sudo)
	@tools/setup.sh run build test vulkan lint fuzz bench

demo: ## speak one sentence into demo.wav and draw demo.png
	@tools/setup.sh build
	@$(call configure,release)
	@$(call build,build,--target sluice_cli spectrogram)
	@tools/demo.sh build

test: ## all tests: release, ThreadSanitizer where labelled, on Vulkan, Address- and UndefinedBehaviorSanitizer
	@tools/setup.sh build test
	@$(MAKE) test-release test-tsan test-vulkan test-asan

test-release:
	@$(call configure,release)
	@$(call build,build)
	@$(call run_tests,build)

test-tsan:
	@$(call configure,tsan)
	@$(call build,build-tsan,--target tsan_tests)
	@$(call run_tests,build-tsan,-L tsan)

test-vulkan:
	@tools/test_vulkan.sh $(JOBS)

test-asan:
	@$(call configure,asan)
	@$(call build,build-asan)
	@$(call run_tests,build-asan)

test-vm: ## in control groups of version 2, on Debian's kernels in a virtual machine (takes minutes, not in test)
	@tools/test_vm.sh $(JOBS)

bench: ## all benchmarks; they compare within one run
	@tools/setup.sh build test bench
	@$(call configure,release)
	@$(call build,build,--target bench)

lint: ## format, static analysis, spelling, house rules
	@tools/setup.sh build test lint
	@tools/lint.sh

fuzz: ## every fuzz target for FUZZ_SECONDS (600)
	@tools/setup.sh build test fuzz
	@$(call configure,fuzz)
	@$(call build,build-fuzz,--target fuzz)

install: all ## library, headers, sluice.pc, program and man page below PREFIX (/usr/local)
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

clean: ## remove the build folders and the demo's files; the ggml cache stays
	rm -rf build build-asan build-tsan build-vulkan build-fuzz build-dev demo.wav demo.png demo.json

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile
