#ifndef PANDO_TIERS_LOCAL_DISK_STORE_H_
#define PANDO_TIERS_LOCAL_DISK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "tiers/local/slot_store.h"

namespace pando {

// Slots in one folder: segment files of fixed size, made in full at the start
// so that the disk cannot fill up later, and the file `index` with a record for
// each slot. Only the owner of the process may read them. Segments are read and
// written past the system's cache where the file system can.
//
// A record is written after its block and erased before it, and says what
// checksum the block must have. So after a kill at any time a slot has its
// block or none; what a crash of the machine tears has another checksum.
class DiskStore final : public SlotStore {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;    // of all files together
    uint64_t block_bytes = 0;  // of one block
    // Blocks of another digest are of another model or shape.
    uint64_t digest = 0;
  };

  // Whether Open would find its folder, or the place to make it, and room.
  // Changes nothing.
  static absl::Status Check(const Config& config);
  // Makes the folder and its files where they do not exist. Fails when another
  // process uses them, another user owns them, or there is no room.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(const Config& config);

  uint32_t slots() const override { return slots_; }
  // The blocks in the segments begin at multiples of kAlignment, too.
  uint64_t buffer_bytes() const override { return slot_bytes_; }
  std::vector<Found> TakeFound() override { return std::move(found_); }

  std::byte* BlockFor(uint32_t, std::byte* buffer) const override {
    return buffer;
  }
  FilePart PartOf(uint32_t slot) const override;
  absl::Status WriteRecord(uint32_t slot, const Record& record) const override;
  absl::Status EraseRecord(uint32_t slot) const override;
  absl::Status Sync() const override;
  // A ring, or plain calls where there can be none.
  std::unique_ptr<IoQueue> MakeQueue() const override;

 private:
  DiskStore(UniqueFd index, uint32_t slots, uint64_t slot_bytes);

  absl::Status ReadIndex(const Config& config);
  absl::Status MakeSegments(const std::string& folder);

  const UniqueFd index_;  // locked
  const uint32_t slots_;
  const uint64_t slot_bytes_;
  const uint32_t slots_per_segment_;
  std::vector<UniqueFd> segments_;
  std::vector<Found> found_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_DISK_STORE_H_
