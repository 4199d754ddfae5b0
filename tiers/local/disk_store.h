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

// Slots in one folder. Segment files of fixed size hold the blocks; they get
// all their room at the start, so that the disk cannot fill up later. The file
// `index` has a record for each slot. Only the user of the process may read the
// files. Segments are read and written past the system's cache where the file
// system can.
//
// A record has the checksum of its block. It is written after the block, and
// erased before the block is overwritten. So after a kill at any time, a slot
// has a whole block or no record; a block that a crash of the machine has torn
// has another checksum.
class DiskStore final : public SlotStore {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;    // of all files together
    uint64_t block_bytes = 0;  // of one block
    // Names the model and the shape of the blocks. Open empties the tier if it
    // was made with another digest or another block_bytes.
    uint64_t digest = 0;
  };

  // Returns an error if Open would not find the folder, or a place to make it,
  // or enough room. Changes nothing.
  static absl::Status Check(const Config& config);
  // Makes the folder and its files if they do not exist. Fails if another
  // process uses them, another user owns them, or there is no room.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(const Config& config);

  uint32_t slots() const override { return slots_; }
  // A multiple of kAlignment, as blocks begin at such multiples in the
  // segments.
  uint64_t buffer_bytes() const override { return slot_bytes_; }
  std::vector<Found> TakeFound() override { return std::move(found_); }

  std::byte* BlockFor(uint32_t, std::byte* buffer) const override {
    return buffer;
  }
  FilePart PartOf(uint32_t slot) const override;
  absl::Status WriteRecord(uint32_t slot, const Record& record) const override;
  absl::Status EraseRecord(uint32_t slot) const override;
  absl::Status Sync() const override;
  // Returns an IoRing, or a PlainQueue where the system has no rings.
  std::unique_ptr<IoQueue> MakeQueue() const override;

 private:
  DiskStore(UniqueFd index, uint32_t slots, uint64_t slot_bytes);

  absl::Status ReadIndex(const Config& config);
  absl::Status MakeSegments(const std::string& folder);

  const UniqueFd index_;  // holds the lock on the folder's files
  const uint32_t slots_;
  const uint64_t slot_bytes_;
  const uint32_t slots_per_segment_;
  std::vector<UniqueFd> segments_;
  std::vector<Found> found_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_DISK_STORE_H_
