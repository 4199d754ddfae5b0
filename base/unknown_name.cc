#include "base/unknown_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

// The edit distance from a to b: how many insertions, deletions and
// replacements of one character, and exchanges of two neighbours, it takes.
size_t EditDistance(const std::string& a, const std::string& b) {
  // row[j]: the distance from the part of a seen so far to the first j of b.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  std::vector<size_t> before = row;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<size_t> before_that = std::exchange(before, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = before[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, before[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before_that[j - 1] + 1);
      }
    }
  }
  return row.back();
}

// The number of first characters that all names share, such as "--".
size_t CommonPrefix(const std::vector<std::string>& names) {
  if (names.empty()) return 0;
  size_t length = names.front().size();
  for (const std::string& name : names) {
    const auto [end, _] =
        std::mismatch(name.begin(), name.end(), names.front().begin(),
                      names.front().begin() + static_cast<ptrdiff_t>(length));
    length = static_cast<size_t>(end - name.begin());
  }
  return length;
}

}  // namespace

std::string UnknownName(const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known,
                        const std::string& other_word) {
  // A long text, for example from the environment, is not shown whole.
  constexpr size_t kMaxName = 128;
  if (name.size() > kMaxName) {
    return absl::StrFormat("unknown %s '%s...' of %u bytes; see --help", kind,
                           name.substr(0, kMaxName), name.size());
  }
  const size_t own = name.size() - std::min(name.size(), CommonPrefix(known));
  // If more than a third of a name differs, it is another name, not a mistyped
  // one.
  size_t least = own / 3 + 1;
  std::string nearest = other_word;
  if (!nearest.empty()) least = 0;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return absl::StrFormat(
      "unknown %s '%s'; %s", kind, name,
      nearest.empty() ? "see --help" : "did you mean '" + nearest + "'?");
}

}  // namespace pando
