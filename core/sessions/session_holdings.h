#ifndef PANDO_CORE_SESSIONS_SESSION_HOLDINGS_H_
#define PANDO_CORE_SESSIONS_SESSION_HOLDINGS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/blocks/block_holds.h"
#include "core/blocks/block_table.h"
#include "core/journal/cache_journal.h"
#include "core/journal/measurements.h"
#include "core/nodes/page_pool.h"
#include "core/requests/requests.h"
#include "core/sessions/pending_pages.h"
#include "core/sessions/quarantine.h"
#include "core/sessions/session_table.h"
#include "core/tree/radix_tree.h"

namespace pando {

// How sessions get and lose locks and reserved pages: a session gives them
// back, an operator takes them away, or the session ends. It keeps the session
// table, the tree, the page pool and the pending pages in step. It also
// releases the blocks of a session that ends; otherwise sessions take and give
// back blocks by BlockHolds.
//
// A lock may have locked a long path, and a session may hold much. So that no
// call waits for all of that, releasing is cut into parts. A function with the
// parameter `work` does at most that much and subtracts what it did; one unit
// is a lock, a node that becomes unlocked, or a few pages.
//
// Owned by CacheParts; not thread-safe.
class SessionHoldings {
 public:
  // All arguments outlive this.
  SessionHoldings(RadixTree* tree, PagePool* pool, SessionTable* sessions,
                  PendingPages* pending, CacheJournal* journal,
                  BlockTable* blocks, BlockHolds* block_holds)
      : tree_(tree),
        pool_(pool),
        sessions_(sessions),
        pending_(pending),
        journal_(journal),
        blocks_(blocks),
        block_holds_(block_holds) {}

  // Locks a node for a session.
  LockRecord& TakeLock(Session& session, Node& node);
  // Moves a lock to `descendant`, a node below its own. If the pending page
  // after the old node was not published, it is given up.
  void MoveLock(LockRecord& lock, Node& descendant);
  // Releases a lock. The page that its session computed after it is given up.
  void ReleaseLock(LockRecord& lock, LockEnd end);
  // The same in bounded parts. Returns false if `work` is used up before the
  // lock is released; call it again. After the first part, no call finds the
  // lock any more.
  bool ReleaseLock(LockRecord& lock, LockEnd end, uint32_t& work);
  // Frees a reserved page. The pending page that was to be written there is
  // given up.
  void FreePage(Session& session, PageId page);

  // Opens a session. When it ends, no call finds it any more; EndStep then
  // releases its locks and pages.
  SessionNumber Open(SessionId id, std::string client_name,
                     bool is_internal = false);
  // Ends a session at the wish of its worker, which writes no more: its pages
  // need no quarantine. If the session was lost already, its pages leave
  // quarantine.
  void Close(SessionId id);
  // Notes that the liveness stream broke: the session is lost at `lost_at`
  // unless it is resumed before. If all its writers are gone, it is lost at
  // once.
  void Suspend(SessionId id, absl::Time lost_at);
  // Notes that the writer is gone and writes to no session's pages any more.
  void WriterGone(WriterId writer);
  // Ends the sessions that are lost by now (CacheJournal::time). The pages in
  // quarantine that are not written to any more leave it.
  void Expire(absl::Duration quarantine);
  // Does a bounded part of what ends leave behind: releases locks, pages and
  // blocks of sessions that have ended, what has left quarantine, and extents
  // of kinds that have ended. Returns whether more is left.
  bool EndStep();
  // Returns the sessions that ended without being closed since the last call.
  ExpiredSessions TakeExpired() { return std::exchange(expired_, {}); }
  // Frees at most `most` of the pages that a lost session has in quarantine,
  // even if a writer lives. With the last page its blocks leave quarantine;
  // EndStep releases them. Returns how many pages it freed, plus one for each
  // block lock and each reserved block.
  uint32_t FreeQuarantine(SessionNumber number, uint32_t most);

  const Quarantine& quarantine() const { return quarantine_; }
  // The blocks that have left quarantine and are not released yet.
  Quarantine::BlockCounts released_counts() const;
  // How many pages are in state kQuarantined but not in quarantine(): they are
  // on their way into it, or have left it and are not free yet.
  size_t quarantined_elsewhere() const;

 private:
  friend class DamagedCache;  // tests break what CheckInvariants finds

  // Pages and blocks that have left quarantine and are being released.
  struct Released {
    std::vector<PageId> pages;
    std::unique_ptr<BlockOwner> blocks;  // null: none
  };

  void End(Session& session, const SessionEnd& end);
  // Ends a lost session that needs no quarantine: its writers are all gone, or
  // it holds nothing that they could use.
  void EndLost(Session& session) {
    End(session, {.of_locks = LockEnd::kSessionLost, .quarantined_until = {}});
  }
  // These three return whether they are done, that is, whether `work` was
  // enough.
  bool ReleaseLocks(Session& session, LockEnd end, uint32_t& work);
  bool FreeReserved(Session& session, uint32_t& work);
  bool ReleaseBlocks(Session& session, uint32_t& work);
  // Puts the session's reserved pages and blocks into quarantine. Returns
  // whether it is done.
  bool QuarantineRest(Session& session, absl::Time until, uint32_t& work);
  bool ReleaseFromQuarantine(uint32_t& work);
  bool FreeQuarantined(std::vector<PageId>& pages, uint32_t& work);
  // Makes EndStep free the pages and blocks of an ended session that were to go
  // to quarantine.
  void SkipQuarantine(Session& ended);
  // Counts and reports the end of a session that holds nothing any more.
  void NoteEnded(const Session& session);
  void FreeBatches(std::vector<Quarantine::Batch> batches);

  RadixTree* const tree_;
  PagePool* const pool_;
  SessionTable* const sessions_;
  PendingPages* const pending_;
  CacheJournal* const journal_;
  BlockTable* const blocks_;
  BlockHolds* const block_holds_;
  Quarantine quarantine_;
  std::deque<Released> released_;
  ExpiredSessions expired_;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_SESSION_HOLDINGS_H_
