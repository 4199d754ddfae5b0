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

// A connection to pandod, for which it copies one device's shards. Owned by
// main; for one thread. What returns UNAVAILABLE may succeed later.
class PandodLink {
 public:
  // UNAVAILABLE: there is no pandod, or it does not want this mover now.
  static absl::StatusOr<PandodLink> Connect(const std::string& path,
                                            const std::string& device);

  // Copies until pandod is gone (UNAVAILABLE), or `stop` can be read and all
  // that was begun is done (OK).
  // Another error: nothing can be copied, or it is not known whether it was.
  absl::Status Serve(const UniqueFd& stop);

 private:
  PandodLink(UniqueFd socket, std::string device)
      : socket_(std::move(socket)), device_(std::move(device)) {}

  // The work that pandod has given.
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
