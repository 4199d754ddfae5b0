#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_

#include <cstddef>
#include <span>

#include "core/block_calls/block_call.h"

namespace pando {

// Implements BlockCache::Reserve.
class BlockReserve : public BlockCall {
 public:
  explicit BlockReserve(const ReserveBlocksRequest& request)
      : BlockCall(request.session,
                  BlockHold::Name{.is_reservation = true,
                                  .id = request.reservation.value()},
                  request.keys, request.all) {}

 protected:
  absl::Status Answer(Context& context, const OpenKeys& keys) override;
  bool Suffices(BlockShape shape,
                std::span<const BlockPlace> answers) const override;
  BlockPlace Undone() const override { return kMissingBlock; }

 private:
  // Answers the next key, whose block comes after `previous`. Returns the block
  // of the key, or kNoBlock.
  absl::StatusOr<BlockNumber> AnswerNext(Context& context, const OpenKeys& keys,
                                         BlockNumber previous);
  // Makes room for a block that comes after `previous`, which is not evicted
  // for that.
  bool MakeRoom(Context& context, Kind& kind, BlockNumber previous);

  // The last kind for which no room could be made. The call does not try again
  // for it.
  const Kind* full_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_
