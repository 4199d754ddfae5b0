#ifndef PANDO_SERVICE_TIERS_DISK_STORE_H_
#define PANDO_SERVICE_TIERS_DISK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "service/events/page_hash.h"

namespace pando {

// Slots for blocks in one folder: segment files of fixed size, made in full at
// the start so that the disk cannot fill up later, and the file `index` with a
// record for each slot. Only the owner of the process may read them. Segments
// are read and written past the system's cache where the file system can.
//
// A record is written after its block and erased before it, and says what
// checksum the block must have. So after a kill at any time a slot has its
// block or none; what a crash of the machine tears has another checksum.
//
// Owned by DiskTier. Thread-safe, as long as nobody writes a slot that another
// thread reads or writes.
class DiskStore {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;    // of all files together
    uint64_t block_bytes = 0;  // of one block
    // Blocks of another digest are of another model or shape.
    uint64_t digest = 0;
  };
  struct Record {
    PageHash hash = {};
    uint64_t checksum = 0;
    // How many pages of the prompt end with this one.
    uint32_t ordinal = 0;
    // The digest of the page's namespace.
    uint64_t ns_digest = 0;
  };
  // A block that was there at the start.
  struct Found {
    uint32_t slot;
    Record record;
  };

  // Buffers, and the blocks in the segments, begin at multiples of this.
  static constexpr uint64_t kAlignment = 4096;

  // Makes the folder and its files where they do not exist. Fails when another
  // process uses them, another user owns them, or there is no room.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(const Config& config);

  uint32_t slots() const { return slots_; }
  // The size of a buffer for one block: block_bytes, rounded up to kAlignment.
  uint64_t buffer_bytes() const { return slot_bytes_; }
  std::vector<Found> TakeFound() { return std::move(found_); }

  // REQUIRES: `block` is an aligned buffer.
  absl::Status Read(uint32_t slot, std::byte* block) const;
  // Erases the slot's record, then writes the block. The block is there after a
  // restart once the record is written, too.
  absl::Status WriteBlock(uint32_t slot, const std::byte* block) const;
  absl::Status WriteRecord(uint32_t slot, const Record& record) const;
  absl::Status EraseRecord(uint32_t slot) const;
  // Records that were written or erased before this survive a power loss.
  absl::Status Sync() const;

 private:
  DiskStore(UniqueFd index, uint32_t slots, uint64_t slot_bytes);

  absl::Status ReadIndex(const Config& config);
  absl::Status MakeSegments(const std::string& folder);
  std::pair<int, off_t> PlaceOf(uint32_t slot) const;

  const UniqueFd index_;  // locked
  const uint32_t slots_;
  const uint64_t slot_bytes_;
  const uint32_t slots_per_segment_;
  std::vector<UniqueFd> segments_;
  std::vector<Found> found_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_DISK_STORE_H_
