#include "core/sessions/session_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pando {

Session& SessionTable::Open(SessionId id, std::string client_name,
                            absl::Time now) {
  auto session = std::make_unique<Session>();
  session->id = id;
  session->client_name = std::move(client_name);
  session->opened_at = now;
  session->number = SessionNumber(++opened_);
  session->blocks->number = session->number;
  auto [it, is_new] = sessions_.emplace(id, std::move(session));
  CHECK(is_new);
  by_number_[it->second->number] = it->second.get();
  return *it->second;
}

Session* SessionTable::Find(SessionId id) const {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

Session* SessionTable::Find(SessionNumber number) const {
  const auto it = by_number_.find(number);
  return it == by_number_.end() ? nullptr : it->second;
}

const Session* SessionTable::SessionAfter(SessionNumber number) const {
  const auto it = by_number_.upper_bound(number);
  return it == by_number_.end() ? nullptr : it->second;
}

absl::StatusOr<Session*> SessionTable::Get(SessionId id) const {
  Session* session = Find(id);
  if (session != nullptr) return session;
  return MakeError(Reason::kSessionLost, Subject::kSession,
                   "there is no such session any more; open a new one and drop "
                   "every page id and lock of the old one");
}

absl::StatusOr<Session*> SessionTable::GetForStep(SessionId id) {
  ASSIGN_OR_RETURN(Session* const session, Get(id));
  ++session->steps;
  return session;
}

absl::StatusOr<Session*> SessionTable::GetAccount(SessionId id) {
  if (id == SessionId()) return &no_session_;
  return Get(id);
}

void SessionTable::End(Session& session, const SessionEnd& end) {
  session.end = end;
  by_number_.erase(session.number);
  const auto it = sessions_.find(session.id);
  ended_.push_back(std::move(it->second));
  sessions_.erase(it);
}

void SessionTable::EraseFirstEnded() {
  Session& session = *ended_.front();
  CHECK(session.first_lock == nullptr && session.reserved.pages.empty());
  CHECK(session.blocks == nullptr || !session.blocks->holds_anything());
  ReleaseBytes(session, session.kept_bytes);
  ended_.pop_front();
}

LockRecord& SessionTable::AddLock(Session& session, Node& node,
                                  absl::Time now) {
  LockRecord& lock = locks_.New();
  lock.session = &session;
  lock.node = &node;
  lock.taken_at = now;
  lock.next = session.first_lock;
  if (lock.next != nullptr) lock.next->previous = &lock;
  session.first_lock = &lock;
  ++session.lock_count;
  lock.older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = &lock;
  newest_ = &lock;
  if (IsAudited(lock)) audit_->AddLock(node);
  return lock;
}

LockRecord* SessionTable::FindLock(const Session& session, LockId id) const {
  LockRecord* lock = locks_.Find(id.value());
  return lock != nullptr && lock->session == &session && !lock->is_ending
             ? lock
             : nullptr;
}

LockRecord* SessionTable::FindEndingLock(const Session& session,
                                         LockId id) const {
  LockRecord* lock = locks_.Find(id.value());
  return lock != nullptr && lock->session == &session && lock->is_ending
             ? lock
             : nullptr;
}

absl::StatusOr<LockRecord*> SessionTable::GetLock(const Session& session,
                                                  LockId id,
                                                  Subject subject) const {
  LockRecord* lock = FindLock(session, id);
  if (lock != nullptr) return lock;
  return MakeError(
      Reason::kLockUnknown, subject,
      absl::StrCat("lock ", id.value(), " is not held by this session"));
}

absl::Status SessionTable::BeginRelease(const Session& session,
                                        std::span<const LockId> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (LockRecord* const lock = FindLock(session, ids[i]); lock != nullptr) {
      lock->is_ending = true;
      continue;
    }
    for (LockId id : ids.first(i)) {
      FindEndingLock(session, id)->is_ending = false;
    }
    return GetLock(session, ids[i], Subject::kLocks).status();
  }
  return absl::OkStatus();
}

void SessionTable::CountPrompt(LockRecord& lock, size_t tokens) {
  lock.held_tokens = static_cast<uint32_t>(tokens);
  KeepBytes(*lock.session, tokens * sizeof(Token));
}

void SessionTable::DropPrompt(LockRecord& lock) {
  ReleaseBytes(*lock.session, lock.held_tokens * sizeof(Token));
  lock.held_tokens = 0;
  lock.prompt = HeldPrompt();
}

void SessionTable::KeepAnswer(Session& session, RequestId id, Answer answer) {
  ReleaseBytes(session, session.answers.bytes());
  session.answers.Add(id, std::move(answer));
  KeepBytes(session, session.answers.bytes());
}

void SessionTable::KeepBytes(Session& session, uint64_t bytes) {
  session.kept_bytes += bytes;
  kept_bytes_ += bytes;
}

void SessionTable::ReleaseBytes(Session& session, uint64_t bytes) {
  session.kept_bytes -= bytes;
  kept_bytes_ -= bytes;
}

void SessionTable::CountBlockBytes(Session& session) {
  ReleaseBytes(session, session.counted_block_bytes);
  session.counted_block_bytes =
      session.blocks->bytes + session.blocks->kinds.size() * kOpenKindBytes;
  KeepBytes(session, session.counted_block_bytes);
}

void SessionTable::MoveLock(LockRecord& lock, Node& node) {
  if (IsAudited(lock)) {
    audit_->RemoveLock(*lock.node);
    audit_->AddLock(node);
  }
  lock.node = &node;
}

void SessionTable::RemoveLock(LockRecord& lock) {
  if (IsAudited(lock)) audit_->RemoveLock(*lock.node);
  DropPrompt(lock);
  --lock.session->lock_count;
  if (lock.previous != nullptr) {
    lock.previous->next = lock.next;
  } else {
    lock.session->first_lock = lock.next;
  }
  if (lock.next != nullptr) lock.next->previous = lock.previous;
  (lock.older != nullptr ? lock.older->newer : oldest_) = lock.newer;
  (lock.newer != nullptr ? lock.newer->older : newest_) = lock.older;
  locks_.Delete(Slab<LockRecord>::HandleOf(lock));
}

absl::Status SessionTable::CheckMoreLocks(const Session& session) const {
  const uint32_t limit = limits_.max_locks;
  if (limit == 0 || session.lock_count < limit) return absl::OkStatus();
  return MakeError(Reason::kSessionLimit, Subject::kMaxLocks,
                   absl::StrCat("the session has ", session.lock_count,
                                " locks; the limit is ", limit));
}

absl::Status SessionTable::CheckMorePages(const Session& session,
                                          uint32_t pages) const {
  const uint32_t limit = limits_.max_reserved_pages;
  const size_t reserved = session.reserved.pages.size();
  if (pages == 0 || limit == 0 || reserved + pages <= limit) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kSessionLimit, Subject::kMaxReservedPages,
      absl::StrCat(pages, " pages are needed, but the session has reserved ",
                   reserved, "; the limit is ", limit));
}

uint32_t SessionTable::MaxMorePages(const Session& session) const {
  const uint32_t limit = limits_.max_reserved_pages;
  if (limit == 0) return std::numeric_limits<uint32_t>::max();
  const size_t reserved = session.reserved.pages.size();
  return limit - static_cast<uint32_t>(std::min<size_t>(limit, reserved));
}

absl::Status SessionTable::CheckMoreBytes(const Session& session,
                                          uint64_t bytes) const {
  const uint64_t limit = limits_.max_kept_bytes;
  if (bytes == 0 || limit == 0 || session.kept_bytes + bytes <= limit) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kSessionLimit, Subject::kMaxKeptBytes,
      absl::StrCat("the call needs ", bytes, " bytes, and ", session.kept_bytes,
                   " are kept for the session; the limit is ", limit));
}

// The limits of blocks do not apply to internal sessions, which limit
// themselves.
absl::Status SessionTable::CheckMoreLockedBlocks(const Session& session) const {
  const uint32_t limit = limits_.max_block_locks;
  if (limit == 0 || session.is_internal || session.blocks->locked < limit) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kSessionLimit, Subject::kMaxBlockLocks,
      absl::StrCat("the session has locked ", session.blocks->locked,
                   " blocks; the limit is ", limit));
}

absl::Status SessionTable::CheckMoreReservedBlocks(
    const Session& session) const {
  const uint32_t limit = limits_.max_reserved_blocks;
  if (limit == 0 || session.is_internal || session.blocks->reserved < limit) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kSessionLimit, Subject::kMaxReservedBlocks,
      absl::StrCat("the session has reserved ", session.blocks->reserved,
                   " blocks; the limit is ", limit));
}

}  // namespace pando
