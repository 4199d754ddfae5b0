#ifndef PANDO_CORE_SESSIONS_SESSION_RECOVERY_H_
#define PANDO_CORE_SESSIONS_SESSION_RECOVERY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/nodes/page_ledger.h"
#include "core/nodes/page_pool.h"
#include "core/requests/answer_bytes.h"
#include "core/sessions/session_table.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Opens the sessions of an earlier process again, with their locks, reserved
// pages and last answers. A session comes back whole or not at all: it is lost
// if the process died while a call changed it, or if anything that it held is
// not in the ledger, damaged ledgers included. All that lost sessions held is
// left to RadixTree::TakeEarlierLocked and PagePool::TakeEarlier.
//
// Used once by PrefixCache, when the tree and the page pool are recovered.
class SessionRecovery {
 public:
  // All outlive this.
  SessionRecovery(PageLedger* ledger, RadixTree* tree, PagePool* pool,
                  SessionTable* sessions)
      : ledger_(ledger),
        tree_(tree),
        pool_(pool),
        sessions_(sessions),
        has_other_locks_(ledger->counts().has_more_locks != 0) {}

  // Returns the sessions that are open again.
  std::vector<const Session*> Run();
  // Opens none: all are lost.
  void LoseAll();

 private:
  // A lock of a session that may come back, by its cell in the ledger.
  struct FoundLock {
    const LockFacts* facts;
    Node* node = nullptr;
    HeldPrompt prompt = {};
  };
  // A session that may come back.
  struct Found {
    std::vector<FoundLock> locks;
    std::vector<KeptAnswer> answers;
  };

  // Finds the sessions whose own facts can be true.
  void FindSessions();
  bool IsPlausible(const SessionFacts& facts) const;
  // Reads the answers of a session. None if they are damaged.
  std::optional<std::vector<KeptAnswer>> AnswersOf(uint32_t cell) const;
  void FindLocks();
  void FindNodes();
  void FindPrompts();
  // The node that a lock of an empty prefix locks; null if it is unknown.
  Node* RootOf(const LockFacts& facts) const;
  // Opens the sessions that were found.
  std::vector<const Session*> Reopen();
  void Open(uint32_t cell, Found& found);
  void TakeLocks();
  // No session that takes a cell of a lost one gets its locks.
  void DisownOtherLocks();
  // Forgets which nodes were locked, because all their locks are back.
  void ForgetEarlierLocked();

  PageLedger* const ledger_;
  RadixTree* const tree_;
  PagePool* const pool_;
  SessionTable* const sessions_;
  // By cell; cell 0 is none.
  std::array<std::optional<Found>, kMaxLedgerSessions + 1> found_;
  std::array<Session*, kMaxLedgerSessions + 1> open_{};
  // Whether there may be locks of sessions that do not come back.
  bool has_other_locks_;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_SESSION_RECOVERY_H_
