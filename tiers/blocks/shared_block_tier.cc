#include "tiers/blocks/shared_block_tier.h"

#include <utility>

namespace pando {

SharedBlockTier::SharedBlockTier(SharedStore store, const Timeouts& timeouts,
                                 const Parts& parts)
    : shared_(std::move(store.store), std::move(store.key)),
      source_(&shared_, &counts_, timeouts.get),
      loads_({.cache = parts.cache,
              .copies = parts.copies,
              .source = &source_,
              .counts = &counts_,
              .memory_bytes = parts.memory_bytes}),
      asks_({.cache = parts.cache,
             .shared = &shared_,
             .source = &source_,
             .loads = &loads_,
             .counts = &counts_,
             .timeout = timeouts.ask}),
      stores_({.copies = parts.copies,
               .kinds = parts.kinds,
               .shared = &shared_,
               .counts = &counts_,
               .timeout = timeouts.put}) {}

void SharedBlockTier::BeginDrain() {
  stores_.BeginDrain();
  asks_.BeginDrain();
  loads_.BeginDrain();
}

BlockTierFigures SharedBlockTier::figures() const {
  BlockTierFigures figures = FiguresOf(counts_);
  figures.are_loads_refused = asks_.is_refused() || source_.is_refused();
  figures.are_stores_refused = stores_.is_refused();
  return figures;
}

}  // namespace pando
