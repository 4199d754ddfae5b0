#include "events/cached_pages.h"

#include <algorithm>

#include "base/check.h"

namespace pando {

CachedPages::CachedPages(uint32_t capacity_pages, uint32_t page_tokens)
    : page_tokens_(page_tokens),
      pages_(capacity_pages),
      tokens_(size_t{capacity_pages} * (page_tokens + 1)) {}

void CachedPages::Store(const PagesStored& stored) {
  const bool begins_prompt = stored.parent == kPaddingPage;
  CHECK(begins_prompt || At(stored.parent).ns != nullptr);
  const uint32_t compared_tokens = page_tokens_ + (stored.ns->bigram ? 1 : 0);
  PageId parent = stored.parent;
  PageHash hash = begins_prompt ? hasher_.Seed(*stored.ns) : At(parent).hash;
  uint32_t ordinal = begins_prompt ? 0 : At(parent).ordinal;
  const Token* tokens = stored.tokens(page_tokens_);
  for (const PageId page : stored.pages()) {
    hash = hasher_.Next(hash, {tokens, compared_tokens}, stored.ns->bigram);
    At(page) = {hash, parent, ++ordinal, stored.ns};
    std::copy_n(tokens, compared_tokens, tokens_.data() + FirstTokenOf(page));
    parent = page;
    tokens += page_tokens_;
  }
}

void CachedPages::Remove(std::span<const PageId> pages) {
  for (const PageId page : pages) {
    CHECK(At(page).ns != nullptr);
    At(page).ns.reset();
  }
}

void CachedPages::Clear() {
  for (Page& page : pages_) page.ns.reset();
}

std::span<const Token> CachedPages::tokens(PageId page) const {
  return {tokens_.data() + FirstTokenOf(page),
          page_tokens_ + (ns(page).bigram ? 1u : 0u)};
}

// Follows first children, so that runs are as long as can be; the other
// children wait on a stack.
void CachedPages::ForEachRun(
    const std::function<void(std::span<const PageId> run)>& visit) const {
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
    // While the stack is higher than before, the page on top is a child of the
    // last page of the run.
    for (size_t below = 0; waiting.size() > below;) {
      run.push_back(waiting.back());
      waiting.pop_back();
      below = waiting.size();
      add_children(run.back());
    }
    visit(run);
  }
}

}  // namespace pando
