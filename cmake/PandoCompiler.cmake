# Language level, warnings, ccache and sanitizers, for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(PANDO_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined")

# Off where Pando is built by others: a newer compiler warns of more.
option(PANDO_WERROR "Warnings are errors" OFF)

option(PANDO_COVERAGE "Count which lines and branches run (clang)" OFF)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# An interface library, so that generated code can be built without it.
add_library(pando_warnings INTERFACE)
target_compile_options(pando_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor>"
  # nvcc's own output is not pedantic.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>)
if(PANDO_WERROR)
  target_compile_options(pando_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pando_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: it finds overlaps in plain assignments of std::string.
  target_compile_options(pando_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

if(PANDO_SANITIZE)
  add_compile_options(-fsanitize=${PANDO_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PANDO_SANITIZE})
endif()

if(PANDO_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()
