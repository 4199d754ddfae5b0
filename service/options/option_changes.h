#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/options/options.h"

namespace pando {

// How the options of a running server change when they are reloaded.
struct OptionChanges {
  // The options that are in effect from now on.
  Options options;
  // The options that change while it runs: "log-level (info, now debug)".
  std::vector<std::string> live;
  // The options that differ but need a restart: "layers (32, given 40)".
  std::vector<std::string> need_restart;
};

// Compares the options of a running server with newly given ones; both are
// complete. Returns an error if the changed options contradict options that
// need a restart; then no option must change.
absl::StatusOr<OptionChanges> ChangesTo(const Options& running,
                                        const Options& given);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_
