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

// A shard: the pool's memory on one device.
struct KvShard {
  uint32_t index = 0;
  // "host", or the device that holds the memory.
  std::string device;
  // Bytes to map: those of all pages, rounded up to the granularity of
  // mappings.
  uint64_t size_bytes = 0;
};

// The memory of all KV pages. It knows the bytes of pages, but not their
// states. Owned by Server. Immutable after creation, so any thread may call it.
// All shards have the same layout.
class KvPool {
 public:
  // All descriptors of a pool travel in one SCM_RIGHTS message, and the kernel
  // allows 253 descriptors in a message.
  static constexpr uint32_t kMaxShards = 250;

  virtual ~KvPool() = default;
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  const KvLayout& layout() const { return layout_; }
  uint32_t capacity_pages() const { return capacity_pages_; }
  const std::vector<KvShard>& shards() const { return shards_; }

  // Makes a close-on-exec descriptor of the shard's memory, which keeps the
  // memory alive even when the pool is gone. OUT_OF_RANGE if there is no such
  // shard.
  virtual absl::StatusOr<UniqueFd> ExportShard(uint32_t index) const = 0;

  // The same for a writer: from now on IsHeldBy(writer) works, if this kind of
  // memory knows which writers hold it. One writer may have any number of
  // exports. FAILED_PRECONDITION if another process that holds the memory has
  // taken the writer's lock.
  virtual absl::StatusOr<UniqueFd> ExportShardTo(WriterId /*writer*/,
                                                 uint32_t index) const {
    return ExportShard(index);
  }
  // Whether any process still holds a descriptor or a mapping that came from an
  // export to the writer, even by inheritance (fork). None if this kind of
  // memory does not know.
  virtual std::optional<bool> IsHeldBy(WriterId /*writer*/) const {
    return std::nullopt;
  }

  // Makes an object that computes checksums of pages. It maps the pool into
  // this process, which the pool itself does not do.
  virtual absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeChecksummer()
      const = 0;

  // Names the memory of all shards: other memory that exists at the same time
  // has another id. 0 if this kind of memory has none.
  virtual uint64_t memory_id() const { return 0; }

  // The same as HostMemory's functions, over all shards: they are for memory
  // that was taken over from an earlier pandod.
  virtual absl::StatusOr<WriterId> LastWriter() const { return WriterId(0); }
  virtual bool IsHeldByAnyUpTo(WriterId /*last*/) const { return false; }

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
