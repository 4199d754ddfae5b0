#ifndef PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/prefix_cache.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/handlers/match_call.h"
#include "service/handlers/pending_matches.h"
#include "service/handlers/stepped_calls.h"
#include "service/memory/page_verifier.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "tiers/prefix_loader.h"

namespace pando {

// The handlers of pando.v1.PrefixCache. Each handler checks and converts its
// request, calls the cache, and converts the result. Owned by Server; used in
// the turn; holds no state. PendingMatches and PrefixLoader hold the calls that
// wait.
class PrefixCacheService {
 public:
  // All pointers outlive the service. `verifier` is null if no pages are
  // verified. `max_tokens` is the most tokens that a request may have.
  PrefixCacheService(PrefixCache* cache, PendingMatches* pending,
                     SteppedCalls* stepped, PageVerifier* verifier,
                     uint32_t max_tokens, uint64_t epoch)
      : cache_(cache),
        pending_(pending),
        stepped_(stepped),
        verifier_(verifier),
        max_tokens_(max_tokens),
        epoch_(epoch) {}

  // Sets the loader, in which matches are looked up that may wait or ask for
  // it; it outlives the service. To be called before the first call.
  void set_loader(PrefixLoader* loader) { loader_ = loader; }

  // Adds the methods of the data path that this service carries out.
  void AddMethodsTo(DataPath& data_path);
  // Serves all its methods over gRPC. REQUIRES: AddMethodsTo(data_path) was
  // called.
  void Register(RpcServer& server, RpcMetrics& metrics,
                const DataPath& data_path);

  // Returns none if `call` waits: until it is known whether more of the prompt
  // can be loaded, for a pending page, or for the next step. The handler runs
  // again when the wait has ended.
  std::optional<absl::Status> MatchPrefix(const v1::MatchPrefixRequest& request,
                                          v1::MatchPrefixResponse& response,
                                          WaitingCall& call);
  // Returns none if `call` waits until its prompts are looked up, and between
  // two steps.
  std::optional<absl::Status> MatchPrefixes(
      const v1::MatchPrefixesRequest& request,
      v1::MatchPrefixesResponse& response, WaitingCall& call);
  // Returns none between two steps.
  std::optional<absl::Status> Insert(const v1::InsertRequest& request,
                                     v1::InsertResponse& response,
                                     WaitingCall& call);
  absl::Status Lock(const v1::LockRequest& request, v1::LockResponse& response);
  // Unlock and Evict return none between two steps, and run again for the next
  // one.
  std::optional<absl::Status> Unlock(const v1::UnlockRequest& request,
                                     v1::UnlockResponse& response,
                                     WaitingCall& call);
  std::optional<absl::Status> Evict(const v1::EvictRequest& request,
                                    v1::EvictResponse& response,
                                    WaitingCall& call);

 private:
  class Scoring;
  struct InsertCall;

  MatchCall::Parts match_parts() const {
    return {.cache = cache_,
            .pending = pending_,
            .loader = loader_,
            .verifier = verifier_,
            .max_tokens = max_tokens_,
            .epoch = epoch_};
  }
  absl::StatusOr<std::unique_ptr<InsertCall>> BeginInsert(
      const v1::InsertRequest& request);
  absl::Status Answer(InsertCall& done, v1::InsertResponse& response);

  absl::Status CheckQueries(const v1::MatchPrefixesRequest& request) const;
  // Asks the loader about the prompts. Returns whether the call waits for the
  // answer.
  absl::StatusOr<bool> LookUp(WaitingCall& call,
                              const v1::MatchPrefixesRequest& request);
  absl::StatusOr<PrefixScore> Score(const v1::PrefixQuery& query);
  void Verify(std::span<const PageId> inserted, const InsertResult& result);

  PrefixCache* const cache_;
  PendingMatches* const pending_;
  SteppedCalls* const stepped_;
  PageVerifier* const verifier_;
  PrefixLoader* loader_ = nullptr;  // null: there are no tiers
  const uint32_t max_tokens_;
  const uint64_t epoch_;
  AsyncService<v1::PrefixCache> grpc_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_
