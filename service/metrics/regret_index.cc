#include "service/metrics/regret_index.h"

#include <utility>
#include <variant>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "core/requests/namespace.h"

namespace pando {

void RegretIndex::Apply(const RawEvent& event, absl::Time now) {
  std::visit([&](const auto& what) { Apply(what, now); }, event);
}

void RegretIndex::Apply(const PagesStored& stored, absl::Time now) {
  Hash hash = HashOfParent(stored);
  const Token* tokens = stored.tokens(page_tokens_);
  const size_t page_bytes =
      SpelledTokens(LookaheadOf(*stored.ns), 1, page_tokens_) * sizeof(Token);
  for (PageId page : stored.pages()) {
    if (hash != 0) {
      hash = absl::HashOf(
          hash,
          absl::string_view(reinterpret_cast<const char*>(tokens), page_bytes));
      Fetched(hash, now);
    }
    hashes_[page.value()] = hash;
    tokens += page_tokens_;
  }
}

RegretIndex::Hash RegretIndex::HashOfParent(const PagesStored& stored) const {
  return stored.parent == kPaddingPage ? absl::HashOf(*stored.ns)
                                       : hashes_[stored.parent.value()];
}

void RegretIndex::Fetched(Hash hash, absl::Time now) {
  if (!IsSampled(hash)) return;
  const auto it = evicted_.find(hash);
  if (it == evicted_.end()) return;
  figures_.refetched_pages += weight();
  figures_.refetch_seconds.Record(absl::ToDoubleSeconds(now - it->second),
                                  weight());
  evicted_.erase(it);
}

void RegretIndex::Apply(const PagesRemoved& removed, absl::Time now) {
  for (PageId page : removed.pages) {
    const Hash hash = std::exchange(hashes_[page.value()], 0);
    if (hash == 0 || !IsSampled(hash)) continue;
    if (removed.reason == EvictionReason::kFlush) continue;
    evicted_[hash] = now;
    while (evicted_.size() > max_samples_) HalveSample();
  }
}

void RegretIndex::HalveSample() {
  mask_ = mask_ * 2 + 1;
  absl::erase_if(evicted_,
                 [this](const auto& page) { return !IsSampled(page.first); });
}

}  // namespace pando
