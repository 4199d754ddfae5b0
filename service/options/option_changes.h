#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/options/options.h"

namespace pando {

// What becomes of a running server's options when others are given.
struct OptionChanges {
  // The running ones, but for those that change live.
  Options options;
  // Those: "log-level (info, now debug)".
  std::vector<std::string> live;
  // The others that differ: "layers (32, given 40)".
  std::vector<std::string> need_restart;
};

// Both are complete. An error: what was given does not fit to what needs a
// restart, so that nothing changes.
absl::StatusOr<OptionChanges> ChangesTo(const Options& running,
                                        const Options& given);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHANGES_H_
