#ifndef PANDO_TOOLS_PANDOCTL_TABLE_H_
#define PANDO_TOOLS_PANDOCTL_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace pando::ctl {

// Text in columns; those whose cells all begin with a digit are aligned to the
// right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  // REQUIRES: as many cells as the header has.
  void Add(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
  }
  // Lines that end in newlines, the header's first.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header's first
};

// Returns a line for each name and its value.
std::string NamedValues(
    const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_TABLE_H_
