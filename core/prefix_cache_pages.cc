// The pages of PrefixCache: allocation, quotas, eviction.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {
namespace {

// The most pages evicted under one hold of the mutex when nobody waits for
// them.
constexpr uint32_t kEvictionStep = 256;

}  // namespace

absl::Status PrefixCache::CheckReserved(const Session& session,
                                        std::span<const PageId> pages) {
  absl::Status status;
  size_t marked = 0;
  for (; marked < pages.size(); ++marked) {
    const PageId page = pages[marked];
    if (!pool_.IsInRange(page)) {
      status = MakeError(
          Reason::kPageOutOfRange,
          absl::StrCat("page id ", page.value(), " is not in 1..",
                       pool_.capacity() - 1,
                       page == kPaddingPage ? " (page 0 is padding)" : ""));
      break;
    }
    if (!pool_.IsReservedBy(session.reserved, page)) {
      status = MakeError(Reason::kPageNotOwned,
                         absl::StrCat("page ", page.value(),
                                      " is not reserved by this session"));
      break;
    }
    if (!pool_.Mark(page)) {
      status =
          MakeError(Reason::kDuplicatePage,
                    absl::StrCat("page ", page.value(), " is listed twice"));
      break;
    }
  }
  for (PageId page : pages.first(marked)) pool_.Unmark(page);
  return status;
}

absl::StatusOr<std::vector<PageId>> PrefixCache::Allocate(
    const AllocateRequest& request) {
  std::vector<PageId> allocated;
  allocated.reserve(std::min(request.pages, options_.capacity_pages));
  const uint32_t quota_class = quotas_.ClassOf(request.ns);
  Hold hold(this, Operation::kAllocate);
  ASSIGN_OR_RETURN(Session* const session, FindSession(request.session));
  ASSIGN_OR_RETURN(const auto* const answer, FindAnswer<std::vector<PageId>>(
                                                 *session, request.request_id));
  if (answer != nullptr) return *answer;
  RETURN_IF_ERROR(CheckSessionLimits(*session, 0, request.pages));
  RETURN_IF_ERROR(CheckRoom(request.pages, quota_class, 0));
  Reserve(request.pages, quota_class, *session, allocated);
  KeepAnswer(*session, request.request_id, allocated);
  return allocated;
}

absl::Status PrefixCache::Free(SessionId session_id,
                               std::span<const PageId> pages,
                               RequestId request_id) {
  Hold hold(this, Operation::kFree);
  ASSIGN_OR_RETURN(Session* const session, FindSession(session_id));
  auto answer = FindAnswer<Freed>(*session, request_id);
  if (!answer.ok() || *answer != nullptr) return std::move(answer).status();
  RETURN_IF_ERROR(CheckReserved(*session, pages));
  for (PageId page : pages) ReleasePage(*session, page);
  KeepAnswer(*session, request_id, Freed());
  return absl::OkStatus();
}

uint32_t PrefixCache::UsedPages(uint32_t quota_class) const {
  return tree_.cached_pages(quota_class) + pool_.reserved_count(quota_class);
}

uint32_t PrefixCache::SparePages(uint32_t quota_class) const {
  const uint32_t used = UsedPages(quota_class);
  const uint32_t floor = class_limits_[quota_class].floor_pages;
  return std::min(tree_.evictable_pages(quota_class),
                  used - std::min(used, floor));
}

absl::Status PrefixCache::CheckRoom(uint32_t pages, uint32_t quota_class,
                                    uint32_t held_back) {
  const uint32_t own = tree_.evictable_pages(quota_class) - held_back;
  const std::optional<uint32_t> cap = class_limits_[quota_class].cap_pages;
  if (cap.has_value()) {
    const uint64_t needed = uint64_t{UsedPages(quota_class)} + pages;
    if (needed > uint64_t{*cap} + own) {
      ++counters_.quota_rejections;
      ++measured_.classes[quota_class].quota_rejections;
      ++measured_.failed_allocations[AllocationFailure::kQuota];
      return MakeError(
          Reason::kQuotaExceeded,
          absl::StrCat(pages, " pages are needed, but namespaces of class '",
                       quotas_.name(quota_class), "' have ",
                       UsedPages(quota_class), " of ", *cap, " pages, ", own,
                       " of them evictable"));
    }
  }
  const uint32_t free = pool_.count(PageState::kFree);
  uint64_t evictable = own;
  for (uint32_t c = 0; c < quotas_.count(); ++c) {
    if (c != quota_class) evictable += SparePages(c);
  }
  if (pages <= free + evictable) return absl::OkStatus();
  ++counters_.allocation_failures;
  ++measured_.failed_allocations[pages < pool_.capacity()
                                     ? AllocationFailure::kExhausted
                                     : AllocationFailure::kTooLarge];
  return MakeError(
      Reason::kPoolExhausted,
      absl::StrCat(pages, " pages are needed, but only ", free,
                   " are free and ", evictable, " evictable of ",
                   pool_.capacity() - 1, "; ",
                   tree_.protected_pages() + held_back, " are protected, ",
                   pool_.count(PageState::kReserved), " reserved, ",
                   pool_.count(PageState::kQuarantined), " quarantined"));
}

void PrefixCache::Reserve(uint32_t pages, uint32_t quota_class,
                          Session& session, std::vector<PageId>& out) {
  if (pages == 0) return;
  uint32_t evicted = 0;
  if (const auto cap = class_limits_[quota_class].cap_pages; cap.has_value()) {
    const uint32_t used = UsedPages(quota_class) + pages;
    if (used > *cap) {
      std::fill(limits_.begin(), limits_.end(), 0);
      limits_[quota_class] = used - *cap;
      evicted += EvictFromTree(used - *cap, limits_, EvictionReason::kQuota);
    }
  }
  const uint32_t free = pool_.count(PageState::kFree);
  if (free < pages) {
    for (uint32_t c = 0; c < quotas_.count(); ++c) limits_[c] = SparePages(c);
    limits_[quota_class] = tree_.evictable_pages(quota_class);
    evicted +=
        EvictFromTree(pages - free, limits_, EvictionReason::kAllocation);
  }
  pool_.Reserve(pages, quota_class, session.reserved, out);
  counters_.allocated_pages += pages;
  ++measured_.allocations;
  if (evicted > 0) ++measured_.allocations_after_eviction;
}

uint32_t PrefixCache::Evict(uint32_t pages) {
  uint32_t evicted = 0;
  while (evicted < pages) {
    Hold hold(this, Operation::kEvict);
    const uint32_t step = EvictSpare(std::min(pages - evicted, kEvictionStep),
                                     EvictionReason::kRequest);
    if (step == 0) break;
    evicted += step;
  }
  return evicted;
}

uint32_t PrefixCache::EvictToWatermark() {
  absl::MutexLock hold(&mutex_);
  const uint32_t free = pool_.count(PageState::kFree);
  is_below_watermark_ =
      free < (is_below_watermark_ ? high_free_pages_ : low_free_pages_);
  if (!is_below_watermark_) return 0;
  return EvictSpare(std::min(high_free_pages_ - free, kEvictionStep),
                    EvictionReason::kWatermark);
}

void PrefixCache::SetWatermark(uint32_t low_free_pages,
                               uint32_t high_free_pages) {
  absl::MutexLock hold(&mutex_);
  low_free_pages_ = low_free_pages;
  high_free_pages_ = high_free_pages;
}

void PrefixCache::SetQuotas(const std::vector<QuotaClass>& classes) {
  absl::MutexLock hold(&mutex_);
  CHECK(classes.size() + 1 == class_limits_.size());
  for (size_t c = 0; c < classes.size(); ++c) {
    class_limits_[c] = {classes[c].floor_pages, classes[c].cap_pages};
  }
}

uint32_t PrefixCache::EvictSpare(uint32_t pages, EvictionReason reason) {
  for (uint32_t c = 0; c < quotas_.count(); ++c) limits_[c] = SparePages(c);
  return EvictFromTree(pages, limits_, reason);
}

uint32_t PrefixCache::EvictFromTree(uint32_t pages, std::span<uint32_t> limits,
                                    EvictionReason reason) {
  tree_.Evict(
      pages, limits,
      [&](const Node& leaf, uint32_t kept_pages) {
        mutex_.AssertHeld();  // for the analysis: a lambda is a function apart
        RememberEvicted(leaf, kept_pages, reason);
      },
      evicted_);
  return FreeEvicted(reason);
}

GhostList::Place PrefixCache::PlaceAfter(const Node& node) {
  return node.is_root() ? GhostList::StartOf(*node.ns->key)
                        : GhostList::AfterNode(Slab<Node>::HandleOf(node));
}

void PrefixCache::RememberEvicted(const Node& leaf, uint32_t kept_pages,
                                  EvictionReason reason) {
  RecordEviction(leaf, leaf.page_count - kept_pages, reason);
  const Token* const first =
      leaf.tokens(options_.page_tokens) + kept_pages * options_.page_tokens;
  const Node& before = kept_pages > 0 ? leaf : *leaf.parent;
  ghosts_.Add(PlaceAfter(before),
              GhostList::Fingerprint(
                  {first, options_.page_tokens + leaf.ns->lookahead()}),
              reason, time_);
}

uint32_t PrefixCache::FreeEvicted(EvictionReason reason) {
  const auto count = static_cast<uint32_t>(evicted_.size());
  if (count == 0) return 0;
  pool_.FreeSealed(evicted_);
  events_.Removed(evicted_, reason);
  churn_.Removed(evicted_, reason);
  EvictionCounter(reason) += count;
  evicted_.clear();
  return count;
}

uint64_t& PrefixCache::EvictionCounter(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kAllocation:
      return counters_.evicted_pages_for_allocation;
    case EvictionReason::kWatermark:
      return counters_.evicted_pages_for_watermark;
    case EvictionReason::kQuota:
      return counters_.evicted_pages_for_quota;
    case EvictionReason::kRequest:
    case EvictionReason::kFlush:
      break;
  }
  return counters_.evicted_pages_on_request;
}

FlushResult PrefixCache::Flush() {
  std::vector<NamespaceNumber> namespaces;
  {
    absl::MutexLock hold(&mutex_);
    tree_.ForEachNamespace(
        [&](const Namespace& ns) { namespaces.push_back(ns.number); });
  }
  std::sort(namespaces.begin(), namespaces.end());
  FlushResult result;
  for (NamespaceNumber number : namespaces) {
    result.evicted_pages += FlushNamespace(number).evicted_pages;
  }
  absl::MutexLock hold(&mutex_);
  result.protected_pages = tree_.protected_pages();
  return result;
}

FlushResult PrefixCache::FlushNamespace(const NamespaceKey& key) {
  NamespaceNumber number;
  {
    absl::MutexLock hold(&mutex_);
    const Namespace* ns = tree_.FindNamespace(key);
    if (ns == nullptr) return {};
    number = ns->number;
  }
  return FlushNamespace(number);
}

FlushResult PrefixCache::FlushNamespace(NamespaceNumber number) {
  FlushResult result;
  bool has_more = true;
  while (has_more) {
    absl::MutexLock hold(&mutex_);
    Namespace* ns = tree_.FindNamespace(number);
    has_more = ns != nullptr && FlushStep(*ns, result);
  }
  return result;
}

bool PrefixCache::FlushStep(Namespace& ns, FlushResult& result) {
  result.protected_pages = ns.protected_pages;
  const bool stays = tree_.EvictFrom(
      ns, kEvictionStep,
      [&](const Node& leaf, uint32_t kept_pages) {
        mutex_.AssertHeld();
        RememberEvicted(leaf, kept_pages, EvictionReason::kFlush);
      },
      evicted_);
  const uint32_t evicted = FreeEvicted(EvictionReason::kFlush);
  if (evicted > 0 && tree_.node_count() == 0) events_.Cleared();
  result.evicted_pages += evicted;
  return stays && evicted > 0;
}

EvictionPolicyKind PrefixCache::SetEvictionPolicy(EvictionPolicyKind policy) {
  absl::MutexLock hold(&mutex_);
  const EvictionPolicyKind previous = tree_.policy();
  tree_.SetPolicy(policy);
  return previous;
}

}  // namespace pando
