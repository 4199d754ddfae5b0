# The CUDA toolkit, which GPU pools are built with: optional. Sets
# PANDO_HAS_CUDA. The driver is never linked, so what is built starts without.

set(PANDO_CUDA AUTO CACHE STRING
    "GPU pools: ON, OFF, or AUTO (if there is a CUDA toolkit)")
set_property(CACHE PANDO_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90: native code and PTX
endif()

set(PANDO_HAS_CUDA OFF)
if(PANDO_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(PANDO_CUDA STREQUAL "ON" OR
   (PANDO_CUDA STREQUAL "AUTO" AND CMAKE_CUDA_COMPILER))
  enable_language(CUDA)
  find_package(CUDAToolkit 12.5 REQUIRED)
  set(PANDO_HAS_CUDA ON)
  # CMake 3.25 does not know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  if(CCACHE_PROGRAM)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
endif()
message(STATUS "GPU pools: ${PANDO_HAS_CUDA}")
