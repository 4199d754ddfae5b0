#ifndef PANDO_TIERS_LOCAL_IO_QUEUE_H_
#define PANDO_TIERS_LOCAL_IO_QUEUE_H_

#include <sys/types.h>

#include <cstddef>

#include "absl/status/status.h"

namespace pando {

// Where a block lies in a file. With no bytes there is nothing to move: the
// block lies in memory.
struct FilePart {
  int file = -1;
  off_t offset = 0;
  size_t bytes = 0;
};

// A block that is to be moved between a file and memory.
struct Transfer {
  FilePart part;
  std::byte* memory;
  bool is_write;
};

// Waits until the block has been moved.
absl::Status Move(const Transfer& transfer);

// Moves blocks between files and memory, up to depth() of them at the same
// time. Owned by IoThreads; each thread there uses a queue of its own. Not
// thread-safe.
class IoQueue {
 public:
  struct Done {
    size_t tag;
    absl::Status status;
  };

  virtual ~IoQueue() = default;

  // Returns how many blocks may be moved at the same time.
  virtual size_t depth() const = 0;
  // Begins to move a block. `tag` names it until Await returns it. The memory
  // of the block must stay valid and, for a write, unchanged until then.
  // REQUIRES: `tag` is below depth(), and no other block that is being moved
  // has it.
  virtual void Begin(size_t tag, const Transfer& transfer) = 0;
  // Waits until one of the blocks has been moved, or has failed, and returns
  // its tag. REQUIRES: one has begun.
  virtual Done Await() = 0;
};

// Moves one block at a time, with plain calls, while Await waits for it.
class PlainQueue final : public IoQueue {
 public:
  size_t depth() const override { return 1; }
  void Begin(size_t, const Transfer& transfer) override {
    transfer_ = transfer;
  }
  Done Await() override { return {0, Move(transfer_)}; }

 private:
  Transfer transfer_ = {};
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_IO_QUEUE_H_
