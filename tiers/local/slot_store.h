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

// Slots for blocks of one size, each with a record that describes its block.
// Owned by LocalTier. Thread-safe, as long as no thread writes a slot that
// another one reads or writes.
class SlotStore {
 public:
  struct Record {
    PageHash hash = {};
    uint64_t checksum = 0;
    // The number of the page in its prompt: 1 for the first page.
    uint32_t ordinal = 0;
    // The digest of the page's namespace.
    uint64_t ns_digest = 0;
    // The configuration of the model that computed the page: see
    // LocalTier::SetModel.
    uint32_t model = 0;
  };
  // A block that an earlier process has stored.
  struct Found {
    uint32_t slot;
    Record record;
  };

  // Buffers begin at multiples of this.
  static constexpr uint64_t kAlignment = 4096;

  virtual ~SlotStore() = default;

  // The number of slots.
  virtual uint32_t slots() const = 0;
  // The size of a buffer for one block. It is 0 if blocks are used in place, in
  // their slots.
  virtual uint64_t buffer_bytes() const = 0;
  // Returns the blocks that earlier processes have stored. Must be called at
  // most once.
  virtual std::vector<Found> TakeFound() = 0;

  // Returns where in memory the block of a slot is built before a write, and
  // used after a read: `buffer`, or the slot itself.
  virtual std::byte* BlockFor(uint32_t slot, std::byte* buffer) const = 0;
  // Returns the part of a file from which the block of a slot is read, or to
  // which it is written; without bytes if the slot is in memory. Before a
  // write, the slot's old record must be erased. After it, WriteRecord makes
  // the block findable after a restart, if blocks outlive the process.
  virtual FilePart PartOf(uint32_t slot) const = 0;
  // These write and erase the record of a slot.
  virtual absl::Status WriteRecord(uint32_t slot,
                                   const Record& record) const = 0;
  virtual absl::Status EraseRecord(uint32_t slot) const = 0;
  // Makes all records that were written or erased before survive a power loss.
  virtual absl::Status Sync() const = 0;

  // Makes a queue with which a thread moves the parts that PartOf returns.
  virtual std::unique_ptr<IoQueue> MakeQueue() const = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_SLOT_STORE_H_
