// Only in builds with the CUDA toolkit.
#ifndef PANDO_GPU_PAGE_STAGING_H_
#define PANDO_GPU_PAGE_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/page_memory.h"

// cudaEvent_t of the CUDA runtime.
struct CUevent_st;

namespace pando {

// Copies lists of pages between a pool on the current device and pinned host
// memory, where they lie one after the other (PageBuffer). The pages pass
// through two device buffers: while one is being transferred over the bus, a
// kernel fills or empties the other. Owns the buffers and a stream for the bus.
// For one thread at a time, and for copies on one stream only; destroy it only
// when they are done.
class PageStaging {
 public:
  // For pages in the shape of `layout`; each buffer has room for `chunk_pages`
  // pages, at least 1.
  static absl::StatusOr<std::unique_ptr<PageStaging>> Create(
      const KvLayout& layout, uint32_t chunk_pages);
  ~PageStaging();
  PageStaging(const PageStaging&) = delete;
  PageStaging& operator=(const PageStaging&) = delete;

  // Both return before the copy is done: they enqueue it on `stream`, which may
  // be capturing a graph. `host` is pinned memory of num_pages pages.
  absl::Status ToHost(const PageMemory& pool, uint32_t num_pages,
                      std::byte* host, CudaStream stream);
  absl::Status ToDevice(const std::byte* host, const PageMemory& pool,
                        uint32_t num_pages, CudaStream stream);

 private:
  struct Slot {
    std::byte* buffer = nullptr;
    CUevent_st* filled = nullptr;
    CUevent_st* drained = nullptr;
  };
  // Pages [begin, begin + count) of a list.
  struct Chunk {
    uint32_t begin;
    uint32_t count;
  };
  using Step = absl::FunctionRef<absl::Status(const Slot&, const Chunk&)>;

  PageStaging(const KvLayout& layout, uint32_t chunk_pages)
      : layout_(layout), chunk_pages_(chunk_pages) {}

  absl::Status Allocate();
  // For each chunk, `fill` enqueues the work that fills a slot on the stream
  // `filler`, then `drain` the work that empties it on `drainer`. A slot is
  // filled again only after it was drained.
  absl::Status ForEachChunk(uint32_t num_pages, CudaStream filler, Step fill,
                            CudaStream drainer, Step drain);
  uint64_t BytesOf(uint32_t pages) const { return pages * PageBytes(layout_); }

  const KvLayout layout_;
  const uint32_t chunk_pages_;
  CudaStream bus_ = nullptr;
  CUevent_st* joined_ = nullptr;
  std::array<Slot, 2> slots_;
};

}  // namespace pando

#endif  // PANDO_GPU_PAGE_STAGING_H_
