#ifndef PANDO_CORE_BLOCKS_KIND_TABLE_H_
#define PANDO_CORE_BLOCKS_KIND_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/blocks/block_ledger.h"
#include "core/blocks/block_quotas.h"
#include "core/blocks/kind.h"
#include "core/requests/block_requests.h"

namespace pando {

// The kinds that a session has open, and the bytes that count in its account
// for each.
using OpenKindList = absl::flat_hash_map<KindNumber, Kind*>;
inline constexpr uint64_t kOpenKindBytes = 8'192;

// The kinds: all that some session has open, the newest one of each name, and
// those that still have extents.
//
// Owned by BlockTable; not thread-safe.
//
// Invariants: of each name that has a kind, one is the newest; a kind that is
// not the newest and that no session has open has ended.
class KindTable {
 public:
  // A block may have at most `extent_bytes` bytes. `quotas` and `ledger`
  // outlive this.
  KindTable(uint64_t extent_bytes, BlockQuotas* quotas, BlockLedger* ledger)
      : extent_bytes_(extent_bytes), quotas_(quotas), ledger_(ledger) {}

  // Takes over the kinds in the ledger. All but the newest of each name have
  // ended. REQUIRES: there is no kind yet.
  void Recover();

  // INVALID_FIELD if `spec` is not valid; LAYOUT_MISMATCH if the kind exists
  // with other sizes. `index` is the position of `spec` in the call, for the
  // message.
  absl::Status Check(const KindSpec& spec, size_t index) const;
  // LAYOUT_MISMATCH if both have the same name, but different sizes.
  static absl::Status CheckAgree(const KindSpec& spec, const KindSpec& there,
                                 size_t index);
  // SESSION_LIMIT if there would be more than kMaxKinds kinds with `more` new
  // ones.
  absl::Status CheckRoom(size_t more) const;
  // Returns the newest generation of the kind; makes the kind if there is none.
  // REQUIRES: Check returned OK.
  Kind& FindOrMake(const KindSpec& spec);
  // Returns the newest generation of a kind, or the kind with a number; null if
  // there is none.
  Kind* Find(const KindName& name) const;
  Kind* Find(KindNumber number) const;
  // Makes a new generation, which takes the place of `kind`, the newest one so
  // far.
  Kind& Renew(Kind& kind);

  // Adds the kind to a session's list of open kinds.
  static void Open(OpenKindList& list, Kind& kind);
  // Removes the kind from a session's list of open kinds. The kind ends if it
  // is not the newest and no other session has it open.
  void Close(OpenKindList& list, Kind& kind);
  // Closes all kinds in the list.
  void CloseAll(OpenKindList& list);

  // Deletes kinds that no session has open and that have no extents; the newest
  // one of a name goes last.
  void DeleteUnused();
  // The next kind that has ended and may still have extents to free; null if
  // there is none.
  Kind* NextEnded() const { return ended_.empty() ? nullptr : ended_.back(); }
  // Takes NextEnded() off the list: it has no extents left, or only extents
  // that are still held.
  void DropEnded() { ended_.pop_back(); }
  // Returns the indexes of kinds that have ended. Deleting them takes long, so
  // the caller does it outside the mutex.
  std::vector<std::unique_ptr<KindIndex>> TakeGarbage() {
    return std::exchange(garbage_, {});
  }

  // Visits all kinds, in the order of their numbers.
  template <typename F>
  void ForEach(F&& visit) const {
    for (const auto& [number, kind] : kinds_) visit(*kind);
  }
  // Visits at most `most` kinds after number `last`, in the order of their
  // numbers. Returns whether there are no more.
  template <typename F>
  bool ForEachAfter(KindNumber last, size_t most, F&& visit) const {
    auto kind = kinds_.upper_bound(last);
    for (; kind != kinds_.end() && most > 0; ++kind, --most) {
      visit(*kind->second);
    }
    return kind == kinds_.end();
  }
  size_t size() const { return kinds_.size(); }
  // The sum of the counters of kinds that were deleted.
  const KindCounters& ended_counters() const { return ended_counters_; }

 private:
  Kind& Make(const KindSpec& spec, uint32_t generation);
  Kind& Add(BlockKind info, uint32_t cell);
  void EndIfUnused(Kind& kind);

  const uint64_t extent_bytes_;
  BlockQuotas* const quotas_;
  BlockLedger* const ledger_;
  absl::btree_map<KindNumber, std::unique_ptr<Kind>> kinds_;
  absl::flat_hash_map<KindName, Kind*> newest_;
  std::vector<Kind*> ended_;
  std::vector<std::unique_ptr<KindIndex>> garbage_;
  KindCounters ended_counters_;
  uint32_t last_number_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_KIND_TABLE_H_
