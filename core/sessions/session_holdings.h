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
// back, an operator takes them away, or the session ends. Keeps the session
// table, the tree, the page pool and the pending pages in step. With the end of
// a session its blocks go, too; else calls take and give them back by
// BlockHolds.
//
// A lock may have locked a long path, and a session may hold much. So that no
// call waits for all of that, releasing is cut into parts by an amount of work:
// a unit is a lock, a node that becomes unlocked, or some pages.
//
// Owned by CacheParts; not thread-safe.
class SessionHoldings {
 public:
  // All outlive this.
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

  LockRecord& TakeLock(Session& session, Node& node);
  // Moves a lock to a node below its own. The page that was pending after its
  // old node is given up, unless it was published.
  void MoveLock(LockRecord& lock, Node& descendant);
  void ReleaseLock(LockRecord& lock, LockEnd end);
  // The same in bounded parts: takes what it costs off `work`, and returns
  // false when that is used up before the lock is released. From the first part
  // on no call finds the lock.
  bool ReleaseLock(LockRecord& lock, LockEnd end, uint32_t& work);
  // Frees a reserved page. The pending page that was to be written there is
  // given up.
  void FreePage(Session& session, PageId page);

  // A session that ends is found no more. EndStep then takes its locks and
  // pages away, and frees what leaves quarantine.
  SessionNumber Open(SessionId id, std::string client_name,
                     bool is_internal = false);
  // The worker ends its session and writes no more: its pages need no
  // quarantine, and leave it, if the session was lost already.
  void Close(SessionId id);
  // The liveness stream broke: the session is lost at `lost_at` unless it is
  // resumed before; at once if all its writers are gone.
  void Suspend(SessionId id, absl::Time lost_at);
  // The writer writes no more to the pages of any session.
  void WriterGone(WriterId writer);
  // Ends the sessions that are lost by now (CacheJournal::time). The pages in
  // quarantine that are not written to any more leave it.
  void Expire(absl::Duration quarantine);
  // Takes a bounded part of their locks, pages and blocks from sessions that
  // have ended and from quarantine, and of their memory from kinds that have
  // ended. Returns whether there is more of that.
  bool EndStep();
  // The sessions that ended without being closed, since the last call.
  ExpiredSessions TakeExpired() { return std::exchange(expired_, {}); }
  // Frees at most `most` of the pages that a lost session has in quarantine,
  // even if a writer lives, and with the last ones its blocks. Returns how many
  // pages, and a block hold counts as one.
  uint32_t FreeQuarantine(SessionNumber number, uint32_t most);

  const Quarantine& quarantine() const { return quarantine_; }
  // The blocks that have left quarantine and are not released yet.
  Quarantine::BlockCounts released_counts() const;
  // The pages that are quarantined for writers, and not in quarantine(): on the
  // way there, or not free yet.
  size_t quarantined_elsewhere() const;

 private:
  friend class DamagedCache;  // tests break what CheckInvariants finds

  // It was in quarantine, and is being released.
  struct Released {
    std::vector<PageId> pages;
    std::unique_ptr<BlockOwner> blocks;  // null: none
  };

  void End(Session& session, const SessionEnd& end);
  // Ends a session whose writers are all gone.
  void EndLost(Session& session) {
    End(session, {.of_locks = LockEnd::kSessionLost, .quarantined_until = {}});
  }
  // Both return whether they are done, as `work` was enough.
  bool ReleaseLocks(Session& session, LockEnd end, uint32_t& work);
  bool FreeReserved(Session& session, uint32_t& work);
  bool ReleaseBlocks(Session& session, uint32_t& work);
  // Puts its reserved pages and its blocks into quarantine. Returns whether it
  // is done.
  bool QuarantineRest(Session& session, absl::Time until, uint32_t& work);
  bool ReleaseFromQuarantine(uint32_t& work);
  bool FreeQuarantined(std::vector<PageId>& pages, uint32_t& work);
  // The session, which has ended, does not need quarantine any more.
  void SkipQuarantine(Session& ended);
  // The first of the ended sessions holds nothing any more.
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
