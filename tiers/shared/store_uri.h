#ifndef PANDO_TIERS_SHARED_STORE_URI_H_
#define PANDO_TIERS_SHARED_STORE_URI_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pando {

// The address of a shared store: SCHEME://PLACE, followed by
// ?NAME=VALUE&NAME=VALUE... if it has options. Values are taken literally,
// without escapes. Plain data.
struct StoreUri {
  // Parses an address. An error repeats nothing of `text`, because it may
  // contain a password.
  static absl::StatusOr<StoreUri> Parse(absl::string_view text);

  std::string scheme;
  std::string place;
  std::vector<std::pair<std::string, std::string>> options;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_URI_H_
