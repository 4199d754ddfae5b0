#ifndef PANDO_TIERS_SHARED_STORE_URI_H_
#define PANDO_TIERS_SHARED_STORE_URI_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pando {

// The name of a shared store: SCHEME://PLACE, then, if it has options,
// ?NAME=VALUE&NAME=VALUE... Values are taken as they are written. Plain data.
struct StoreUri {
  // An error repeats nothing of `text`, which may have a password.
  static absl::StatusOr<StoreUri> Parse(absl::string_view text);

  std::string scheme;
  std::string place;
  std::vector<std::pair<std::string, std::string>> options;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_STORE_URI_H_
