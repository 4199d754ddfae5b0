#ifndef PANDO_TESTS_CORE_PROMPTS_H_
#define PANDO_TESTS_CORE_PROMPTS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace pando {

// Spells a prompt with one letter for each page: "abca" is four pages, of which
// the first and the last are equal. Different letters give different pages, but
// the pages of 'a' and 'b', of 'c' and 'd' and so on differ only in their last
// token. The prompt ends with `tail` further tokens, too few for a page.
inline std::vector<Token> SpellTokens(std::string_view letters,
                                      uint32_t page_tokens, uint32_t tail = 0) {
  std::vector<Token> tokens;
  tokens.reserve(letters.size() * page_tokens + tail);
  for (const char letter : letters) {
    const auto number = static_cast<Token>(letter - 'a');
    tokens.insert(tokens.end(), page_tokens - 1, number / 2);
    tokens.push_back(number);
  }
  tokens.insert(tokens.end(), tail, 7);
  return tokens;
}

}  // namespace pando

#endif  // PANDO_TESTS_CORE_PROMPTS_H_
