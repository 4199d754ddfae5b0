# A short front to CMake, CTest and pytest. `make help` lists the targets.

PYTHON := build/venv/bin/python
JOBS ?= $(shell nproc)

# Seconds for each fuzzer, and where its choices begin.
FUZZERS := block_fuzzer cache_fuzzer lane_fuzzer resp_fuzzer service_fuzzer tier_fuzzer
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 1

# Seconds of a soak, its workers, and where its choices begin (a random seed).
SOAK_SECONDS ?= 300
SOAK_WORKERS ?= 16
SOAK_SEED ?=

# What runs in the environment of an engine.
ENGINES ?= sglang vllm
ENGINE_PYTHON := tests/engines/environments/python.sh

# The tests' many processes import what the first one has compiled.
unexport PYTHONDONTWRITEBYTECODE

# A file that is not in the compiler cache is not preprocessed twice.
export CCACHE_DEPEND ?= 1

# configure PRESET [ARGUMENTS]: says nothing but what went wrong.
configure = echo "Configuring build/$(1)" && cmake --preset $(1) $(2) >/dev/null

.PHONY: help setup build build-tested build-meanwhile build-asan build-tsan package \
        demo show test check test-unit test-release test-python test-asan test-tsan test-fuzz \
        test-fleet test-engines demo-sglang demo-vllm bench-engines tidy fuzz soak \
        coverage bench bench-machine bench-sglang bench-peers format clean

help:
	@echo "make demo            two workers share one cache; a recorded trace is replayed"
	@echo "make show            a cache to watch in the console, until Ctrl-C"
	@echo "make demo-sglang, make demo-vllm"
	@echo "                     two engines share one cache; installs the engine"
	@echo "make build           pandod and everything else, optimised, in build/release"
	@echo "make package         Debian packages and Python wheels, in build/packages"
	@echo "make test            all tests, under sanitizers too"
	@echo "make check           formatting, layers, and what ruff and clang-tidy find"
	@echo "make format          formats all sources (clang-format, ruff)"
	@echo "make test-fleet      real routers on two machines; downloads them once"
	@echo "make test-engines    SGLang and vLLM on Pando; installs them; NEWEST=1: the newest"
	@echo "make fuzz            the fuzzers, FUZZ_SECONDS=600 each"
	@echo "make soak            workers are killed, stopped and cut off, SOAK_SECONDS=300"
	@echo "make coverage        lines and branches of core/ that its tests run"
	@echo "make bench           the benchmarks, with a floor beside each figure"
	@echo "make bench-machine   what blocks cost beside vLLM's own; installs it"
	@echo "make bench-engines   what Pando costs and saves SGLang and vLLM"
	@echo "make bench-sglang    the Python client beside SGLang's own cache; installs it"
	@echo "make bench-peers     a look-up beside LMCache and Mooncake; installs them"
	@echo "make clean           removes build/"

# For everything here; a target installs what it needs by itself.
setup:
	@tools/setup.sh build package test

build:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS)

# The optimised build with the benchmarks, and the tests of CUDA and of long traces.
WITH_ALL := -DPANDO_BUILD_BENCHMARKS=ON -DPANDO_BUILD_TESTS=ON
build-tested: setup
	@$(call configure,release,$(WITH_ALL))
	@cmake --build --preset release -j $(JOBS)

# Only what is packaged.
package:
	@tools/setup.sh build package
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) \
	  --target pandod pando-keeper pando-mover pandoctl pando_client completions man_pages
	@cpack --config build/release/CPackConfig.cmake -B build/packages
	@$(PYTHON) tools/wheels.py --programs build/release/bin --to build/packages

demo:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod pandoctl
	@$(PYTHON) examples/demo/run.py --pandod build/release/bin/pandod
	@echo; echo "A recorded chat trace, 3,000 requests:"
	@$(PYTHON) examples/demo/replay.py --pandod build/release/bin/pandod \
	  --pandoctl build/release/bin/pandoctl --pool-tokens 5000000 \
	  bench/data/conversation_excerpt.jsonl
	@echo; echo "Next: make show, and the README. build/release/bin has pandod and pandoctl."

show:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod pandoctl
	@$(PYTHON) examples/demo/show.py --pandod build/release/bin/pandod

# All stages, whatever fails, and one summary. The Python tests leave much of the
# machine idle: what the stages after them need is compiled meanwhile. The C++ tests
# run under sanitizers, once.
STAGES := test-python+build-meanwhile check test-release test-asan test-tsan test-fuzz
test: setup
	@$(PYTHON) tools/test_stages.py build/test-results $(STAGES)

# The folder for verdicts as JUnit XML, where a stage is run by `make test`.
RESULTS :=
junit_of_ctest = $(if $(RESULTS),--output-junit $(RESULTS)/$@.xml)
junit_of_pytest = $(if $(RESULTS),--junitxml $(RESULTS)/$@.xml)

# Layers, formatting, what the optimised build refuses (its optimiser warns of more,
# and it compiles each library as one unit), and what ruff finds in Python and
# clang-tidy in C++.
check: setup
	@$(PYTHON) tools/check_layers.py
	@tools/check_format.sh
	@$(MAKE) --no-print-directory build-tested
	@$(MAKE) --no-print-directory tidy

# The C++ tests without sanitizers.
test-unit: setup
	@$(call configure,dev)
	@cmake --build --preset dev -j $(JOBS) --target unit_tests
	@ctest --preset dev -j $(JOBS) $(junit_of_ctest)

# Those that the sanitizers' builds are without: of CUDA, and of long traces.
test-release: setup
	@$(call configure,release,$(WITH_ALL))
	@cmake --build --preset release -j $(JOBS) --target release_tests
	@ctest --preset release -j $(JOBS) -L release $(junit_of_ctest)

test-python: build-tested
	@PANDOD=$(CURDIR)/build/release/bin/pandod $(PYTHON) -m pytest -q \
	  $(junit_of_pytest) tests --ignore tests/fleet --ignore tests/engines

# Routers that are downloaded, once, into ${PANDO_CACHE:-~/.cache/pando}; what
# cannot be had is named and not tested.
test-fleet: setup
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod
	@PANDOD=$(CURDIR)/build/release/bin/pandod $(PYTHON) -m pytest -q -rs tests/fleet

# Real engines over a real pandod; skipped, loudly, where their packages cannot
# be had; two engines at once, for most tests wait for one process. Environments
# are kept in $${PANDO_CACHE:-~/.cache/pando}. They have torch, too, for tests that
# need it and no engine: the first environment runs those.
TORCH_TESTS := tests/clients/python/test_torch_views.py \
  tests/e2e/test_demo.py::test_demo_verifies_every_bit_of_torch_in_bfloat16 \
  tests/e2e/test_torch_workers.py
test-engines:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod pando-keeper
	@$(MAKE) --no-print-directory -j 2 --output-sync=target --keep-going \
	  $(ENGINES:%=test-engine-%)

# What is run of an engine; with NEWEST=1 the newest release that its package index has:
# what has changed of what Pando leans on, and the quick tests.
NEWEST :=
engine_tests = $(if $(NEWEST),tests/engines/environments/newest.py $1, \
  -m pytest -q -rs -c tests/pytest.ini --rootdir tests tests/engines \
  $(if $(filter $(firstword $(ENGINES)),$1),$(TORCH_TESTS)))

test-engine-%:
	@PANDOD=$(CURDIR)/build/release/bin/pandod $(ENGINE_PYTHON) $* \
	  $(call engine_tests,$*); \
	code=$$?; \
	if [ $$code -eq 75 ]; then \
	  echo "SKIPPED: no packages of $*; its tests did not run"; \
	else exit $$code; fi

# The other C++ tests, with clang's address and undefined-behaviour sanitizers.
test-asan: build-asan
	@ctest --preset asan -j $(JOBS) $(junit_of_ctest)

# The core under many threads, both ends of a lane, shared tiers, and the threads
# of pandod, with the thread sanitizer. What it cannot see: tests/support/tsan.
TSAN_TESTS := core/core_stress_test lane/lane_threads_test \
  tiers/tier_threads_test
test-tsan: build-tsan
	@for test in $(TSAN_TESTS); do \
	  build/tsan/tests/$$test \
	    $(if $(RESULTS),--gtest_output=xml:$(RESULTS)/$$(basename $$test).xml) \
	    || exit; \
	done
	@PANDOD=$(CURDIR)/build/tsan/bin/pandod $(PYTHON) -m pytest -q \
	  $(junit_of_pytest) tests/threads/service_threads.py

test-fuzz:
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=25

demo-sglang demo-vllm: demo-%:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod pando-keeper pandoctl
	@PANDOD=$(CURDIR)/build/release/bin/pandod \
	  $(ENGINE_PYTHON) $* examples/engines/demo.py $*

bench-engines:
	@tools/setup.sh build
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod
	@for engine in $(ENGINES); do \
	  PANDOD=$(CURDIR)/build/release/bin/pandod \
	    $(ENGINE_PYTHON) $$engine bench/engines/run.py $$engine || exit; \
	done

build-meanwhile: build-asan build-tsan
build-asan build-tsan: build-%: setup
	@$(call configure,$*)
	@cmake --build --preset $* -j $(JOBS) $(addprefix --target ,$(BUILT_BY_$*))
BUILT_BY_asan := unit_tests $(FUZZERS)
BUILT_BY_tsan := $(notdir $(TSAN_TESTS)) pandod

# What is found stays in build/fuzz, for the next run to begin with.
fuzz: setup
	@$(call configure,asan)
	@cmake --build --preset asan -j $(JOBS) --target $(FUZZERS)
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target --keep-going \
	  $(FUZZERS:%=fuzz-%)

fuzz-%:
	@echo "$*: seed $(FUZZ_SEED), $(FUZZ_SECONDS) s"
	@mkdir -p build/fuzz/$*
	@build/asan/bin/$* -seed=$(FUZZ_SEED) -verbosity=0 -len_control=0 \
	  -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/$*- build/fuzz/$*

# What clang-tidy finds with the checks of .clang-tidy, in C++ but for the tests; it
# also checks the thread-safety annotations.
# It reads the unity sources of the preset asan, which include the headers of
# gRPC once for sixteen files, without the sanitizers: it lacks their headers.
TIDIED := build/asan/(base|clients|core|cuda|events|examples|gpu|keeper|mover|os|replay|service|tiers|tools)/
tidy: setup
	@$(call configure,asan)
	@cmake --build --preset asan -j $(JOBS) --target generated_protos >/dev/null
	@build/venv/bin/run-clang-tidy.py -quiet -p build/asan -j $(JOBS) \
	  -clang-tidy-binary build/venv/bin/clang-tidy \
	  -extra-arg=-fno-sanitize=all '$(TIDIED).*\.cxx' >build/tidy.log 2>&1 || \
	  { cat build/tidy.log; exit 1; }
	@echo "clang-tidy: ok"

# tests/soak: `make test` runs a short one.
soak: setup
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target pandod
	@PANDOD=$(CURDIR)/build/release/bin/pandod PYTHONPATH=tests:tests/support \
	  $(PYTHON) -m soak --seconds $(SOAK_SECONDS) --workers $(SOAK_WORKERS) \
	  $(if $(SOAK_SEED),--seed $(SOAK_SEED))

# Lines and branches of core/ that its tests run, and the branches never taken.
CORE_TESTS := core_test core_model_test core_stress_test core_traces_test
coverage:
	@tools/setup.sh build test coverage
	@$(call configure,coverage)
	@cmake --build --preset coverage -j $(JOBS) --target $(CORE_TESTS)
	@$(PYTHON) tools/coverage.py --folder core \
	  $(CORE_TESTS:%=build/coverage/tests/core/%)

bench: setup
	@$(call configure,release,-DPANDO_BUILD_BENCHMARKS=ON)
	@cmake --build --preset release -j $(JOBS) \
	  --target pandod pando-keeper core_bench rpc_bench echo_server scrape_bench \
	    kv_events_bench tier_calls_bench tier_hit_rate replay
	@$(PYTHON) bench/run.py --build build/release

# One cache for the machine, beside what vLLM has for itself; then two engines on each.
# bench/gpu/machine.py is for machines with GPUs.
bench-machine: setup
	@$(call configure,release,-DPANDO_BUILD_BENCHMARKS=ON)
	@cmake --build --preset release -j $(JOBS) --target pandod core_bench
	@for program in "machine/run.py" "engines/run.py blocks"; do \
	  PANDOD=$(CURDIR)/build/release/bin/pandod \
	    $(ENGINE_PYTHON) vllm bench/$$program || exit; \
	done

# In the environment of the engine's tests. PANDO_TRACES: the whole traces.
bench-sglang: setup
	@$(call configure,release,-DPANDO_BUILD_BENCHMARKS=ON)
	@cmake --build --preset release -j $(JOBS) --target pandod
	@python=$$(/usr/bin/python3 tests/engines/environments/environment.py sglang) && \
	  $(PYTHON) bench/sglang.py --build build/release --python $$python

# Without the others where they cannot be installed.
bench-peers: setup
	@$(call configure,release,-DPANDO_BUILD_BENCHMARKS=ON)
	@cmake --build --preset release -j $(JOBS) --target pandod
	@python=$$(/usr/bin/python3 tests/engines/environments/environment.py peers); \
	  $(PYTHON) bench/peers/run.py --build build/release $${python:+--python $$python}

format:
	@tools/setup.sh test
	@git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format -i
	@build/venv/bin/ruff check --fix-only --quiet .
	@build/venv/bin/ruff format --quiet .

clean:
	rm -rf build
