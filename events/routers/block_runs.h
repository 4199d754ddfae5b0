#ifndef PANDO_EVENTS_ROUTERS_BLOCK_RUNS_H_
#define PANDO_EVENTS_ROUTERS_BLOCK_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"
#include "events/routers/kv_event_batch.h"

namespace pando {

// Returns the first 8 bytes of a hash, big-endian.
BlockId IdOf(const PageHash& hash);

// Joins blocks that follow one another in a prompt to runs of a bounded size,
// and visits these. Not thread-safe.
class BlockRuns {
 public:
  using Visit = std::function<void(const StoredBlocks&)>;

  explicit BlockRuns(KvMedium medium) : medium_(medium) {}

  // Adds a block, and visits the run so far if the block does not belong to it.
  // `parent` is the block before it, or none if it begins a prompt. `pages` has
  // the tokens that spell each of its pages, as CachedPages has them. `ns` must
  // live until the block has been visited.
  void Add(BlockId id, std::optional<BlockId> parent, const NamespaceKey& ns,
           std::span<const std::span<const Token>> pages, const Visit& visit);
  // Visits what has not been visited.
  void Flush(const Visit& visit);

 private:
  const KvMedium medium_;
  // The number of tokens in each block of the run.
  uint32_t block_tokens_ = 0;
  std::optional<BlockId> parent_;  // of its first block
  const NamespaceKey* ns_ = nullptr;
  std::vector<BlockId> ids_;
  std::vector<Token> tokens_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_BLOCK_RUNS_H_
