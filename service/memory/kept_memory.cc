#include "service/memory/kept_memory.h"

#include <utility>

#include "base/status_macros.h"
#include "os/logging/log.h"

namespace pando {
namespace {

absl::StatusOr<HostMemory> TakeOver(std::string name, uint64_t bytes,
                                    UniqueFd fd) {
  ASSIGN_OR_RETURN(HostMemory memory,
                   HostMemory::Adopt(std::move(name), bytes, std::move(fd)));
  RETURN_IF_ERROR(memory.LastWriter().status());
  return memory;
}

}  // namespace

absl::StatusOr<HostMemory> KeptMemory(KeptDescriptors& kept,
                                      const std::string& key, std::string name,
                                      uint64_t bytes) {
  if (UniqueFd fd = kept.Take(key); fd.valid()) {
    absl::StatusOr<HostMemory> taken = TakeOver(name, bytes, std::move(fd));
    if (taken.ok()) return taken;
    Log(LogLevel::kWarning, "kept memory is not used: other memory is made",
        {{"name", key}, {"reason", taken.status().message()}});
  }
  ASSIGN_OR_RETURN(HostMemory made, HostMemory::Create(std::move(name), bytes));
  kept.Keep(key, made.fd());
  return made;
}

}  // namespace pando
