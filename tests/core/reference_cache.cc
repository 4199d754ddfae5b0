// The data path of ReferenceCache, in the order of PrefixCache's.
// reference_cache_pages.cc has pages and quotas. reference_cache_state.cc has
// sessions and the parts that all calls share.

#include "tests/core/reference_cache.h"

#include <algorithm>
#include <utility>

#include "core/requests/errors.h"

namespace pando {
namespace {

// Returns the part of `sent` after `end`, where `sent` starts after `begin`.
// Returns nothing if `end` is before `begin`.
template <typename T>
std::span<const T> RestOf(std::span<const T> sent, size_t begin, size_t end) {
  if (end < begin) return {};
  return sent.subspan(std::min(end - begin, sent.size()));
}

// In a bigram namespace, a handle also stands for the first half of the next
// pair.
size_t PromptTokens(const NamespaceKey& ns, size_t begin, size_t sent) {
  return begin + (begin > 0 && ns.bigram ? std::max<size_t>(sent, 1) : sent);
}

}  // namespace

ReferenceCache::ReferenceCache(const PrefixCache::Options& options)
    : options_(options),
      quota_(options.quota_classes),
      index_(options.page_tokens),
      policy_(options.eviction_policy) {
  SetLearning(options.reuse.learns_always ||
              policy_ == EvictionPolicyKind::kReuse);
}

absl::StatusOr<MatchResult> ReferenceCache::Match(const MatchRequest& request,
                                                  const Choice& choice) {
  if (!request.lock && (request.reserve_tokens > 0 || request.wait ||
                        request.request_id != RequestId())) {
    return MakeError(Reason::kInvalidField, "needs a lock");
  }
  Session* session = FindSession(request.session);
  if (request.lock) {
    if (session == nullptr) return MakeError(Reason::kSessionLost, "");
    const auto answer = FindAnswer(*session, request.request_id, Call::kMatch);
    if (!answer.ok()) return answer.status();
    if (*answer != nullptr) return std::get<MatchResult>((*answer)->result);
  }
  absl::StatusOr<Place> start = Start(request.ns, request.after);
  if (!start.ok()) return start.status();
  Place place = *std::move(start);
  const auto begin = static_cast<uint32_t>(place.prefix.size());
  const Units units = UnitsOf(request.ns, request.tokens);
  MatchResult result;
  result.pages =
      ExtendUpTo(MaxUnits(request.ns, request.max_tokens), place, units);
  result.matched_tokens = static_cast<uint32_t>(place.prefix.size());
  const auto rest = RestOf<Unit>(units, begin, result.matched_tokens);
  const std::optional<Place> next = NextPage(place, rest);
  result.is_pending = IsPending(next, MaxUnits(request.ns, request.max_tokens));
  if (request.wait && result.is_pending) {
    if (choice.wait == WaitId() || flights_.IsWaiting(choice.wait)) {
      return absl::InternalError("the wait id is 0 or in use");
    }
    flights_.AddWait(choice.wait, request.session, *next);
    ++counters_.pending_waits;
    result = MatchResult();
    result.is_pending = true;
    result.wait = choice.wait;
    return result;
  }

  uint32_t missing = 0;
  for (uint64_t token = result.matched_tokens; token < request.reserve_tokens;
       token += page_tokens()) {
    ++missing;
  }
  std::span<const Token> held;
  if (missing > 0) {
    const auto tokens =
        RestOf<Token>(request.tokens, begin, result.matched_tokens);
    const size_t room = size_t{request.reserve_tokens} - result.matched_tokens +
                        (request.ns.bigram ? 1 : 0);
    held = tokens.first(std::min(tokens.size(), room));
  }
  if (request.lock) {
    if (absl::Status limits = CheckLimits(*session, 1, missing, held.size());
        !limits.ok()) {
      return limits;
    }
  }
  const size_t quota_class = quota_.ClassOf(request.ns);
  const auto path = index_.PathTo(place);
  const auto held_back = std::count_if(
      path.begin(), path.end(), [](auto* page) { return page->locks == 0; });
  if (absl::Status room =
          CheckRoom(quota_class, missing, static_cast<uint32_t>(held_back));
      !room.ok()) {
    return room;
  }

  if (request.lock) {
    index_.EndNodeAt(place);
    RequestFacts facts;
    if (request.touch) {
      facts =
          BeginRequest(PromptTokens(request.ns, begin, request.tokens.size()),
                       result.matched_tokens);
      Touch(place, &facts);
    }
    if (absl::Status added = AddLock(*session, place, choice.lock);
        !added.ok()) {
      return added;
    }
    session->locks.back().request = facts;
    if (absl::Status taken = TakePages(*session, quota_class, missing, choice);
        !taken.ok()) {
      return taken;
    }
    if (missing > 0) {
      HeldLock& lock = session->locks.back();
      lock.prompt.assign(held.begin(), held.end());
      lock.held_tokens = held.size();
      // Cached pages may follow a capped match, and reserving pages may have
      // evicted those pages just now.
      const std::optional<Place> first = NextPage(place, rest);
      if (first.has_value()) {
        flights_.AddMark({choice.lock, *first, choice.pages.front()});
      }
    }
    result.lock = choice.lock;
    result.reserved = choice.pages;
  } else if (request.touch) {
    Place used = place;
    index_.DropPartialNode(used);
    Touch(used, nullptr);
  }
  result.handle = index_.HandleOf(place);
  ++counters_.matches;
  if (request.touch) {
    counters_.query_tokens +=
        begin + units.size() / page_tokens() * page_tokens();
    counters_.hit_tokens += result.matched_tokens;
  }
  if (request.lock) {
    KeepAnswer(*session, request.request_id, Call::kMatch, result);
  }
  return result;
}

absl::StatusOr<PrefixScore> ReferenceCache::Score(
    const PrefixQuery& query) const {
  absl::StatusOr<Place> place = Start(query.ns, query.after);
  if (!place.ok()) return place.status();
  const auto begin = static_cast<uint32_t>(place->prefix.size());
  const Units units = UnitsOf(query.ns, query.tokens);
  ExtendUpTo(MaxUnits(query.ns, query.max_tokens), *place, units);
  const auto matched = static_cast<uint32_t>(place->prefix.size());
  const auto next = NextPage(*place, RestOf<Unit>(units, begin, matched));
  return PrefixScore{matched,
                     IsPending(next, MaxUnits(query.ns, query.max_tokens))};
}

absl::StatusOr<InsertResult> ReferenceCache::Insert(
    const InsertRequest& request) {
  if (request.expected_reuse == ExpectedReuse::kEnded &&
      request.retain_seconds > 0) {
    return MakeError(Reason::kInvalidField, "");
  }
  const bool is_anchored = request.anchor != LockId();
  if (is_anchored ? request.after != PrefixHandle()
                  : request.lock_action != LockAction::kKeep ||
                        request.prompt_tokens > 0) {
    return MakeError(Reason::kInvalidField, "");
  }
  if (!is_anchored && request.request_id == RequestId() &&
      request.pages.size() !=
          UnitsOf(request.ns, request.tokens).size() / page_tokens()) {
    return MakeError(Reason::kInvalidAlignment, "");
  }
  Session* session = FindSession(request.session);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  const auto answer = FindAnswer(*session, request.request_id, Call::kInsert);
  if (!answer.ok()) return answer.status();
  if (*answer != nullptr) return std::get<InsertResult>((*answer)->result);
  HeldLock* lock = nullptr;
  std::vector<Token> tokens;
  if (is_anchored) {
    lock = FindLock(*session, request.anchor);
    if (lock == nullptr) return MakeError(Reason::kLockUnknown, "");
    if (request.prompt_tokens > lock->prompt.size()) {
      return MakeError(Reason::kInvalidField, "");
    }
    tokens = lock->prompt;
    tokens.resize(request.prompt_tokens);
  }
  tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  const Units units =
      UnitsOf(is_anchored ? lock->place.ns : request.ns, tokens);
  const size_t page_count = units.size() / page_tokens();
  if (request.pages.size() != page_count) {
    return MakeError(Reason::kInvalidAlignment, "");
  }
  if (is_anchored && request.ns != NamespaceKey() &&
      request.ns != lock->place.ns) {
    return MakeError(Reason::kNamespaceMismatch, "");
  }
  absl::StatusOr<Place> start =
      is_anchored ? lock->place : Start(request.ns, request.after);
  if (!start.ok()) return start.status();
  Place place = *std::move(start);
  if (place.ns.bigram && !place.prefix.empty() && page_count > 0 &&
      tokens.front() != static_cast<Token>(place.prefix.back())) {
    return MakeError(Reason::kInvalidField, "");
  }
  InsertResult result;
  const size_t begin = place.prefix.size();
  const size_t end = begin + tokens.size();
  result.canonical_pages = index_.Extend(place, units, page_count);
  const size_t existing = result.canonical_pages.size();
  std::vector<PageId> own;
  for (size_t i = 0; i < page_count; ++i) {
    const bool is_canonical =
        i < existing && request.pages[i] == result.canonical_pages[i];
    if (!is_canonical) own.push_back(request.pages[i]);
  }
  const size_t not_canonical = own.size();
  own.insert(own.end(), request.free_pages.begin(), request.free_pages.end());
  if (absl::Status owned = CheckOwned(*session, own); !owned.ok()) return owned;
  if (absl::Status quota =
          CheckInsertQuota(*session, place.ns, request.pages.subspan(existing));
      !quota.ok()) {
    return quota;
  }

  RequestFacts facts;
  if (lock != nullptr) facts = lock->request;
  if (facts.tick == 0 && page_count > 0) {
    facts = BeginRequest(end, begin + existing * page_tokens());
  }
  facts.output_tokens = request.output_tokens.value_or(
      static_cast<uint32_t>(end - std::min<size_t>(end, facts.prompt_tokens)));
  if (existing < page_count) {
    index_.EndNodeAt(place);
    index_.AddNode(place, std::span(units).subspan(existing * page_tokens()),
                   request.pages.subspan(existing));
    if (reuse_.has_value()) {
      reuse_->AddLeaf(place, static_cast<uint32_t>(page_count - existing),
                      facts);
    }
    for (const ReferenceFlights::Mark& mark :
         std::vector<ReferenceFlights::Mark>(flights_.marks())) {
      if (index_.IsCached(mark.page)) {
        Resolve(mark.owner, PendingOutcome::kPublished);
      }
    }
    GiveUpPages(request.pages.subspan(existing));
    for (PageId page : request.pages.subspan(existing)) Release(*session, page);
  }
  if (request.lock_action == LockAction::kRelock) index_.EndNodeAt(place);
  Place used = place;
  index_.DropPartialNode(used);
  Touch(used, facts.tick > 0 ? &facts : nullptr);
  if (lock != nullptr) lock->request = facts;
  if (request.lock_action != LockAction::kRelock) index_.CountHit(used);
  index_.RaisePriority(used, request.priority);
  TakeHints(request, used);
  result.handle = index_.HandleOf(place);

  const size_t duplicates = not_canonical - (page_count - existing);
  counters_.duplicate_pages += duplicates;
  if (!request.keep_duplicates) {
    GiveUpPages(std::span(own).first(duplicates));
    for (size_t i = 0; i < duplicates; ++i) Release(*session, own[i]);
    result.freed_duplicates = static_cast<uint32_t>(duplicates);
  }
  GiveUpPages(request.free_pages);
  for (PageId page : request.free_pages) Release(*session, page);
  if (request.lock_action == LockAction::kUnlock) {
    ReleaseLock(*session, request.anchor, PendingOutcome::kGivenUp);
  } else if (request.lock_action == LockAction::kRelock) {
    Relock(*lock, place, request.prompt_tokens);
  }
  result.existing_tokens = static_cast<uint32_t>(existing) * page_tokens();
  ++counters_.inserts;
  counters_.inserted_pages += page_count - existing;
  KeepAnswer(*session, request.request_id, Call::kInsert, result);
  return result;
}

void ReferenceCache::TakeHints(const InsertRequest& request,
                               const Place& place) {
  const bool is_asked = request.expected_reuse == ExpectedReuse::kSoon ||
                        request.retain_seconds > 0;
  if (request.expected_reuse == ExpectedReuse::kEnded) index_.EndPrefix(place);
  if (!is_asked) return;
  const QuotaClass& limits = quota_.classes()[quota_.ClassOf(place.ns)];
  uint32_t seconds = limits.max_retention_seconds;
  if (request.retain_seconds > 0) {
    seconds = std::min(seconds, request.retain_seconds);
  }
  index_.Retain(place, time_ + absl::Seconds(seconds));
}

// The lock still holds what follows the new boundary, unless sent tokens reach
// past that boundary. In a bigram namespace the first held token is the second
// one of the last pair.
void ReferenceCache::Relock(HeldLock& lock, const Place& to,
                            uint32_t prompt_tokens) {
  if (to == lock.place) return;
  const size_t moved_by = to.prefix.size() - lock.place.prefix.size();
  const size_t inserted = moved_by + (to.ns.bigram ? 1 : 0);
  std::vector<Token>& held = lock.prompt;
  held.erase(held.begin(),
             inserted > prompt_tokens ? held.end() : held.begin() + moved_by);
  if (held.empty()) lock.held_tokens = 0;
  index_.MoveLock(lock.place, to);
  lock.place = to;
  Resolve(lock.id, PendingOutcome::kGivenUp);
  const auto next = NextPage(to, UnitsOf(to.ns, held));
  if (next.has_value()) flights_.AddMark({lock.id, *next, PageId()});
}

absl::StatusOr<LockResult> ReferenceCache::Lock(const LockRequest& request,
                                                LockId choice) {
  Session* session = FindSession(request.session);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  const auto answer = FindAnswer(*session, request.request_id, Call::kLock);
  if (!answer.ok()) return answer.status();
  if (*answer != nullptr) return std::get<LockResult>((*answer)->result);
  absl::StatusOr<Place> place = Start(request.ns, request.after);
  if (!place.ok()) return place.status();
  const size_t begin = place->prefix.size();
  index_.Extend(*place, UnitsOf(request.ns, request.tokens),
                request.tokens.size());
  if (absl::Status limits = CheckLimits(*session, 1, 0, 0); !limits.ok()) {
    return limits;
  }
  index_.EndNodeAt(*place);
  RequestFacts facts =
      BeginRequest(PromptTokens(request.ns, begin, request.tokens.size()),
                   place->prefix.size());
  Touch(*place, &facts);
  if (absl::Status added = AddLock(*session, *place, choice); !added.ok()) {
    return added;
  }
  session->locks.back().request = facts;
  const LockResult result{choice, static_cast<uint32_t>(place->prefix.size()),
                          index_.HandleOf(*place)};
  KeepAnswer(*session, request.request_id, Call::kLock, result);
  return result;
}

absl::Status ReferenceCache::Unlock(SessionId session_id,
                                    std::span<const LockId> locks,
                                    RequestId request_id) {
  for (size_t i = 0; i < locks.size(); ++i) {
    if (std::count(locks.begin(), locks.end(), locks[i]) > 1) {
      return MakeError(Reason::kLockUnknown, "listed twice");
    }
  }
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  const auto answer = FindAnswer(*session, request_id, Call::kUnlock);
  if (!answer.ok()) return answer.status();
  if (*answer != nullptr) return absl::OkStatus();
  for (LockId lock : locks) {
    if (FindLock(*session, lock) == nullptr) {
      return MakeError(Reason::kLockUnknown, "");
    }
  }
  for (LockId lock : locks) {
    ReleaseLock(*session, lock, PendingOutcome::kGivenUp);
  }
  KeepAnswer(*session, request_id, Call::kUnlock, std::monostate());
  return absl::OkStatus();
}

// Returns how many units of a prompt may match when the prompt is cut to
// `max_tokens`.
size_t ReferenceCache::MaxUnits(const NamespaceKey& ns,
                                std::optional<uint32_t> max_tokens) const {
  if (!max_tokens.has_value()) return SIZE_MAX / page_tokens() * page_tokens();
  const uint32_t pairing = ns.bigram && *max_tokens > 0 ? 1 : 0;
  return (*max_tokens - pairing) / page_tokens() * page_tokens();
}

std::vector<PageId> ReferenceCache::ExtendUpTo(size_t max_units, Place& place,
                                               const Units& units) const {
  if (max_units < place.prefix.size()) place.prefix.resize(max_units);
  return index_.Extend(place, units,
                       (max_units - place.prefix.size()) / page_tokens());
}

bool ReferenceCache::IsPending(const std::optional<Place>& page,
                               size_t max_units) const {
  return page.has_value() && page->prefix.size() <= max_units &&
         flights_.IsMarked(*page);
}

absl::StatusOr<Place> ReferenceCache::Start(const NamespaceKey& ns,
                                            const PrefixHandle& after) const {
  if (after == PrefixHandle()) return Place{ns, {}};
  if (after.tokens % page_tokens() != 0) {
    return MakeError(Reason::kInvalidField, "");
  }
  std::optional<Place> place = index_.PlaceOf(after);
  if (!place.has_value() || place->ns != ns) {
    return MakeError(Reason::kHandleGone, "");
  }
  return *std::move(place);
}

std::optional<Place> ReferenceCache::NextPage(
    const Place& place, std::span<const Unit> units) const {
  if (units.size() < page_tokens()) return std::nullopt;
  Place next = place;
  next.prefix.insert(next.prefix.end(), units.begin(),
                     units.begin() + page_tokens());
  if (index_.IsCached(next)) return std::nullopt;
  return next;
}

}  // namespace pando
