#include "events/routers/block_runs.h"

#include <string>
#include <string_view>

#include "core/requests/namespace.h"

namespace pando {
namespace {

// The most tokens of one StoredBlocks; a single block may have more.
constexpr size_t kMaxTokens = 8'192;

std::optional<std::string_view> View(const std::optional<std::string>& text) {
  return text;
}

}  // namespace

BlockId IdOf(const PageHash& hash) {
  BlockId id = 0;
  for (size_t i = 0; i < sizeof(id); ++i) id = id << 8 | hash[i];
  return id;
}

void BlockRuns::Add(BlockId id, std::optional<BlockId> parent,
                    const NamespaceKey& ns,
                    std::span<const std::span<const Token>> pages,
                    const Visit& visit) {
  const size_t page_tokens = pages.front().size() - LookaheadOf(ns);
  block_tokens_ = static_cast<uint32_t>(pages.size() * page_tokens);
  if (!ids_.empty() &&
      (parent != ids_.back() || tokens_.size() + block_tokens_ > kMaxTokens)) {
    Flush(visit);
  }
  if (ids_.empty()) {
    parent_ = parent;
    ns_ = &ns;
  } else if (ns.bigram) {
    // This removes the last token, which ends the last pair of the block
    // before: the next block begins with it.
    tokens_.pop_back();
  }
  ids_.push_back(id);
  for (const std::span<const Token> page : pages) {
    const auto own = page.first(page_tokens);
    tokens_.insert(tokens_.end(), own.begin(), own.end());
  }
  if (ns.bigram) tokens_.push_back(pages.back().back());
}

void BlockRuns::Flush(const Visit& visit) {
  if (ids_.empty()) return;
  visit({.medium = medium_,
         .ids = ids_,
         .parent = parent_,
         .tokens = tokens_,
         .block_tokens = block_tokens_,
         .are_pairs = ns_->bigram,
         .lora_name = View(ns_->extra_key),
         .cache_salt = View(ns_->cache_salt)});
  ids_.clear();
  tokens_.clear();
}

}  // namespace pando
