#include "mover/page_copier.h"

#include "absl/strings/str_format.h"
#include "mover/cuda_page_copier.h"
#include "mover/host_page_copier.h"

namespace pando::mover {

// The order is checked although it came from pandod: a wrong address could
// overwrite the KV of other requests.
absl::Status PageCopier::Begin(const Order& order) {
  const uint64_t page_bytes = geometry().page_bytes();
  for (uint32_t shard = 0; shard < welcome_.num_shards; ++shard) {
    const uint64_t begin = order.block + welcome_.shards[shard] * page_bytes;
    if (order.page >= welcome_.capacity_pages ||
        order.block > welcome_.transfer_bytes ||
        begin > welcome_.transfer_bytes ||
        page_bytes > welcome_.transfer_bytes - begin) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "an order is for page %u and byte %u; there are %u pages and %u "
          "bytes",
          order.page, begin, welcome_.capacity_pages, welcome_.transfer_bytes));
    }
  }
  for (uint32_t shard = 0; shard < welcome_.num_shards; ++shard) {
    absl::Status begun = BeginPart(
        order, shard, order.block + welcome_.shards[shard] * page_bytes);
    if (!begun.ok()) return begun;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PageCopier>> MakePageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors) {
  if (welcome.num_shards > kMaxShards ||
      descriptors.size() != size_t{welcome.num_shards} + 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("pandod told of %u shards, with %u descriptors",
                        welcome.num_shards, descriptors.size()));
  }
  if (device == kHostDevice) return MakeHostPageCopier(welcome, descriptors);
  return MakeCudaPageCopier(device, welcome, descriptors);
}

}  // namespace pando::mover
