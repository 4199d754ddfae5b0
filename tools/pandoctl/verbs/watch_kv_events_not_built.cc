#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

absl::Status WatchKvEvents(const Context&) {
  return absl::UnimplementedError(
      "--kv-events is given, but this pandoctl was built without ZeroMQ");
}

}  // namespace pando::ctl
