#ifndef PANDO_TIERS_LOCAL_HOST_STORE_H_
#define PANDO_TIERS_LOCAL_HOST_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tiers/local/slot_store.h"

namespace pando {

// Slots in host memory. They do not outlive this process, so the store keeps no
// records. If it allocates the memory itself (Make), a slot takes memory only
// once it is written, and is left out of core dumps.
class HostStore final : public SlotStore {
 public:
  // Returns how many of `max_bytes` bytes whole slots for blocks of
  // `block_bytes` take. Fails if the process may not use so much memory, or if
  // not even one block fits.
  static absl::StatusOr<uint64_t> BytesOf(uint64_t max_bytes,
                                          uint64_t block_bytes);
  // Allocates BytesOf() bytes of memory.
  static absl::StatusOr<std::unique_ptr<HostStore>> Make(uint64_t max_bytes,
                                                         uint64_t block_bytes);
  // Uses `memory`, which must have BytesOf() bytes and outlive the store.
  static std::unique_ptr<HostStore> MakeIn(std::span<std::byte> memory,
                                           uint64_t block_bytes);
  ~HostStore() override;
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  uint32_t slots() const override {
    return static_cast<uint32_t>(memory_.size() / slot_bytes_);
  }
  uint64_t buffer_bytes() const override { return 0; }
  std::vector<Found> TakeFound() override { return {}; }

  std::byte* BlockFor(uint32_t slot, std::byte*) const override {
    return memory_.data() + slot * slot_bytes_;
  }
  FilePart PartOf(uint32_t) const override { return {}; }
  absl::Status WriteRecord(uint32_t, const Record&) const override {
    return absl::OkStatus();
  }
  absl::Status EraseRecord(uint32_t) const override { return absl::OkStatus(); }
  absl::Status Sync() const override { return absl::OkStatus(); }
  std::unique_ptr<IoQueue> MakeQueue() const override {
    return std::make_unique<PlainQueue>();
  }

 private:
  HostStore(std::span<std::byte> memory, uint64_t block_bytes, bool owns);

  const std::span<std::byte> memory_;  // whole slots
  const uint64_t slot_bytes_;
  const bool owns_memory_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_HOST_STORE_H_
