#include "service/events/cached_pages.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "service/handlers/wire.h"

namespace pando {
namespace {

constexpr size_t kMaxBlocks = 1'000;
constexpr size_t kMaxEventBytes = size_t{256} << 10;

size_t MaxBlocks(uint32_t page_tokens) {
  const size_t block_bytes = sizeof(PageHash) + page_tokens * sizeof(Token);
  return std::clamp<size_t>(kMaxEventBytes / block_bytes, 1, kMaxBlocks);
}

// Calls `visit` with pieces of at most `size` elements.
template <typename T, typename F>
void ForEachPiece(std::span<const T> all, size_t size, F&& visit) {
  for (; !all.empty(); all = all.subspan(std::min(size, all.size()))) {
    visit(all.first(std::min(size, all.size())));
  }
}

}  // namespace

CachedPages::CachedPages(uint32_t capacity_pages, uint32_t page_tokens)
    : page_tokens_(page_tokens),
      max_blocks_(MaxBlocks(page_tokens)),
      pages_(capacity_pages),
      tokens_(size_t{capacity_pages} * (page_tokens + 1)) {}

void CachedPages::Apply(const RawEvent& event, const Emit& emit) {
  if (const auto* stored = std::get_if<PagesStored>(&event)) {
    Store(*stored);
    EmitStored(stored->pages(), emit);
  } else if (const auto* removed = std::get_if<PagesRemoved>(&event)) {
    EmitRemoved(*removed, emit);
  } else {
    for (Page& page : pages_) page.ns.reset();
    event_.Clear();
    event_.mutable_cleared();
    emit(event_);
  }
}

void CachedPages::Store(const PagesStored& stored) {
  const bool begins_prompt = stored.parent == kPaddingPage;
  CHECK(begins_prompt || At(stored.parent).ns != nullptr);
  const uint32_t compared_tokens = page_tokens_ + (stored.ns->bigram ? 1 : 0);
  PageId parent = stored.parent;
  PageHash hash = begins_prompt ? hasher_.Seed(*stored.ns) : At(parent).hash;
  const Token* tokens = stored.tokens(page_tokens_);
  for (const PageId page : stored.pages()) {
    hash = hasher_.Next(hash, {tokens, compared_tokens}, stored.ns->bigram);
    At(page) = {hash, parent, stored.ns};
    std::copy_n(tokens, compared_tokens, TokensOf(page));
    parent = page;
    tokens += page_tokens_;
  }
}

void CachedPages::EmitStored(std::span<const PageId> run, const Emit& emit) {
  const NamespaceKey& ns = *At(run.front()).ns;
  ForEachPiece(run, max_blocks_, [&](std::span<const PageId> piece) {
    event_.Clear();
    v1::BlocksStored& stored = *event_.mutable_stored();
    const PageId parent = At(piece.front()).parent;
    if (parent != kPaddingPage) {
      stored.set_parent_block_hash(At(parent).hash.data(), sizeof(PageHash));
    }
    stored.mutable_tokens()->Reserve(
        static_cast<int>(piece.size() * page_tokens_ + 1));
    for (const PageId page : piece) {
      stored.add_block_hashes(At(page).hash.data(), sizeof(PageHash));
      const Token* tokens = TokensOf(page);
      stored.mutable_tokens()->Add(tokens, tokens + page_tokens_);
    }
    if (ns.bigram) stored.add_tokens(TokensOf(piece.back())[page_tokens_]);
    stored.set_page_tokens(page_tokens_);
    if (ns.extra_key.has_value()) stored.set_extra_key(*ns.extra_key);
    stored.set_has_cache_salt(ns.cache_salt.has_value());
    stored.set_bigram(ns.bigram);
    emit(event_);
  });
}

void CachedPages::EmitRemoved(const PagesRemoved& removed, const Emit& emit) {
  const std::span<const PageId> all = removed.pages;
  ForEachPiece(all, kMaxBlocks, [&](std::span<const PageId> piece) {
    event_.Clear();
    v1::BlocksRemoved& blocks = *event_.mutable_removed();
    blocks.set_reason(ReasonOnWire(removed.reason));
    for (const PageId page : piece) {
      CHECK(At(page).ns != nullptr);
      blocks.add_block_hashes(At(page).hash.data(), sizeof(PageHash));
      At(page).ns.reset();
    }
    emit(event_);
  });
}

// Follows first children, so that what is emitted is as long as can be; the
// other children wait on a stack.
void CachedPages::Describe(const Emit& emit) {
  std::vector<PageId> first_child(pages_.size());
  std::vector<PageId> next_sibling(pages_.size());
  for (uint32_t i = 1; i < pages_.size(); ++i) {
    if (pages_[i].ns == nullptr) continue;
    PageId& first = first_child[pages_[i].parent.value()];
    next_sibling[i] = first;
    first = PageId(i);
  }
  std::vector<PageId> waiting;
  std::vector<PageId> run;
  const auto add_children = [&](PageId of) {
    PageId child = first_child[of.value()];
    for (; child != kPaddingPage; child = next_sibling[child.value()]) {
      waiting.push_back(child);
    }
  };
  add_children(kPaddingPage);
  while (!waiting.empty()) {
    run.clear();
    // What is on top is a child of the last page of the run.
    for (size_t below = 0; waiting.size() > below;) {
      run.push_back(waiting.back());
      waiting.pop_back();
      below = waiting.size();
      add_children(run.back());
    }
    EmitStored(run, emit);
  }
}

}  // namespace pando
