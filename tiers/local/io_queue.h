#ifndef PANDO_TIERS_LOCAL_IO_QUEUE_H_
#define PANDO_TIERS_LOCAL_IO_QUEUE_H_

#include <sys/types.h>

#include <cstddef>

#include "absl/status/status.h"

namespace pando {

// Where a block lies; of no bytes: in no file.
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

// Moves blocks, some of them at once. Each belongs to one thread of IoThreads;
// one thread uses it at a time.
class IoQueue {
 public:
  struct Done {
    size_t tag;
    absl::Status status;
  };

  virtual ~IoQueue() = default;

  // How many blocks may be on their way.
  virtual size_t depth() const = 0;
  // The tag is below the depth, and of no block that is on its way. The
  // block's memory stays what and where it is until it is done.
  virtual void Begin(size_t tag, const Transfer& transfer) = 0;
  // Waits for one of those that have begun.
  virtual Done Await() = 0;
};

// One block after the other, each while it is waited for.
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
