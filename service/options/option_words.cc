#include "service/options/option_words.h"

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace pando {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"kv-heads", "heads"},        {"num-heads", "heads"},
    {"num-kv-heads", "heads"},    {"num-key-value-heads", "heads"},
    {"num-layers", "layers"},     {"num-hidden-layers", "layers"},
    {"head-dim", "head-size"},    {"block-size", "page-tokens"},
    {"page-size", "page-tokens"}, {"num-pages", "pool-pages"},
    {"pool-size", "pool-bytes"},  {"kv-cache-dtype", "dtype"},
    {"tp-size", "pool-shards"},   {"tensor-parallel-size", "pool-shards"},
};

}  // namespace

std::string OptionFor(const std::string& word) {
  const std::string wanted =
      absl::AsciiStrToLower(absl::StrReplaceAll(word, {{"_", "-"}}));
  for (const auto& [other, option] : kWords) {
    if (other == wanted) return std::string(option);
  }
  return "";
}

}  // namespace pando
