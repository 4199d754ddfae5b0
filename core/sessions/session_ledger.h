#ifndef PANDO_CORE_SESSIONS_SESSION_LEDGER_H_
#define PANDO_CORE_SESSIONS_SESSION_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/ids.h"
#include "core/nodes/page_ledger.h"
#include "core/requests/answers.h"

namespace pando {

struct LockRecord;
struct Session;

// Writes the sessions, their locks and answers to the ledger of pages, so that
// the next process has them (SessionRecovery).
//
// A call changes many facts of its session, one after the other. If the process
// dies meanwhile, the facts are of no use, and the session is lost, as all
// sessions are without a ledger; the other sessions are not touched. So a call
// that ends the process is not repeated in the next one. A call of several
// steps changes its session until the last one, unless it has no request id.
//
// Not in the ledger: internal sessions, sessions beyond kMaxLedgerSessions,
// blocks (so Server keeps no sessions beside block memory), waits, pending
// pages.
//
// Owned by SessionTable; not thread-safe. Without a ledger it does nothing.
class SessionLedger {
 public:
  // `ledger` outlives this; null: there is none.
  explicit SessionLedger(PageLedger* ledger);

  // Points to the highest generation of all locks; null: it is not counted.
  uint32_t* lock_generation() const {
    return ledger_ == nullptr ? nullptr : &ledger_->counts().lock_generation;
  }
  // The number of sessions that were ever opened on the ledger.
  uint32_t sessions_opened() const {
    return ledger_ == nullptr ? 0 : ledger_->counts().sessions_opened;
  }

  // Gives a new session a cell, if there is one, and writes it down.
  void Open(Session& session);
  // Gives a session of an earlier process the cell that it had there.
  void Restore(Session& session, uint8_t cell);
  // From now on the session is lost if the process dies. Returns whether it was
  // not so before.
  bool BeginChange(const Session& session) const;
  void EndChange(const Session& session) const;
  // The session has ended: the next process does not have it. Its cell is not
  // free, because pages and locks still name it.
  void End(const Session& session) const;
  void FreeCell(const Session& session);

  void NoteOwner(const Session& session, const std::string& owner) const;
  void NoteWriters(const Session& session) const;
  void NoteAnswer(const Session& session, RequestId id,
                  const Answer& answer) const;
  // Writes down how the lock is now.
  void NoteLock(const LockRecord& lock) const;
  // Writes down that its release has begun.
  void NoteEnding(const LockRecord& lock) const;
  void RemoveLock(const LockRecord& lock) const;
  // Removes the locks from all cells for which `is_used` is false.
  void RemoveLocksBut(absl::FunctionRef<bool(uint32_t cell)> is_used) const;

 private:
  // The facts of a session; null if it has no cell.
  SessionFacts* FactsOf(const Session& session) const;

  PageLedger* const ledger_;
  std::vector<uint8_t> free_cells_;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_SESSION_LEDGER_H_
