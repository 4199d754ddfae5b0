#include "tiers/shared/store_uri.h"

#include "absl/status/status.h"
#include "absl/strings/str_split.h"

namespace pando {
namespace {

constexpr absl::string_view kAfterScheme = "://";

}  // namespace

absl::StatusOr<StoreUri> StoreUri::Parse(absl::string_view text) {
  const size_t scheme = text.find(kAfterScheme);
  if (scheme == text.npos) {
    return absl::InvalidArgumentError(
        "an address without a scheme; must be "
        "SCHEME://PLACE?NAME=VALUE&NAME=VALUE");
  }
  const size_t place = scheme + kAfterScheme.size();
  const size_t end = text.find('?', place);
  StoreUri uri{.scheme = std::string(text.substr(0, scheme)),
               .place = std::string(text.substr(place, end - place)),
               .options = {}};
  if (end == text.npos) return uri;
  for (const absl::string_view option :
       absl::StrSplit(text.substr(end + 1), '&')) {
    const size_t name = option.find('=');
    if (name == option.npos) {
      return absl::InvalidArgumentError(
          "an option without a value; must be NAME=VALUE");
    }
    uri.options.emplace_back(std::string(option.substr(0, name)),
                             std::string(option.substr(name + 1)));
  }
  return uri;
}

}  // namespace pando
