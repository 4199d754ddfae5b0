#ifndef PANDO_TOOLS_PANDOCTL_STYLE_H_
#define PANDO_TOOLS_PANDOCTL_STYLE_H_

#include <string>

namespace pando::ctl {

enum class Style { kHeading, kGood, kBad };

// Returns the text in that style if the descriptor is a terminal with colours
// and NO_COLOR is not set; otherwise the text as it is.
std::string Styled(Style style, const std::string& text, int descriptor = 1);

// Returns the first `columns` characters of a line that may have styles, which
// do not outlast it.
std::string CutLine(const std::string& line, size_t columns);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_STYLE_H_
