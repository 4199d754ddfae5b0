#include "core/eviction/ghost_list.h"

#include "absl/strings/string_view.h"

namespace pando {

GhostList::Place GhostList::StartOf(const NamespaceKey& ns) {
  return absl::HashOf(ns);
}

uint64_t GhostList::Fingerprint(std::span<const Token> page) {
  return absl::HashOf(absl::string_view(
      reinterpret_cast<const char*>(page.data()), page.size_bytes()));
}

}  // namespace pando
