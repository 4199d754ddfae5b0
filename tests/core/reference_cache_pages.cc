// The parts of ReferenceCache for pages and quotas.

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"
#include "tests/core/reference_cache.h"

namespace pando {

absl::StatusOr<AllocateResult> ReferenceCache::Allocate(
    const AllocateRequest& request, const Choice& choice) {
  const uint32_t min_pages = request.min_pages.value_or(request.pages);
  if (min_pages > request.pages) return MakeError(Reason::kInvalidField, "");
  Session* session = FindSession(request.session);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  const auto answer = FindAnswer(*session, request.request_id, Call::kAllocate);
  if (!answer.ok()) return answer.status();
  if (*answer != nullptr) {
    return std::get<AllocateResult>((*answer)->result);
  }
  const size_t quota_class = quota_.ClassOf(request.ns);
  uint32_t pages = request.pages;
  while (pages > min_pages && (!CheckLimits(*session, 0, pages, 0).ok() ||
                               NoRoom(quota_class, pages, 0).has_value())) {
    --pages;
  }
  if (absl::Status limits = CheckLimits(*session, 0, pages, 0); !limits.ok()) {
    return limits;
  }
  if (absl::Status room = CheckRoom(quota_class, pages, 0); !room.ok()) {
    return room;
  }
  if (absl::Status taken = TakePages(*session, quota_class, pages, choice);
      !taken.ok()) {
    return taken;
  }
  const AllocateResult result{.pages = choice.pages};
  KeepAnswer(*session, request.request_id, Call::kAllocate, result);
  return result;
}

absl::Status ReferenceCache::Free(SessionId session_id,
                                  std::span<const PageId> pages,
                                  RequestId request_id) {
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  const auto answer = FindAnswer(*session, request_id, Call::kFree);
  if (!answer.ok()) return answer.status();
  if (*answer != nullptr) return absl::OkStatus();
  if (absl::Status owned = CheckOwned(*session, pages); !owned.ok()) {
    return owned;
  }
  GiveUpPages(pages);
  for (PageId page : pages) Release(*session, page);
  KeepAnswer(*session, request_id, Call::kFree, std::monostate());
  return absl::OkStatus();
}

uint32_t ReferenceCache::Evict(uint32_t pages) {
  const uint32_t evicted = EvictUpTo(pages, AboveFloor());
  counters_.evicted_pages_on_request += evicted;
  return evicted;
}

uint32_t ReferenceCache::EvictToWatermark() {
  is_below_watermark_ =
      FreeCount() < (is_below_watermark_ ? options_.high_free_pages
                                         : options_.low_free_pages);
  if (!is_below_watermark_) return 0;
  const uint32_t evicted =
      EvictUpTo(options_.high_free_pages - FreeCount(), AboveFloor());
  counters_.evicted_pages_for_watermark += evicted;
  return evicted;
}

FlushResult ReferenceCache::Flush() {
  uint32_t evicted = 0;
  while (FlushOne([](const NamespaceKey&) { return true; })) ++evicted;
  counters_.evicted_pages_on_request += evicted;
  return {evicted, LockedCount()};
}

FlushResult ReferenceCache::FlushNamespace(const NamespaceKey& ns) {
  FlushResult result;
  while (FlushOne([&](const NamespaceKey& key) { return key == ns; })) {
    ++result.evicted_pages;
  }
  counters_.evicted_pages_on_request += result.evicted_pages;
  const ReferenceIndex::Pages* pages = index_.Find(ns);
  if (pages != nullptr) {
    result.protected_pages = static_cast<uint32_t>(pages->size());
  }
  return result;
}

uint32_t ReferenceCache::EvictUpTo(uint32_t most,
                                   const ReferenceIndex::Filter& may_evict) {
  uint32_t evicted = 0;
  uint32_t spared = 0;
  while (evicted < most) {
    const uint32_t pages = EvictRun(most - evicted, may_evict, spared);
    if (pages == 0) break;
    evicted += pages;
  }
  return evicted;
}

// Evicts the victim's whole node before asking for the next victim, unless the
// limits stop it earlier.
uint32_t ReferenceCache::EvictRun(uint32_t most,
                                  const ReferenceIndex::Filter& may_evict,
                                  uint32_t& spared) {
  std::optional<Place> victim = NextVictim(may_evict);
  if (!victim.has_value()) return 0;
  victim = SpareRetained(*victim, may_evict, spared);
  uint32_t pages = 0;
  for (const ReferenceIndex::NodeRun& run : index_.NodeRuns()) {
    if (run.end == *victim) pages = run.pages;
  }
  const ReferenceIndex::Node node = *index_.PathTo(*victim).back()->node;
  const bool is_in_turn =
      reuse_.has_value() &&
      reuse_->IsInTurn(*victim, [&](const NamespaceKey& ns) {
        return quota_.ClassOf(ns) == quota_.ClassOf(victim->ns);
      });
  uint32_t kept = pages;
  Place end = *victim;
  while (kept > 0 && pages - kept < most && may_evict(victim->ns)) {
    index_.Remove(end);
    end.prefix.resize(end.prefix.size() - page_tokens());
    --kept;
  }
  if (kept > 0) {
    index_.PathTo(end).back()->node->retained_until = absl::InfinitePast();
  }
  if (reuse_.has_value()) {
    reuse_->Evicted(*victim, node, pages, kept, is_in_turn);
  }
  return pages - kept;
}

Place ReferenceCache::SpareRetained(Place victim,
                                    const ReferenceIndex::Filter& may_evict,
                                    uint32_t& spared) {
  const size_t quota_class = quota_.ClassOf(victim.ns);
  for (int in_a_row = 0; in_a_row < 3 && spared < 64; ++in_a_row) {
    const ReferenceIndex::Node& leaf = *index_.PathTo(victim).back()->node;
    if (leaf.retained_until <= time_) break;
    ++spared;
    Touch(victim, nullptr);
    const Place next = *NextVictim([&](const NamespaceKey& ns) {
      return may_evict(ns) && quota_.ClassOf(ns) == quota_class;
    });
    if (next == victim) break;
    ++spared_leaves_[quota_class];
    victim = next;
  }
  return victim;
}

// Compares the first victims of all classes.
std::optional<Place> ReferenceCache::NextVictim(
    const ReferenceIndex::Filter& may_evict) const {
  const std::optional<Place> ended = index_.NextEnded(may_evict);
  if (ended.has_value()) return ended;
  if (policy_ != EvictionPolicyKind::kReuse) {
    return index_.NextVictim(policy_, may_evict);
  }
  std::optional<ReferenceReuse::Victim> first;
  for (size_t c = 0; c < quota_.classes().size(); ++c) {
    const auto victim = reuse_->NextVictim([&](const NamespaceKey& ns) {
      return may_evict(ns) && quota_.ClassOf(ns) == c;
    });
    if (!victim.has_value()) continue;
    if (!first.has_value() ||
        std::tuple(victim->index, victim->last_access) <
            std::tuple(first->index, first->last_access)) {
      first = victim;
    }
  }
  if (!first.has_value()) return std::nullopt;
  return first->place;
}

bool ReferenceCache::FlushOne(const ReferenceIndex::Filter& may_evict) {
  const std::optional<Place> victim =
      index_.NextVictim(EvictionPolicyKind::kLru, may_evict);
  if (!victim.has_value()) return false;
  uint32_t pages = 0;
  for (const ReferenceIndex::NodeRun& run : index_.NodeRuns()) {
    if (run.end == *victim) pages = run.pages;
  }
  const ReferenceIndex::Node node = *index_.PathTo(*victim).back()->node;
  index_.Remove(*victim);
  if (reuse_.has_value()) reuse_->Flushed(*victim, node, pages, pages - 1);
  return true;
}

// Accepts namespaces of classes that have more pages cached than their floor,
// and all namespaces of `quota_class`.
ReferenceIndex::Filter ReferenceCache::AboveFloor(
    std::optional<size_t> quota_class) const {
  return [=, this](const NamespaceKey& ns) {
    const size_t c = quota_.ClassOf(ns);
    return c == quota_class ||
           AccountOf(c).cached > quota_.classes()[c].floor_pages;
  };
}

ReferenceCache::Account ReferenceCache::AccountOf(size_t quota_class) const {
  Account account;
  for (const Session& session : sessions_) {
    for (const ReservedPage& page : session.reserved) {
      account.reserved += page.quota_class == quota_class;
    }
  }
  for (const auto& [ns, pages] : index_.namespaces()) {
    if (quota_.ClassOf(ns) != quota_class) continue;
    for (const auto& [prefix, page] : pages) {
      ++account.cached;
      account.evictable += page.locks == 0;
    }
  }
  return account;
}

absl::Status ReferenceCache::CheckOwned(const Session& session,
                                        std::span<const PageId> pages) const {
  for (size_t i = 0; i < pages.size(); ++i) {
    const PageId page = pages[i];
    if (page == kPaddingPage || page.value() >= options_.capacity_pages) {
      return MakeError(Reason::kPageOutOfRange, "");
    }
    if (std::none_of(session.reserved.begin(), session.reserved.end(),
                     [&](const auto& own) { return own.id == page; })) {
      return MakeError(Reason::kPageNotOwned, "");
    }
    const auto before = pages.first(i);
    if (std::find(before.begin(), before.end(), page) != before.end()) {
      return MakeError(Reason::kDuplicatePage, "");
    }
  }
  return absl::OkStatus();
}

absl::Status ReferenceCache::CheckLimits(const Session& session, uint32_t locks,
                                         uint32_t pages, size_t held) const {
  const SessionLimits& limits = options_.session_limits;
  const bool has_locks = limits.max_locks == 0 || locks == 0 ||
                         session.locks.size() + locks <= limits.max_locks;
  const bool has_pages =
      limits.max_reserved_pages == 0 || pages == 0 ||
      session.reserved.size() + pages <= limits.max_reserved_pages;
  const bool has_memory =
      limits.max_kept_bytes == 0 || held == 0 ||
      KeptBytes(session) + held * sizeof(Token) <= limits.max_kept_bytes;
  if (has_locks && has_pages && has_memory) return absl::OkStatus();
  return MakeError(Reason::kSessionLimit, "");
}

// A class makes room for everything above its cap with its own pages only. For
// the rest, pages of other classes above their floors may be evicted, too.
std::optional<Reason> ReferenceCache::NoRoom(size_t quota_class, uint32_t pages,
                                             uint32_t held_back) const {
  if (pages == 0) return std::nullopt;
  const QuotaClass& limits = quota_.classes()[quota_class];
  const Account own = AccountOf(quota_class);
  const uint32_t own_evictable = own.evictable - held_back;
  if (limits.cap_pages.has_value() &&
      own.used() + pages > *limits.cap_pages + own_evictable) {
    return Reason::kQuotaExceeded;
  }
  uint32_t room = FreeCount() + own_evictable;
  for (size_t c = 0; c < quota_.classes().size(); ++c) {
    const Account other = AccountOf(c);
    const uint32_t floor = quota_.classes()[c].floor_pages;
    if (c == quota_class || other.cached <= floor) continue;
    room += std::min(other.evictable, other.cached - floor);
  }
  if (pages <= room) return std::nullopt;
  return Reason::kPoolExhausted;
}

absl::Status ReferenceCache::CheckRoom(size_t quota_class, uint32_t pages,
                                       uint32_t held_back) {
  const auto reason = NoRoom(quota_class, pages, held_back);
  if (!reason.has_value()) return absl::OkStatus();
  ++(*reason == Reason::kQuotaExceeded ? counters_.quota_rejections
                                       : counters_.allocation_failures);
  return MakeError(*reason, "");
}

absl::Status ReferenceCache::TakePages(Session& session, size_t quota_class,
                                       uint32_t pages, const Choice& choice) {
  if (pages == 0) return absl::OkStatus();
  const auto is_own = [&](const NamespaceKey& ns) {
    return quota_.ClassOf(ns) == quota_class;
  };
  const auto cap = quota_.classes()[quota_class].cap_pages;
  const uint32_t used = AccountOf(quota_class).used() + pages;
  if (cap.has_value() && used > *cap) {
    counters_.evicted_pages_for_quota += EvictUpTo(used - *cap, is_own);
  }
  const uint32_t free = FreeCount();
  if (free < pages) {
    counters_.evicted_pages_for_allocation +=
        EvictUpTo(pages - free, AboveFloor(quota_class));
  }
  if (choice.pages.size() != pages) {
    return absl::InternalError(absl::StrCat(
        choice.pages.size(), " pages given, but ", pages, " wanted"));
  }
  for (PageId page : choice.pages) {
    if (!IsFree(page)) {
      return absl::InternalError(
          absl::StrCat("page ", page.value(), " was given, but is not free"));
    }
    session.reserved.push_back({page, quota_class});
  }
  counters_.allocated_pages += pages;
  return absl::OkStatus();
}

// Pages that were reserved for another class count for this class from now on.
absl::Status ReferenceCache::CheckInsertQuota(const Session& session,
                                              const NamespaceKey& ns,
                                              std::span<const PageId> added) {
  const size_t quota_class = quota_.ClassOf(ns);
  uint32_t joining = 0;
  for (const ReservedPage& own : session.reserved) {
    if (own.quota_class == quota_class) continue;
    joining += std::find(added.begin(), added.end(), own.id) != added.end();
  }
  const auto cap = quota_.classes()[quota_class].cap_pages;
  if (joining == 0 || !cap.has_value() ||
      AccountOf(quota_class).used() + joining <= *cap) {
    return absl::OkStatus();
  }
  ++counters_.quota_rejections;
  return MakeError(Reason::kQuotaExceeded, "");
}

void ReferenceCache::Release(Session& session, PageId page) {
  std::erase_if(session.reserved,
                [&](const ReservedPage& own) { return own.id == page; });
}

void ReferenceCache::GiveUpPages(std::span<const PageId> pages) {
  for (PageId page : pages) {
    const ReferenceFlights::Mark* mark = flights_.FindMarkOf(page);
    if (mark != nullptr) Resolve(mark->owner, PendingOutcome::kGivenUp);
  }
}

}  // namespace pando
