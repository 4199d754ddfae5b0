#ifndef PANDO_TOOLS_PANDOCTL_EXIT_CODE_H_
#define PANDO_TOOLS_PANDOCTL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace pando::ctl {

// The exit codes of pandoctl, for scripts.
enum ExitCode {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kUnreachable = 3,
  kUnhealthy = 4,
};

// Verbs and the calls of Server fail with the status codes below for these
// reasons; every other code is a plain failure.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kInvalidArgument:
      return kUsage;
    case absl::StatusCode::kUnavailable:
      return kUnreachable;
    case absl::StatusCode::kFailedPrecondition:
      return kUnhealthy;
    default:
      return kFailed;
  }
}

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_EXIT_CODE_H_
