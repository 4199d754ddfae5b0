#include "keeper/descriptor_store.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pando::keeper {
namespace {

constexpr size_t kLongestName = 255;

// Returns the value that a line of the message assigns to `variable`, or "".
std::string_view ValueOf(std::string_view variable, std::string_view message) {
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(message.size(), line.size() + 1));
    if (line.size() > variable.size() && line.starts_with(variable) &&
        line[variable.size()] == '=') {
      return line.substr(variable.size() + 1);
    }
  }
  return {};
}

// Returns whether a text may be a name. It must not have a colon, which
// separates names when they are handed down.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(
             name, [](char c) { return c > ' ' && c < 127 && c != ':'; });
}

}  // namespace

bool DescriptorStore::Take(std::string_view message,
                           std::vector<UniqueFd> descriptors) {
  const std::string_view name = ValueOf("FDNAME", message);
  const bool removes = ValueOf("FDSTOREREMOVE", message) == "1";
  if (!removes && ValueOf("FDSTORE", message) != "1") return false;
  if (!IsName(name)) return true;
  if (removes) {
    std::erase_if(kept_, [&](const Kept& kept) { return kept.name == name; });
    return true;
  }
  for (UniqueFd& fd : descriptors) {
    if (kept_.size() == kMost) {
      std::fprintf(stderr,
                   "pando-keeper: '%s' is not kept: there are %zu descriptors "
                   "already\n",
                   std::string(name).c_str(), kMost);
      break;
    }
    kept_.push_back({std::string(name), std::move(fd)});
  }
  return true;
}

}  // namespace pando::keeper
