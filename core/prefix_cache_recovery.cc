// PrefixCache: what an earlier process has left in the ledger.

#include "core/prefix_cache.h"
#include "core/sessions/session_recovery.h"

namespace pando {

void PrefixCache::Recover() {
  parts_.pool.Recover(parts_.tree.Recover());
  SessionRecovery sessions(ledger_.get(), &parts_.tree, &parts_.pool,
                           &parts_.sessions);
  if (options_.keeps_sessions) {
    CacheCounters& counters = parts_.journal.counters();
    for (const Session* session : sessions.Run()) {
      ++counters.sessions_opened;
      counters.locks_taken += session->lock_count;
      const uint8_t cell = session->reserved.ledger_cell;
      kept_sessions_.push_back({.id = session->id,
                                .owner = ledger_->session(cell).owner.text(),
                                .writers = session->writers.living()});
    }
    if (!kept_sessions_.empty()) epoch_ = ledger_->counts().epoch;
  } else {
    sessions.LoseAll();
  }
  parts_.tree.PruneRecovered();
  if (parts_.pool.count(PageState::kSealed) == 0) ledger_->SetModel("");
}

}  // namespace pando
