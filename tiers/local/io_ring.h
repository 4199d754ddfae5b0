#ifndef PANDO_TIERS_LOCAL_IO_RING_H_
#define PANDO_TIERS_LOCAL_IO_RING_H_

#include <liburing.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tiers/local/io_queue.h"

namespace pando {

// A queue whose blocks the kernel moves while the thread does something else
// (io_uring).
class IoRing final : public IoQueue {
 public:
  // Fails if the kernel has no io_uring, or the sandbox forbids it.
  static absl::StatusOr<std::unique_ptr<IoRing>> Make(size_t depth);
  ~IoRing() override;
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  size_t depth() const override { return transfers_.size(); }
  void Begin(size_t tag, const Transfer& transfer) override;
  Done Await() override;

 private:
  IoRing(size_t depth, const io_uring& ring) : transfers_(depth), ring_(ring) {}

  std::vector<Transfer> transfers_;  // by tag
  io_uring ring_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_IO_RING_H_
