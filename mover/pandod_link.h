#ifndef PANDO_MOVER_PANDOD_LINK_H_
#define PANDO_MOVER_PANDOD_LINK_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "mover/messages.h"
#include "mover/page_copier.h"

namespace pando::mover {

// A connection to pandod, for which this process copies pages of one device's
// shards. Owned by main; for one thread. A call that returns UNAVAILABLE may
// succeed later, on a new connection.
class PandodLink {
 public:
  // Connects to the socket at `path` and says hello for `device`. Returns
  // UNAVAILABLE if there is no pandod or it refuses this mover now, and
  // FAILED_PRECONDITION if it is of another version.
  static absl::StatusOr<PandodLink> Connect(const std::string& path,
                                            const std::string& device);

  // Copies until pandod is gone, and returns UNAVAILABLE; or until `stop` can
  // be read and the copies that were begun are done, and returns OK. After
  // another error the copies cannot be made, or it is not known whether they
  // were; this process must end then.
  absl::Status Serve(const UniqueFd& stop);

 private:
  PandodLink(UniqueFd socket, std::string device)
      : socket_(std::move(socket)), device_(std::move(device)) {}

  // Says what AwaitWork has found.
  struct Work {
    bool is_order = false;
    bool is_to_stop = false;
  };

  // Waits until there is something to do, or until copies that are under way
  // may have ended.
  absl::StatusOr<Work> AwaitWork(const UniqueFd& stop) const;
  absl::Status BeginOrder(PageCopier& copier);
  // Answers the orders that have ended.
  absl::Status ReplyToEnded(PageCopier& copier);

  UniqueFd socket_;
  std::string device_;
  Welcome welcome_;
  std::vector<UniqueFd> descriptors_;
  // Orders that have not ended, and those of them that have failed.
  size_t under_way_ = 0;
  std::set<uint64_t> failed_;
};

}  // namespace pando::mover

#endif  // PANDO_MOVER_PANDOD_LINK_H_
