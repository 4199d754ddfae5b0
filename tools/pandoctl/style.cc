#include "tools/pandoctl/style.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/visible_text.h"

namespace pando::ctl {
namespace {

constexpr std::string_view kNormal = "\x1b[0m";

const char* CodeOf(Style style) {
  switch (style) {
    case Style::kHeading:
      return "\x1b[1m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kBad:
      return "\x1b[1;31m";
  }
  return "";
}

bool HasColours(int descriptor) {
  const char* const no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(descriptor) == 1;
}

// Returns how many bytes the style that `text` begins with takes; 0 if it
// begins with none.
size_t StyleSize(std::string_view text) {
  if (text.substr(0, 2) != "\x1b[") return 0;
  const size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

}  // namespace

std::string Styled(Style style, const std::string& text, int descriptor) {
  if (!HasColours(descriptor)) return text;
  return absl::StrCat(CodeOf(style), text, std::string(kNormal));
}

std::string CutLine(const std::string& line, size_t columns) {
  std::string cut;
  bool has_style = false;
  for (std::string_view rest = line; !rest.empty();) {
    const size_t style = StyleSize(rest);
    if (style == 0 && columns == 0) {
      return has_style ? absl::StrCat(cut, std::string(kNormal)) : cut;
    }
    const size_t size = style > 0 ? style : FirstCharacterSize(rest);
    if (style > 0) {
      has_style = true;
    } else {
      --columns;
    }
    cut += rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return cut;
}

}  // namespace pando::ctl
