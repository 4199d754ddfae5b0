# The allocator of pandod: jemalloc. glibc's defers its work to some later call, which then
# holds the cache: up to 10 ms after an eviction had freed a million blocks of memory.
# Sanitizers have one of their own.
if(NOT PANDO_SANITIZE)
  find_library(PANDO_ALLOCATOR jemalloc DOC "jemalloc (Debian: libjemalloc-dev)"
               REQUIRED)
endif()
