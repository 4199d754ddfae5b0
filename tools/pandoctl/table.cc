#include "tools/pandoctl/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/pandoctl/style.h"

namespace pando::ctl {
namespace {

constexpr const char* kGap = "  ";

struct Column {
  int width = 0;
  bool is_number = true;
};

}  // namespace

std::string Table::Text() const {
  std::vector<Column> columns(rows_.front().size());
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < columns.size(); ++i) {
      Column& column = columns[i];
      column.width = std::max(column.width, static_cast<int>(row[i].size()));
      if (&row == &rows_.front()) continue;
      column.is_number &= !row[i].empty() && absl::ascii_isdigit(row[i][0]);
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i) {
      const int width =
          columns[i].is_number ? columns[i].width : -columns[i].width;
      absl::StrAppendFormat(&line, "%s%*s", i == 0 ? "" : kGap, width, row[i]);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    const bool is_header = &row == &rows_.front();
    absl::StrAppend(&text, is_header ? Styled(Style::kHeading, line) : line,
                    "\n");
  }
  return text;
}

std::string NamedValues(
    const std::vector<std::pair<std::string, std::string>>& values) {
  size_t width = 0;
  for (const auto& [name, value] : values) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : values) {
    absl::StrAppendFormat(&text, "%-*s%s%s\n", static_cast<int>(width), name,
                          kGap, value);
  }
  return text;
}

}  // namespace pando::ctl
