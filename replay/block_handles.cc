#include "replay/block_handles.h"

#include <algorithm>

namespace pando::replay {

Handle BlockHandles::Find(const TraceRequest& request) const {
  for (size_t i = request.block_ids.size(); i-- > 0;) {
    const uint32_t id = request.block_ids[i];
    if (id >= by_block_.size() || by_block_[id] == 0) continue;
    Handle handle = handles_[by_block_[id]];
    handle.tokens = WholePages(
        std::min(trace_.EndOfBlock(request, i), request.input_tokens - 1));
    return handle;
  }
  return {};
}

void BlockHandles::Add(const TraceRequest& request, uint32_t begin_tokens,
                       const Handle& handle) {
  handles_.push_back(handle);
  const auto number = static_cast<uint32_t>(handles_.size() - 1);
  for (size_t i = begin_tokens / trace_.block_tokens;
       i < request.block_ids.size(); ++i) {
    const uint32_t end = WholePages(trace_.EndOfBlock(request, i));
    if (end > handle.tokens) break;
    if (end <= begin_tokens) continue;
    const uint32_t id = request.block_ids[i];
    if (id >= by_block_.size()) by_block_.resize(id + 1);
    by_block_[id] = number;
  }
}

}  // namespace pando::replay
