#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_SEARCH_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/block_calls/block_call.h"

namespace pando {

// Implements BlockCache::Lookup and BlockCache::Acquire.
class BlockSearch : public BlockCall {
 public:
  BlockSearch(SessionId session, std::span<const BlockKeys> keys,
              bool peeks = false)
      : BlockCall(session, std::nullopt, keys, false), peeks_(peeks) {}
  explicit BlockSearch(const AcquireBlocksRequest& request)
      : BlockCall(request.session,
                  BlockHold::Name{.is_reservation = false,
                                  .id = request.lock.value()},
                  request.keys, request.all) {}

 protected:
  absl::Status Answer(Context& context, const OpenKeys& keys) override;
  bool Suffices(BlockShape shape,
                std::span<const BlockPlace> answers) const override;
  BlockPlace Undone() const override { return kReadyBlock; }

 private:
  // Answers the shapes kEach and kPrefix from the front, and the shapes kWindow
  // and kCheckpoint from the end.
  absl::Status AnswerForwards(Context& context, const OpenKeys& keys);
  absl::Status AnswerRow(Context& context, const OpenKeys& keys,
                         uint32_t window);
  // The answer to a key, without using its block: the place if the block is
  // ready, else kPendingBlock or kMissingBlock.
  static BlockPlace Look(const CacheParts& parts, BlockNumber block);
  // Counts an answer in the kind's counters, unless the call peeks or the
  // session is internal.
  void Count(const Context& context, Kind& kind, BlockPlace answer) const;
  // Answers the next key. If its block is ready, locks it (Acquire) or touches
  // it (Lookup), unless the call peeks.
  absl::Status Use(Context& context, Kind& kind, BlockNumber block);

  const bool peeks_ = false;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_SEARCH_H_
