#ifndef PANDO_TOOLS_PANDOCTL_TOKENS_H_
#define PANDO_TOOLS_PANDOCTL_TOKENS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pando/v1/types.pb.h"
#include "tools/pandoctl/options.h"

namespace pando::ctl {

// The prompt that the options name: on the command line, in a file, or on
// stdin. No error shows a token.
absl::StatusOr<std::vector<uint32_t>> PromptOf(const Options& options);
// Reads a whole file.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// The prompt's namespace, with the salt read from its file.
absl::StatusOr<v1::Namespace> NamespaceOf(const Options& options);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_TOKENS_H_
