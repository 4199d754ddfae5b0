#ifndef PANDO_GPU_KV_POOL_H_
#define PANDO_GPU_KV_POOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "gpu/kv_layout.h"
#include "gpu/page_checksummer.h"

namespace pando {

// The pool's memory on one device.
struct KvShard {
  uint32_t index = 0;
  // "host", or the device that holds the memory.
  std::string device;
  // Bytes to map: the pages, rounded up to the mapping granularity.
  uint64_t size_bytes = 0;
};

// The memory of all KV pages: bytes, no page states. Owned by Server; lives as
// long as it. Immutable after creation, so any thread may call it. Every shard
// has the same layout; the index of a shard is its position.
class KvPool {
 public:
  // All descriptors of a pool travel in one SCM_RIGHTS message, which the
  // kernel limits to 253.
  static constexpr uint32_t kMaxShards = 250;

  virtual ~KvPool() = default;
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  const KvLayout& layout() const { return layout_; }
  uint32_t capacity_pages() const { return capacity_pages_; }
  const std::vector<KvShard>& shards() const { return shards_; }

  // A new close-on-exec descriptor of the shard's memory. It keeps the memory
  // alive, whatever becomes of the pool.
  virtual absl::StatusOr<UniqueFd> ExportShard(uint32_t index) const = 0;

  // The same for a writer, whom the memory knows from now on, if it can tell
  // who holds it. Any number of exports may be one writer's.
  // FAILED_PRECONDITION: it cannot tell of him, because somebody who holds it
  // prevents that.
  virtual absl::StatusOr<UniqueFd> ExportShardTo(WriterId /*writer*/,
                                                 uint32_t index) const {
    return ExportShard(index);
  }
  // Whether anybody still holds a descriptor or a mapping that came from an
  // export to the writer, however he got it: a child by fork, say. None: this
  // memory cannot tell.
  virtual std::optional<bool> IsHeldBy(WriterId /*writer*/) const {
    return std::nullopt;
  }

  // Maps the pool into this process, which it is not otherwise.
  virtual absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeChecksummer()
      const = 0;

 protected:
  KvPool(const KvLayout& layout, uint32_t capacity_pages,
         std::vector<KvShard> shards)
      : layout_(layout),
        capacity_pages_(capacity_pages),
        shards_(std::move(shards)) {}

 private:
  const KvLayout layout_;
  const uint32_t capacity_pages_;
  const std::vector<KvShard> shards_;
};

}  // namespace pando

#endif  // PANDO_GPU_KV_POOL_H_
