#ifndef PANDO_CORE_OPERATORS_LISTINGS_H_
#define PANDO_CORE_OPERATORS_LISTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/journal/stats.h"
#include "core/nodes/first_entries.h"
#include "core/parts/stepped_work.h"
#include "core/requests/operator_results.h"
#include "core/sessions/session_table.h"

namespace pando {

// Lists for operators: namespaces, sessions, locks and quarantine. Each list is
// put together in steps. An entry that appears or disappears meanwhile may be
// in the list or not; one that stays is in it exactly once. explanation.h
// explains matches, tree_dump.h lists nodes.

// Stats of one moment. REQUIRES: the mutex is held.
ReuseStats ReuseStatsOf(const ReuseLearner& learner);
CacheStats StatsOf(const CacheParts& parts);

// At most `limit` namespaces, the largest first.
class NamespaceListing : public SteppedWork {
 public:
  explicit NamespaceListing(uint32_t limit) : largest_(limit) {}

  bool Step(CacheParts& parts) override;
  // Moves the list out. REQUIRES: the last Step returned true.
  NamespaceList Take();

 private:
  struct IsLarger {
    bool operator()(const NamespaceInfo& a, const NamespaceInfo& b) const;
  };

  NamespaceNumber last_;  // the last one that was visited
  FirstEntries<NamespaceInfo, IsLarger> largest_;
};

// At most `limit` sessions, the oldest first.
class SessionListing : public SteppedWork {
 public:
  explicit SessionListing(uint32_t limit) : limit_(limit) {}

  bool Step(CacheParts& parts) override;
  SessionList Take() { return std::move(list_); }

 private:
  const uint32_t limit_;
  SessionNumber last_;  // that was looked at
  SessionList list_;
};

// At most `limit` lost sessions with pages in quarantine, the oldest first.
class QuarantineListing : public SteppedWork {
 public:
  explicit QuarantineListing(uint32_t limit) : limit_(limit) {}

  bool Step(CacheParts& parts) override;
  QuarantineList Take() { return std::move(list_); }

 private:
  const uint32_t limit_;
  SessionNumber last_;  // that was looked at
  QuarantineList list_;
};

// At most `limit` locks, the oldest first.
class OldestLocks {
 public:
  explicit OldestLocks(size_t limit) : oldest_(limit) {}

  // Adds a lock that protects `pages` pages of what was asked about.
  void Add(const CacheParts& parts, const LockRecord& lock, uint32_t pages);
  // Moves the list out.
  LockList Take();

 private:
  // The id makes the order total, so that it is the same in every call.
  struct Entry {
    absl::Time taken_at;
    LockId id;
    LockInfo info;
  };
  struct IsOlder {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(a.taken_at, a.info.session, a.id) <
             std::tie(b.taken_at, b.info.session, b.id);
    }
  };

  FirstEntries<Entry, IsOlder> oldest_;
};

// Lists the locks of one session, or of all.
class LockListing : public SteppedWork {
 public:
  LockListing(uint32_t limit, std::optional<SessionNumber> session)
      : session_(session), oldest_(limit) {}

  bool Step(CacheParts& parts) override;
  LockList Take() { return oldest_.Take(); }

 private:
  const std::optional<SessionNumber> session_;
  uint32_t next_ = 0;  // the cell of the next lock
  OldestLocks oldest_;
};

// Frees all that a lost session has in quarantine, even if a writer lives.
class QuarantineRelease : public SteppedWork {
 public:
  explicit QuarantineRelease(SessionNumber session) : session_(session) {}

  bool Step(CacheParts& parts) override;
  // How many pages it freed, plus one for each block lock and each reserved
  // block; SESSION_LOST if the session has nothing in quarantine.
  absl::StatusOr<uint32_t> result() const;

 private:
  const SessionNumber session_;
  uint32_t freed_ = 0;
};

// Releases all locks of one session.
class LockRelease : public SteppedWork {
 public:
  explicit LockRelease(SessionNumber session) : session_(session) {}

  bool Step(CacheParts& parts) override;
  // How many locks it released; SESSION_LOST if there was no such session.
  absl::StatusOr<uint32_t> result() const;

 private:
  const SessionNumber session_;
  bool is_known_ = false;
  uint32_t released_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_LISTINGS_H_
