#include "mover/host_page_copier.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "mover/mapped_file.h"

namespace pando::mover {
namespace {

class HostPageCopier final : public PageCopier {
 public:
  HostPageCopier(const Welcome& welcome, MappedFile transfer,
                 std::vector<MappedFile> shards)
      : PageCopier(welcome),
        transfer_(std::move(transfer)),
        shards_(std::move(shards)) {}

  // Copies on the CPU are done when Begin returns.
  absl::Status MarkEnd(const Order& order) override {
    ended_.push_back(order.id);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<uint64_t>> TakeEnded() override {
    return std::exchange(ended_, {});
  }

 protected:
  absl::Status BeginPart(const Order& order, uint32_t shard,
                         uint64_t part_begin) override {
    const PageGeometry& at = geometry();
    const bool is_out = order.direction == Direction::kOut;
    std::byte* piece =
        shards_[shard].bytes().data() + order.page * at.page_stride;
    std::byte* part = transfer_.bytes().data() + part_begin;
    for (uint64_t i = 0; i < at.pieces; ++i) {
      std::memcpy(is_out ? part : piece, is_out ? piece : part, at.piece_bytes);
      piece += at.piece_stride;
      part += at.piece_bytes;
    }
    return absl::OkStatus();
  }

 private:
  const MappedFile transfer_;
  const std::vector<MappedFile> shards_;
  std::vector<uint64_t> ended_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopier>> MakeHostPageCopier(
    const Welcome& welcome, std::span<const UniqueFd> descriptors) {
  ASSIGN_OR_RETURN(MappedFile transfer,
                   MappedFile::Map(descriptors[0], welcome.transfer_bytes));
  std::vector<MappedFile> shards;
  for (const UniqueFd& fd : descriptors.subspan(1)) {
    ASSIGN_OR_RETURN(MappedFile shard,
                     MappedFile::Map(fd, welcome.shard_bytes));
    shards.push_back(std::move(shard));
  }
  return std::make_unique<HostPageCopier>(welcome, std::move(transfer),
                                          std::move(shards));
}

}  // namespace pando::mover
