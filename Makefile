# A short front to CMake, CTest and pytest. `make help` lists the targets.

VENV := build/venv
PYTHON := $(VENV)/bin/python
JOBS ?= $(shell nproc)

# Seconds for each fuzzer, and where its choices begin.
FUZZERS := cache_fuzzer service_fuzzer
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1

# Seconds of a soak, its workers, and where its choices begin (a random seed).
SOAK_SECONDS ?= 300
SOAK_WORKERS ?= 16
SOAK_SEED ?=

.PHONY: help setup build package demo test check test-unit test-python test-asan \
        test-tsan test-fuzz fuzz soak coverage bench format clean

help:
	@echo "make demo   two workers share one cache; a recorded trace is replayed"
	@echo "make test   all tests, sanitizer runs included"
	@echo "make fuzz   the fuzzers, FUZZ_SECONDS=600 each"
	@echo "make soak   workers killed, stopped and cut off, SOAK_SECONDS=300"
	@echo "make coverage  lines and branches of core/ that its tests run"
	@echo "make bench  the benchmarks, with the floor beside each figure"
	@echo "make build  pandod and everything else, optimised, in build/release"
	@echo "make package  Debian packages, in build/packages"
	@echo "make format clang-format on all C++ sources"

setup:
	@tools/setup.sh $(VENV)

build: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)

# Only what is packaged.
package: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) \
	  --target pandod pandoctl pando_client completions man_pages
	@cpack --config build/release/CPackConfig.cmake -B build/packages

demo: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target pandod replay
	@$(PYTHON) examples/demo/run.py --pandod build/release/bin/pandod
	@echo; echo "A recorded chat trace, 3,000 requests, through two client processes:"
	@build/release/bin/replay bench/data/conversation_excerpt.jsonl \
	  --pandod build/release/bin/pandod --clients 2 \
	  --pool-tokens 5000000
	@echo "The two clients do not wait for each other: the order of the requests, and with"
	@echo "it the hit rate, differs from run to run."

test: check test-unit test-python test-asan test-tsan test-fuzz

# Layers and formatting.
check: setup
	@$(PYTHON) tools/check_layers.py
	@tools/check_format.sh

test-unit: setup
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS)
	@ctest --preset dev -j $(JOBS)

test-python: setup
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS)
	@PANDOD=$(CURDIR)/build/dev/bin/pandod $(PYTHON) -m pytest -q tests

# The C++ tests with clang's address and undefined-behaviour sanitizers; the
# build also checks the thread-safety annotations.
test-asan: setup
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

# The core under many threads, and the threads of pandod, with the thread
# sanitizer. What it cannot see: tests/support/tsan.
test-tsan: setup
	@cmake --preset tsan >/dev/null
	@cmake --build --preset tsan -j $(JOBS) --target core_stress_test pandod
	@build/tsan/tests/core/core_stress_test
	@PANDOD=$(CURDIR)/build/tsan/bin/pandod $(PYTHON) -m pytest -q \
	  tests/threads/service_threads.py

test-fuzz:
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=25

# What is found stays in build/fuzz/corpus, for the next run to begin with.
fuzz: setup
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS) --target $(FUZZERS)
	@for fuzzer in $(FUZZERS); do \
	  echo "$$fuzzer: seed $(FUZZ_SEED), $(FUZZ_SECONDS) s"; \
	  mkdir -p build/fuzz/corpus/$$fuzzer; \
	  build/fuzz/bin/$$fuzzer -seed=$(FUZZ_SEED) -verbosity=0 -len_control=0 \
	    -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/$$fuzzer- build/fuzz/corpus/$$fuzzer \
	    || exit 1; \
	done

# tests/soak: `make test` runs a short one.
soak: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target pandod
	@PANDOD=$(CURDIR)/build/release/bin/pandod PYTHONPATH=tests:tests/support \
	  $(PYTHON) -m soak --seconds $(SOAK_SECONDS) --workers $(SOAK_WORKERS) \
	  $(if $(SOAK_SEED),--seed $(SOAK_SEED))

# Lines and branches of core/ that its tests run, and the branches never taken.
CORE_TESTS := core_test core_model_test core_stress_test
coverage:
	@tools/setup.sh $(VENV) llvm
	@cmake --preset coverage >/dev/null
	@cmake --build --preset coverage -j $(JOBS) --target $(CORE_TESTS)
	@$(PYTHON) tools/coverage.py --folder core \
	  $(CORE_TESTS:%=build/coverage/tests/core/%)

bench: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) \
	  --target pandod core_bench rpc_bench echo_server replay
	@$(PYTHON) bench/run.py --build build/release

format:
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build
