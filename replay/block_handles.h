#ifndef PANDO_REPLAY_BLOCK_HANDLES_H_
#define PANDO_REPLAY_BLOCK_HANDLES_H_

#include <cstdint>
#include <vector>

#include "replay/cache_calls.h"
#include "replay/trace.h"

namespace pando::replay {

// Which handle leads to the end of each block: what an engine remembers of the
// conversations that it serves. Owned by a worker; thread-compatible.
//
// A handle also stands for the shorter prefixes on its way, with less tokens.
// So a prompt that leaves its conversation's last one somewhere in the middle
// still begins at a handle.
class BlockHandles {
 public:
  // `trace` outlives this.
  BlockHandles(const Trace& trace, uint32_t page_tokens)
      : trace_(trace), page_tokens_(page_tokens) {}

  // To the end of the last block of the request that is known, but not to the
  // end of the request, whose last token is never matched; none if no block is.
  Handle Find(const TraceRequest& request) const;

  // A call ended at `handle`, which leads to all blocks of the request that end
  // after `begin_tokens`, as far as it goes.
  void Add(const TraceRequest& request, uint32_t begin_tokens,
           const Handle& handle);

 private:
  uint32_t WholePages(uint32_t tokens) const {
    return tokens - tokens % page_tokens_;
  }

  const Trace& trace_;
  const uint32_t page_tokens_;
  std::vector<Handle> handles_ = {{}};
  // Indices of handles_, by block id; 0: unknown.
  std::vector<uint32_t> by_block_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_BLOCK_HANDLES_H_
