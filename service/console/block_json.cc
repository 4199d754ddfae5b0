#include "service/console/block_json.h"

#include <cstdint>
#include <utility>

namespace pando {
namespace {

using nlohmann::json;

json KindJson(const KindStats& kind, uint64_t extent_bytes) {
  const KindSpec& spec = kind.kind.spec;
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
          {"evicted_blocks", kind.counters.evicted_blocks()}};
}

}  // namespace

json BlocksJson(const BlockStats& blocks, size_t limit) {
  json kinds = json::array();
  for (const KindStats* kind : LargestKinds(blocks, limit)) {
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
          {"recoveries", blocks.recoveries},
          {"kinds", std::move(kinds)},
          {"total_kinds", blocks.kinds.size()}};
}

}  // namespace pando
