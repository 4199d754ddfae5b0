#ifndef PANDO_BASE_VISIBLE_TEXT_H_
#define PANDO_BASE_VISIBLE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace pando {

// Makes a name from an untrusted source safe to print on a terminal or a page.
// Returns `text` with an escape such as \u001b for each character that a
// terminal obeys or that changes how a reader sees the others (control
// characters C0 and C1, separators of lines, marks and overrides of the
// direction of writing, the byte order mark), and one such as \xff for each
// byte that is not UTF-8. Characters in `kept` stay as they are.
std::string VisibleText(std::string_view text, std::string_view kept = "");

// The number of bytes of the first character; 1 if it is not UTF-8. REQUIRES:
// text is not empty.
size_t FirstCharacterSize(std::string_view text);

}  // namespace pando

#endif  // PANDO_BASE_VISIBLE_TEXT_H_
