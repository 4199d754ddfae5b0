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
// Owned by main; for one thread.
class PageCopier {
 public:
  virtual ~PageCopier() = default;

  // Begins what an order says; INVALID_ARGUMENT: it leads out of the memory,
  // and nothing is done. Another error: a part of it may be under way.
  absl::Status Begin(const Order& order);
  // To be called after Begin, whatever that said.
  virtual absl::Status MarkEnd(const Order& order) = 0;
  // The ids of the orders of which nothing is under way any more, each of them
  // once; they are told as they end. An error, here or of MarkEnd: any order
  // may have failed, and the copier is not to be used any more.
  virtual absl::StatusOr<std::vector<uint64_t>> TakeEnded() = 0;

 protected:
  explicit PageCopier(const Welcome& welcome) : welcome_(welcome) {}

  // Begins to copy one shard's part; `shard` counts those of this device.
  virtual absl::Status BeginPart(const Order& order, uint32_t shard,
                                 uint64_t part_begin) = 0;

  const Welcome& welcome() const { return welcome_; }
  const PageGeometry& geometry() const { return welcome_.geometry; }

 private:
  const Welcome welcome_;
};

// The descriptors are those of the welcome.
absl::StatusOr<std::unique_ptr<PageCopier>> MakePageCopier(
    const std::string& device, const Welcome& welcome,
    std::span<const UniqueFd> descriptors);

}  // namespace pando::mover

#endif  // PANDO_MOVER_PAGE_COPIER_H_
