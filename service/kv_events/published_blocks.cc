#include "service/kv_events/published_blocks.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace pando {
namespace {

// How many tokens one StoredBlocks holds; a single block may be larger.
constexpr size_t kMaxTokens = 8'192;

BlockId IdOf(const PageHash& hash) {
  BlockId id = 0;
  for (size_t i = 0; i < sizeof(id); ++i) id = id << 8 | hash[i];
  return id;
}

std::optional<std::string_view> View(const std::optional<std::string>& text) {
  return text;
}

}  // namespace

bool PublishedBlocks::Includes(const NamespaceKey& ns) const {
  if (ns.extra_key.has_value() && ns.extra_key->empty()) return false;
  if (ns.bigram && !config_.bigram) return false;
  if (!ns.cache_salt.has_value()) return true;
  return config_.salted && !ns.cache_salt->empty();
}

void PublishedBlocks::ForEachStored(
    const CachedPages& pages, std::span<const PageId> run,
    const std::function<void(const StoredBlocks&)>& visit) {
  const NamespaceKey& ns = pages.ns(run.front());
  if (!Includes(ns)) return;
  StoredBlocks blocks{
      .ids = {},
      .parent = {},
      .tokens = {},
      .block_tokens = config_.pages_per_block * pages.page_tokens(),
      .are_pairs = ns.bigram,
      .lora_name = View(ns.extra_key),
      .cache_salt = View(ns.cache_salt)};
  const auto flush = [&] {
    if (ids_.empty()) return;
    blocks.ids = ids_;
    blocks.tokens = tokens_;
    visit(blocks);
    ids_.clear();
    tokens_.clear();
  };
  ids_.clear();
  tokens_.clear();
  for (const PageId page : run) {
    if (!EndsBlock(pages, page)) continue;
    if (tokens_.size() + blocks.block_tokens > kMaxTokens) flush();
    // The token that the last pair of the block before ends with.
    if (ns.bigram && !ids_.empty()) tokens_.pop_back();
    const PageId before = AppendTokens(pages, page);
    if (ids_.empty()) {
      blocks.parent.reset();
      if (before != kPaddingPage) blocks.parent = IdOf(pages.hash(before));
    }
    ids_.push_back(IdOf(pages.hash(page)));
  }
  flush();
}

std::span<const BlockId> PublishedBlocks::Removed(
    const CachedPages& pages, std::span<const PageId> removed) {
  ids_.clear();
  for (const PageId page : removed) {
    if (!EndsBlock(pages, page) || !Includes(pages.ns(page))) continue;
    ids_.push_back(IdOf(pages.hash(page)));
  }
  return ids_;
}

PageId PublishedBlocks::AppendTokens(const CachedPages& pages, PageId last) {
  block_.clear();
  PageId before = last;
  for (uint32_t i = 0; i < config_.pages_per_block; ++i) {
    block_.push_back(before);
    before = pages.parent(before);
  }
  std::reverse(block_.begin(), block_.end());
  for (const PageId page : block_) {
    const std::span<const Token> tokens =
        pages.tokens(page).first(pages.page_tokens());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  if (pages.ns(last).bigram) tokens_.push_back(pages.tokens(last).back());
  return before;
}

}  // namespace pando
