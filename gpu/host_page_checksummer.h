#ifndef PANDO_GPU_HOST_PAGE_CHECKSUMMER_H_
#define PANDO_GPU_HOST_PAGE_CHECKSUMMER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/kv_pool.h"
#include "gpu/page_checksummer.h"

namespace pando {

// Computes checksums of the pages of a pool in host memory. It maps the whole
// pool for reading.
class HostPageChecksummer final : public PageChecksummer {
 public:
  static absl::StatusOr<std::unique_ptr<HostPageChecksummer>> Create(
      const KvPool& pool);
  ~HostPageChecksummer() override;

  absl::StatusOr<std::vector<uint64_t>> Checksum(
      std::span<const uint32_t> pages) override;

 private:
  explicit HostPageChecksummer(const KvLayout& layout) : layout_(layout) {}

  const KvLayout layout_;
  std::vector<std::span<std::byte>> shards_;
};

}  // namespace pando

#endif  // PANDO_GPU_HOST_PAGE_CHECKSUMMER_H_
