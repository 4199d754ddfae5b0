#include "core/sessions/session_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace pando {

SessionTable::SessionTable(PageLedger* ledger)
    : ledger_(ledger),
      locks_(ledger_.lock_generation()),
      opened_(ledger_.sessions_opened()) {}

Session& SessionTable::Open(SessionId id, std::string client_name,
                            absl::Time now, bool is_internal) {
  auto session = std::make_unique<Session>();
  session->id = id;
  session->client_name = std::move(client_name);
  session->opened_at = now;
  session->number = SessionNumber(++opened_);
  session->is_internal = is_internal;
  Session& opened = Add(std::move(session));
  ledger_.Open(opened);
  return opened;
}

Session& SessionTable::Add(std::unique_ptr<Session> session) {
  session->blocks->number = session->number;
  const SessionId id = session->id;
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
  BeginChange(*session);
  return session;
}

void SessionTable::BeginChange(Session& session) {
  if (ledger_.BeginChange(session)) changing_.push_back(&session);
}

void SessionTable::EndChanges() {
  std::erase_if(changing_, [this](const Session* session) {
    if (!session->under_way.empty()) return false;
    ledger_.EndChange(*session);
    return true;
  });
}

absl::StatusOr<Session*> SessionTable::GetAccount(SessionId id) {
  if (id == SessionId()) return &no_session_;
  return Get(id);
}

void SessionTable::End(Session& session, const SessionEnd& end) {
  session.end = end;
  std::erase(changing_, &session);
  ledger_.End(session);
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
  ledger_.FreeCell(session);
  ended_.pop_front();
}

LockRecord& SessionTable::AddLock(Session& session, Node& node,
                                  absl::Time now) {
  LockRecord& lock = locks_.New();
  lock.session = &session;
  lock.node = &node;
  lock.taken_at = now;
  Link(lock);
  if (IsAudited(lock)) audit_->AddLock(node);
  ledger_.NoteLock(lock);
  return lock;
}

void SessionTable::Link(LockRecord& lock) {
  lock.next = lock.session->first_lock;
  if (lock.next != nullptr) lock.next->previous = &lock;
  lock.session->first_lock = &lock;
  ++lock.session->lock_count;
  lock.older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = &lock;
  newest_ = &lock;
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
  for (LockId id : ids) ledger_.NoteEnding(*FindEndingLock(session, id));
  return absl::OkStatus();
}

void SessionTable::CountPrompt(LockRecord& lock, size_t tokens) {
  if (tokens == 0) return;
  lock.held_tokens = static_cast<uint32_t>(tokens);
  KeepBytes(*lock.session, tokens * sizeof(Token));
  ledger_.NoteLock(lock);
}

void SessionTable::HoldPrompt(LockRecord& lock, HeldPrompt prompt) {
  lock.prompt = std::move(prompt);
  ledger_.NoteLock(lock);
}

void SessionTable::AdvancePrompt(LockRecord& lock, uint32_t tokens) {
  lock.prompt.begin += tokens;
  ledger_.NoteLock(lock);
}

void SessionTable::DropPrompt(LockRecord& lock) {
  ForgetPrompt(lock);
  ledger_.NoteLock(lock);
}

void SessionTable::ForgetPrompt(LockRecord& lock) {
  ReleaseBytes(*lock.session, lock.held_tokens * sizeof(Token));
  lock.held_tokens = 0;
  lock.prompt = HeldPrompt();
}

void SessionTable::KeepAnswer(Session& session, RequestId id, Answer answer) {
  ledger_.NoteAnswer(session, id, answer);
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

void SessionTable::AddWriter(Session& session, std::optional<WriterId> writer) {
  BeginChange(session);
  if (writer.has_value()) {
    session.writers.Add(*writer);
  } else {
    session.writers.AddUnwatched();
  }
  ledger_.NoteWriters(session);
}

void SessionTable::RemoveWriter(Session& session, WriterId writer) {
  if (!session.writers.Contains(writer)) return;
  BeginChange(session);
  session.writers.Remove(writer);
  ledger_.NoteWriters(session);
}

void SessionTable::SetOwner(Session& session, const std::string& owner) {
  BeginChange(session);
  ledger_.NoteOwner(session, owner);
}

void SessionTable::MoveLock(LockRecord& lock, Node& node) {
  if (IsAudited(lock)) {
    audit_->RemoveLock(*lock.node);
    audit_->AddLock(node);
  }
  lock.node = &node;
  ledger_.NoteLock(lock);
}

void SessionTable::RemoveLock(LockRecord& lock) {
  if (IsAudited(lock)) audit_->RemoveLock(*lock.node);
  ForgetPrompt(lock);
  ledger_.RemoveLock(lock);
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
