#ifndef PANDO_TOOLS_PANDOCTL_VERBS_H_
#define PANDO_TOOLS_PANDOCTL_VERBS_H_

#include "absl/status/status.h"
#include "tools/pandoctl/options.h"
#include "tools/pandoctl/output.h"
#include "tools/pandoctl/server.h"

namespace pando::ctl {

// The things that a verb works with.
struct Context {
  Server& server;
  const Output& output;
  const Options& options;
};

// The verbs. A failure's code says what pandoctl ends with (exit_code.h).
absl::Status Status(const Context& context);
absl::Status Stat(const Context& context);
absl::Status Top(const Context& context);
absl::Status Tree(const Context& context);
absl::Status Match(const Context& context);
absl::Status Explain(const Context& context);
absl::Status Namespaces(const Context& context);
absl::Status Sessions(const Context& context);
absl::Status Locks(const Context& context);
absl::Status Quarantine(const Context& context);
absl::Status Kinds(const Context& context);
absl::Status ExplainBlock(const Context& context);
absl::Status Evict(const Context& context);
absl::Status Flush(const Context& context);
absl::Status Policy(const Context& context);
absl::Status Drain(const Context& context);
absl::Status Restart(const Context& context);
absl::Status Watch(const Context& context);
absl::Status WatchKvEvents(const Context& context);
absl::Status Fleet(const Context& context);
absl::Status FleetExplain(const Context& context);
absl::Status FleetPrefixes(const Context& context);
absl::Status Health(const Context& context);
absl::Status Replay(const Context& context);
absl::Status Bench(const Context& context);
absl::Status Version(const Context& context);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_VERBS_H_
