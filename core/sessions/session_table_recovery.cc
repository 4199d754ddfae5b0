// SessionTable: the sessions of an earlier process, which SessionRecovery found
// in the ledger.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/sessions/session_table.h"

namespace pando {

Session& SessionTable::Restore(uint8_t cell, const SessionFacts& facts) {
  auto session = std::make_unique<Session>();
  session->id = SessionId(facts.id);
  session->client_name = facts.client_name.text();
  session->opened_at = absl::FromUnixNanos(facts.opened_at);
  session->number = SessionNumber(facts.number);
  for (uint32_t i = 0; i < facts.writer_count; ++i) {
    session->writers.Add(WriterId(facts.writers[i]));
  }
  if (facts.has_unwatched_writer != 0) session->writers.AddUnwatched();
  if (facts.has_mapped != 0) session->writers.AddGone();
  opened_ = std::max(opened_, facts.number);
  ledger_.Restore(*session, cell);
  return Add(std::move(session));
}

void SessionTable::RestoreLocks(std::span<const KeptLock> locks) {
  std::vector<Slab<LockRecord>::Handle> handles;
  handles.reserve(locks.size());
  for (const KeptLock& kept : locks) handles.push_back(kept.id.value());
  locks_.Restore(handles);
  for (const KeptLock& kept : locks) {
    LockRecord& lock = *locks_.Find(kept.id.value());
    lock.session = kept.session;
    lock.node = kept.node;
    lock.taken_at = kept.taken_at;
    lock.prompt = kept.prompt;
    lock.held_tokens = kept.held_tokens;
    KeepBytes(*lock.session, kept.held_tokens * sizeof(Token));
    Link(lock);
  }
}

void SessionTable::RestoreAnswer(Session& session, RequestId id,
                                 Answer answer) {
  ReleaseBytes(session, session.answers.bytes());
  session.answers.Add(id, std::move(answer));
  KeepBytes(session, session.answers.bytes());
}

void SessionTable::ForgetEarlierLocks() {
  ledger_.RemoveLocksBut([this](uint32_t cell) {
    return cell < locks_.cells() && locks_.FindAt(cell) != nullptr;
  });
}

}  // namespace pando
