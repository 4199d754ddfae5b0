#ifndef PANDO_TIERS_LOCAL_SLOT_STORE_H_
#define PANDO_TIERS_LOCAL_SLOT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/nodes/page_hash.h"
#include "tiers/local/io_queue.h"

namespace pando {

// Slots for blocks of one size, each with a record of the block that is in it.
// Owned by LocalTier. Thread-safe, as long as no thread writes a slot that
// another one reads or writes.
class SlotStore {
 public:
  struct Record {
    PageHash hash = {};
    uint64_t checksum = 0;
    // How many pages of the prompt end with this one.
    uint32_t ordinal = 0;
    // The digest of the page's namespace.
    uint64_t ns_digest = 0;
    // Says which configuration of the model computed it: LocalTier::SetModel.
    uint32_t model = 0;
  };
  // A block that was there at the start.
  struct Found {
    uint32_t slot;
    Record record;
  };

  // Buffers begin at multiples of this.
  static constexpr uint64_t kAlignment = 4096;

  virtual ~SlotStore() = default;

  virtual uint32_t slots() const = 0;
  // The size of a buffer for one block; 0: blocks are used where they are.
  virtual uint64_t buffer_bytes() const = 0;
  virtual std::vector<Found> TakeFound() = 0;

  // Where in memory the slot's block is made, and used: in `buffer`, or in the
  // slot.
  virtual std::byte* BlockFor(uint32_t slot, std::byte* buffer) const = 0;
  // Where the slot's block is to be read from, or written to, once the record
  // of what was there is erased. The block is found after a restart, where
  // blocks outlive the process, once its record is written, too.
  virtual FilePart PartOf(uint32_t slot) const = 0;
  virtual absl::Status WriteRecord(uint32_t slot,
                                   const Record& record) const = 0;
  virtual absl::Status EraseRecord(uint32_t slot) const = 0;
  // Records that were written or erased before this survive a power loss.
  virtual absl::Status Sync() const = 0;

  // How a thread moves what PartOf says.
  virtual std::unique_ptr<IoQueue> MakeQueue() const = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_SLOT_STORE_H_
