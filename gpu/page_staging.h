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

// The same type as cudaEvent_t of the CUDA runtime.
struct CUevent_st;

namespace pando {

// Copies lists of pages between a pool on the current device and pinned host
// memory, where the pages lie one behind the other (PageBuffer). The pages pass
// through two buffers on the device: while one buffer is transferred over the
// bus, a kernel fills or empties the other. It owns the buffers and a stream
// for the bus. One thread at a time may use it, and all its copies must be on
// the same stream. Destroy it only after the copies are done.
class PageStaging {
 public:
  // Makes one for pages in the shape of `layout`. Each of the two buffers has
  // room for `chunk_pages` pages. INVALID_ARGUMENT if that is 0.
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
  // For each chunk, calls `fill` to enqueue the work that fills a slot on
  // stream `filler`, and then `drain` to enqueue the work that empties it on
  // stream `drainer`. A slot is filled again only after it was emptied.
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
