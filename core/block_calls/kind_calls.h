#ifndef PANDO_CORE_BLOCK_CALLS_KIND_CALLS_H_
#define PANDO_CORE_BLOCK_CALLS_KIND_CALLS_H_

#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/block_calls/block_call.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"

namespace pando {

// The base of BlockCache::OpenKinds, FindKinds and ResetKinds. Each takes one
// step.
class KindCall : public SteppedWork {
 public:
  bool Step(CacheParts& parts) final;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<std::vector<BlockKind>> Take();

 protected:
  // `count` is how many kinds the call names.
  KindCall(SessionId session, size_t count);

  // Returns whether the call may be carried out. Changes nothing.
  virtual absl::Status Check(const CacheParts& parts,
                             const Session& session) const = 0;
  // Carries the call out. REQUIRES: Check returned OK.
  virtual void Do(CacheParts& parts, Session& session) = 0;

  // SESSION_LIMIT if the session would have too many kinds open with `more` new
  // ones.
  static absl::Status CheckMayOpen(const Session& session, size_t more);
  static bool IsOpen(const Session& session, const Kind* kind) {
    return kind != nullptr && session.blocks->kinds.contains(kind->info.number);
  }
  // Opens the kind for the session, and appends it to the answer.
  void Open(Session& session, Kind& kind);

  std::vector<BlockKind> kinds_;

 private:
  absl::Status TryStep(CacheParts& parts);

  const SessionId session_id_;
  const size_t count_;
  absl::Status status_;
};

class KindOpening : public KindCall {
 public:
  KindOpening(SessionId session, std::span<const KindSpec> specs)
      : KindCall(session, specs.size()), specs_(specs) {}

  void Prepare() override;

 protected:
  absl::Status Check(const CacheParts& parts,
                     const Session& session) const override;
  void Do(CacheParts& parts, Session& session) override;

 private:
  const std::span<const KindSpec> specs_;
  // An error if a kind is named twice with different sizes.
  absl::Status agreement_;
};

class KindSearch : public KindCall {
 public:
  KindSearch(SessionId session, std::span<const KindName> names)
      : KindCall(session, names.size()), names_(names) {}

 protected:
  absl::Status Check(const CacheParts& parts,
                     const Session& session) const override;
  void Do(CacheParts& parts, Session& session) override;

 private:
  const std::span<const KindName> names_;
};

class KindReset : public KindCall {
 public:
  KindReset(SessionId session, std::span<const KindNumber> kinds)
      : KindCall(session, kinds.size()), numbers_(kinds) {}

 protected:
  absl::Status Check(const CacheParts& parts,
                     const Session& session) const override;
  void Do(CacheParts& parts, Session& session) override;

 private:
  const std::span<const KindNumber> numbers_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_KIND_CALLS_H_
