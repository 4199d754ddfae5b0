#ifndef PANDO_TESTS_CORE_SHARED_PROMPTS_H_
#define PANDO_TESTS_CORE_SHARED_PROMPTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace pando {

inline constexpr uint32_t kSharedPromptPageTokens = 2;

// Returns the tokens of a numbered prompt. It shares its first pages with
// others, so that nodes split.
inline std::vector<Token> SharedPrompt(uint32_t number, uint32_t pages) {
  std::vector<Token> tokens;
  for (uint32_t page = 0; page < pages; ++page) {
    const uint32_t shared_by = page < 3 ? 8 : page < 6 ? 3 : 1;
    tokens.push_back(page);
    tokens.push_back(number / shared_by);
  }
  return tokens;
}

// Returns the value that a worker writes to the last of the first `pages` pages
// of the prompt. `ns` numbers the prompt's namespace.
inline uint64_t ContentOfPage(uint32_t number, uint32_t pages,
                              uint32_t ns = 0) {
  uint64_t hash = 14'695'981'039'346'656'037u + ns;
  for (Token token : SharedPrompt(number, pages)) {
    hash = (hash ^ token) * 1'099'511'628'211;
  }
  return hash;
}

}  // namespace pando

#endif  // PANDO_TESTS_CORE_SHARED_PROMPTS_H_
