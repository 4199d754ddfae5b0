#include "mover/cuda_page_copier.h"

#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/transfers.h"
#include "mover/mapped_file.h"

namespace pando::mover {
namespace {

class CudaPageCopier final : public PageCopier {
 public:
  CudaPageCopier(const Welcome& welcome, MappedFile transfer,
                 std::vector<cuda::Mapping> shards,
                 std::unique_ptr<cuda::Transfers> transfers)
      : PageCopier(welcome),
        transfer_(std::move(transfer)),
        shards_(std::move(shards)),
        transfers_(std::move(transfers)) {}

  absl::Status MarkEnd(const Order& order) override {
    return transfers_->MarkEnd(DirectionOf(order), order.id);
  }
  absl::StatusOr<std::vector<uint64_t>> TakeEnded() override {
    return transfers_->TakeReached();
  }

 protected:
  absl::Status BeginPart(const Order& order, uint32_t shard,
                         uint64_t part_begin) override {
    const PageGeometry& at = geometry();
    const cuda::Transfers::Rows rows = {
        .device = shards_[shard].bytes().data() + order.page * at.page_stride,
        .device_pitch = at.piece_stride,
        .host = transfer_.bytes().data() + part_begin,
        .row_bytes = at.piece_bytes,
        .count = at.pieces};
    return transfers_->Begin(rows, DirectionOf(order));
  }

 private:
  static cuda::Transfers::Direction DirectionOf(const Order& order) {
    return order.direction == Direction::kOut
               ? cuda::Transfers::Direction::kFromDevice
               : cuda::Transfers::Direction::kToDevice;
  }

  const MappedFile transfer_;
  const std::vector<cuda::Mapping> shards_;
  // Unpins the transfer memory before that is unmapped.
  const std::unique_ptr<cuda::Transfers> transfers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopier>> MakeCudaPageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors) {
  ASSIGN_OR_RETURN(
      const cuda::Device gpu,
      cuda::FindDevice(std::string(absl::StripPrefix(device, "cuda:"))));
  ASSIGN_OR_RETURN(MappedFile transfer,
                   MappedFile::Map(descriptors[0], welcome.transfer_bytes));
  std::vector<cuda::Mapping> shards;
  for (const UniqueFd& fd : descriptors.subspan(1)) {
    ASSIGN_OR_RETURN(const cuda::Memory memory,
                     cuda::Memory::Import(gpu, fd.get(), welcome.shard_bytes));
    ASSIGN_OR_RETURN(cuda::Mapping shard, cuda::Mapping::Map(memory));
    shards.push_back(std::move(shard));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<cuda::Transfers> transfers,
                   cuda::Transfers::Make(gpu, transfer.bytes()));
  return std::make_unique<CudaPageCopier>(
      welcome, std::move(transfer), std::move(shards), std::move(transfers));
}

}  // namespace pando::mover
