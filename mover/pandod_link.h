#ifndef PANDO_MOVER_PANDOD_LINK_H_
#define PANDO_MOVER_PANDOD_LINK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "mover/messages.h"
#include "mover/page_copier.h"

namespace pando::mover {

// A connection to pandod, for which it copies one device's shards. Owned by
// main; for one thread. What returns UNAVAILABLE may succeed later.
class PandodLink {
 public:
  // UNAVAILABLE: there is no pandod, or it does not want this mover now.
  static absl::StatusOr<PandodLink> Connect(const std::string& path,
                                            const std::string& device);

  // Copies until pandod is gone (UNAVAILABLE), or `stop` can be read (OK).
  // Another error: nothing can be copied, or it is not known whether it was.
  absl::Status Serve(const UniqueFd& stop);

 private:
  PandodLink(UniqueFd socket, std::string device)
      : socket_(std::move(socket)), device_(std::move(device)) {}

  // Waits until there is an order. False: it is time to stop.
  absl::StatusOr<bool> AwaitOrder(const UniqueFd& stop) const;
  // One order at least, as there is one.
  absl::StatusOr<std::vector<Order>> TakeOrders() const;

  UniqueFd socket_;
  std::string device_;
  Welcome welcome_;
  std::vector<UniqueFd> descriptors_;
};

}  // namespace pando::mover

#endif  // PANDO_MOVER_PANDOD_LINK_H_
