#ifndef PANDO_MOVER_PAGE_COPIER_H_
#define PANDO_MOVER_PAGE_COPIER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "mover/messages.h"

namespace pando::mover {

// Copies between pages of a device's shards and blocks of the transfer memory.
// Owned by PandodLink::Serve; for one thread.
class PageCopier {
 public:
  virtual ~PageCopier() = default;

  // Begins the copies of an order. Returns INVALID_ARGUMENT if the order leads
  // out of the memory; then nothing is copied. After another error a part of
  // the copies may be under way.
  absl::Status Begin(const Order& order);
  // Marks the end of the copies of an order. Must be called after Begin,
  // whatever that returned.
  virtual absl::Status MarkEnd(const Order& order) = 0;
  // Returns the ids of the orders that have ended since the last call: nothing
  // of them is under way any more. After an error, here or of MarkEnd, any
  // order may have failed, and the copier must not be used any more.
  virtual absl::StatusOr<std::vector<uint64_t>> TakeEnded() = 0;

 protected:
  explicit PageCopier(const Welcome& welcome) : welcome_(welcome) {}

  // Begins to copy one shard's part of a page. `shard` is its index among the
  // shards of this device; `part_begin` is the offset of its part in the
  // transfer memory.
  virtual absl::Status BeginPart(const Order& order, uint32_t shard,
                                 uint64_t part_begin) = 0;

  const Welcome& welcome() const { return welcome_; }
  const PageGeometry& geometry() const { return welcome_.geometry; }

 private:
  const Welcome welcome_;
};

// Makes the copier for `device`. `descriptors` are those of the welcome.
absl::StatusOr<std::unique_ptr<PageCopier>> MakePageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors);

}  // namespace pando::mover

#endif  // PANDO_MOVER_PAGE_COPIER_H_
