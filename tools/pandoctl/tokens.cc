#include "tools/pandoctl/tokens.h"

#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/visible_text.h"

namespace pando::ctl {
namespace {

// Names the word, unless it may be a token of a prompt, which is never printed.
absl::Status NoToken(absl::string_view word, size_t place) {
  const bool may_be_secret =
      absl::c_any_of(word, [](char c) { return absl::ascii_isdigit(c) != 0; });
  constexpr size_t kShown = 40;
  const std::string what =
      may_be_secret
          ? absl::StrCat("token ", place)
          : absl::StrCat("'", VisibleText(std::string(word.substr(0, kShown))),
                         "', in the place of token ", place, ",");
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is not a number from 0 to 4294967295"));
}

// Numbers between commas or white space; a JSON list is that, in brackets.
absl::StatusOr<std::vector<uint32_t>> ParseTokens(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<uint32_t> tokens;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(", \t\r\n"), absl::SkipEmpty())) {
    uint32_t token = 0;
    if (!absl::SimpleAtoi(word, &token)) {
      return NoToken(word, tokens.size() + 1);
    }
    tokens.push_back(token);
  }
  return tokens;
}

std::string ReadAll(std::istream& in) {
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  file.peek();  // finds out that it is a folder, where iterators would throw
  if (file.fail()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " cannot be read"));
  }
  return ReadAll(file);
}

absl::StatusOr<std::vector<uint32_t>> PromptOf(const Options& options) {
  if (!options.tokens.empty()) {
    return ParseTokens(absl::StrJoin(options.tokens, " "));
  }
  if (!options.tokens_file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.tokens_file));
    return ParseTokens(text);
  }
  if (isatty(STDIN_FILENO)) {
    return absl::InvalidArgumentError(
        "no tokens: give them as arguments, in --tokens-file, or on stdin");
  }
  return ParseTokens(ReadAll(std::cin));
}

absl::StatusOr<v1::Namespace> NamespaceOf(const Options& options) {
  v1::Namespace ns;
  if (options.extra_key.has_value()) ns.set_extra_key(*options.extra_key);
  ns.set_bigram(options.bigram);
  if (!options.cache_salt_file.empty()) {
    ASSIGN_OR_RETURN(std::string salt, ReadFile(options.cache_salt_file));
    // Editors end files with a newline.
    if (!salt.empty() && salt.back() == '\n') salt.pop_back();
    ns.set_cache_salt(std::move(salt));
  }
  return ns;
}

}  // namespace pando::ctl
