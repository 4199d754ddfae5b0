#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_

#include <cstddef>
#include <span>

#include "core/block_calls/block_call.h"

namespace pando {

// BlockCache::Reserve.
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
  // Answers the next key, whose block comes after `previous`. Returns its
  // block.
  absl::StatusOr<BlockNumber> AnswerNext(Context& context, const OpenKeys& keys,
                                         BlockNumber previous);
  // Makes room for a block that comes after `previous`.
  bool MakeRoom(Context& context, Kind& kind, BlockNumber previous);

  // A kind that there was no room for; so there is none for more of it.
  const Kind* full_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_RESERVE_H_
