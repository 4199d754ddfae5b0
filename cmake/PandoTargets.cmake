# pando_library(NAME SOURCES... DEPS...): a library of this project, included
# by paths from the repository root ("core/tree/radix_tree.h").
function(pando_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS}
    PRIVATE $<BUILD_INTERFACE:pando_warnings>)
endfunction()

# pando_runs_rarely(NAME): optimises a target little, in release builds: what runs
# once, or for a person, is not worth a fifth of the time that it takes to compile.
function(pando_runs_rarely name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# pando_program(NAME SOURCES... DEPS...): a program, placed in bin/ of the
# build folder.
function(pando_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} pando_warnings)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# pando_test(NAME [OPTIMIZED] [CUDA] [TRACES] [PREFIX] SOURCES... DEPS...): a GoogleTest
# program known to CTest, which calls its tests PREFIX and their names. The target
# unit_tests builds all of them, "all" none.
#
# Those with CUDA or TRACES are labelled "release", and release_tests builds them: the
# sanitizers' builds have no CUDA, and leave out what plays long traces for the figures
# that come out, which take minutes there.
function(pando_test name)
  cmake_parse_arguments(ARG "OPTIMIZED;CUDA;TRACES" "PREFIX" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  if(ARG_CUDA OR ARG_TRACES)
    set(labels release)
    add_dependencies(release_tests ${name})
  endif()
  set(is_left_out OFF)
  if(ARG_TRACES AND PANDO_SANITIZE)
    set(is_left_out ON)
  endif()
  if(NOT is_left_out)
    add_dependencies(unit_tests ${name})
  endif()
  target_link_libraries(${name} PRIVATE
    ${ARG_DEPS} GTest::gmock GTest::gtest_main pando_warnings)
  # As their headers are; most libraries ask for it, too.
  target_compile_options(${name} PRIVATE -pthread)
  # Files of tests may have helpers of one name.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # Under sanitizers what is tested is optimised. Tests compile in half the time
  # without; those that compute much would take longer to run, as what they test
  # shares their instances of templates.
  if(ARG_OPTIMIZED)
    target_precompile_headers(${name} REUSE_FROM optimized_test_headers)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  if(NOT is_left_out)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      TEST_PREFIX "${ARG_PREFIX}" PROPERTIES LABELS "${labels}")
  endif()
endfunction()

# pando_test_headers(NAME): what most tests include, parsed once for all of them, where
# the preset does not say otherwise; a test still includes what it uses.
function(pando_test_headers name)
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest_main pando_warnings)
  target_compile_options(${name} PRIVATE -pthread)
  target_precompile_headers(${name} PRIVATE
    <algorithm> <filesystem> <functional> <memory> <random> <string> <thread> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/synchronization/mutex.h>
    <absl/time/time.h> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# pando_fuzzer(NAME SOURCES... DEPS...): a libFuzzer program, placed in bin/ of
# the build folder; only with the sanitizer "fuzzer-no-link".
function(pando_fuzzer name)
  if(PANDO_SANITIZE MATCHES "fuzzer-no-link")
    pando_program(${name} ${ARGN})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
