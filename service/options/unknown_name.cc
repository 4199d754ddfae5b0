#include "service/options/unknown_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

// Insertions, deletions and replacements of one character that lead from a to
// b.
size_t EditDistance(const std::string& a, const std::string& b) {
  // row[j]: the distance from the part of a seen so far to the first j of b.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string UnknownName(const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known) {
  const auto nearest =
      std::min_element(known.begin(), known.end(),
                       [&name](const std::string& a, const std::string& b) {
                         return EditDistance(name, a) < EditDistance(name, b);
                       });
  return absl::StrFormat("unknown %s '%s'; did you mean '%s'?", kind, name,
                         *nearest);
}

}  // namespace pando
