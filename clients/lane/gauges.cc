#include "clients/lane/gauges.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace pando::lane {

std::shared_ptr<const MappedGauges> MappedGauges::Map(const UniqueFd& memory,
                                                      std::string& error) {
  struct stat file = {};
  if (fstat(memory.get(), &file) != 0 ||
      file.st_size < static_cast<off_t>(kGaugePageBytes)) {
    error = "the gauge page is no memory, or too small";
    return nullptr;
  }
  void* const base =
      mmap(nullptr, kGaugePageBytes, PROT_READ, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    error =
        std::string("the gauge page cannot be mapped: ") + std::strerror(errno);
    return nullptr;
  }
  const auto* const page = static_cast<const GaugePage*>(base);
  std::shared_ptr<const MappedGauges> gauges(new MappedGauges(page));
  if (page->magic != kGaugeMagic || page->version != kVersion) {
    error = "the gauge page is of another version";
    return nullptr;
  }
  return gauges;
}

MappedGauges::~MappedGauges() {
  munmap(const_cast<GaugePage*>(page_), kGaugePageBytes);
}

}  // namespace pando::lane
