#ifndef PANDO_REPLAY_BLOCK_HANDLES_H_
#define PANDO_REPLAY_BLOCK_HANDLES_H_

#include <cstdint>
#include <vector>

#include "replay/cache_calls.h"
#include "replay/trace.h"

namespace pando::replay {

// Remembers a handle for the end of each block of a trace, as an engine does
// for the conversations that it serves. Owned by a worker; thread-compatible.
//
// A handle also names the shorter prefixes on its path, with fewer tokens. So a
// prompt that diverges in the middle of the conversation's last one still has a
// handle to begin at.
class BlockHandles {
 public:
  // `trace` must outlive this object.
  BlockHandles(const Trace& trace, uint32_t page_tokens)
      : trace_(trace), page_tokens_(page_tokens) {}

  // Returns the handle of the last known block that ends before the request
  // does, because the last token of a request is never matched. Returns an
  // empty handle if no block is known.
  Handle Find(const TraceRequest& request) const;

  // Records that a call ended at `handle`. The handle then stands for the ends
  // of the request's blocks from `begin_tokens` on, as far as it reaches.
  void Add(const TraceRequest& request, uint32_t begin_tokens,
           const Handle& handle);

 private:
  uint32_t WholePages(uint32_t tokens) const {
    return tokens - tokens % page_tokens_;
  }

  const Trace& trace_;
  const uint32_t page_tokens_;
  std::vector<Handle> handles_ = {{}};
  // Indices of handles_, by block id; 0 stands for an unknown handle.
  std::vector<uint32_t> by_block_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_BLOCK_HANDLES_H_
