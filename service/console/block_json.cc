#include "service/console/block_json.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace pando {
namespace {

using nlohmann::json;

json KindJson(const KindStats& kind, uint64_t extent_bytes) {
  const KindSpec& spec = kind.kind.spec;
  const auto& evicted = kind.counters.evicted;
  return {{"number", kind.kind.number.value()},
          {"generation", kind.kind.generation},
          {"label", spec.label},
          {"extra_key", spec.ns.extra_key.has_value() ? json(*spec.ns.extra_key)
                                                      : json(nullptr)},
          {"is_salted", spec.ns.cache_salt.has_value()},
          {"is_newest", kind.is_newest},
          {"open_sessions", kind.open_sessions},
          {"extents", kind.extents},
          {"bytes", kind.extents * extent_bytes},
          {"block_bytes", kind.block_bytes},
          {"ready_blocks", kind.ready_blocks},
          {"locked_blocks", kind.locked_blocks},
          {"written_blocks", kind.written_blocks},
          {"hits", kind.counters.hits},
          {"misses", kind.counters.misses},
          {"evicted_blocks",
           std::accumulate(evicted.begin(), evicted.end(), uint64_t{0})}};
}

}  // namespace

json BlocksJson(const BlockStats& blocks, size_t limit) {
  std::vector<const KindStats*> largest;
  for (const KindStats& kind : blocks.kinds) largest.push_back(&kind);
  std::ranges::stable_sort(largest, [](const auto* a, const auto* b) {
    return a->extents > b->extents;
  });
  largest.resize(std::min(limit, largest.size()));
  json kinds = json::array();
  for (const KindStats* kind : largest) {
    kinds.push_back(KindJson(*kind, blocks.extent_bytes));
  }
  return {{"memory_bytes", blocks.memory_bytes},
          {"free_bytes", blocks.free_extents * blocks.extent_bytes},
          {"extents", blocks.extents},
          {"free_extents", blocks.free_extents},
          {"index_bytes", blocks.index_bytes},
          {"locks", blocks.locks},
          {"reservations", blocks.reservations},
          {"quarantined_blocks", blocks.quarantined_blocks},
          {"kinds", std::move(kinds)},
          {"total_kinds", blocks.kinds.size()}};
}

}  // namespace pando
