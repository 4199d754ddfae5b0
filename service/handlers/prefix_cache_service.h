#ifndef PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/prefix_cache.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "service/handlers/pending_matches.h"
#include "service/memory/page_verifier.h"
#include "service/rpc/async_service.h"
#include "service/rpc/method_metrics.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {

// The handlers of pando.v1.PrefixCache: check, convert, call the cache,
// convert. Owned by Server; runs on the polling thread; holds no state. The
// calls that wait are held by PendingMatches.
class PrefixCacheService {
 public:
  // `cache`, `pending` and `is_draining` outlive the service. While draining,
  // nothing new is admitted: a match that locks is refused. `verifier` may be
  // null: no pages are verified.
  PrefixCacheService(PrefixCache* cache, PendingMatches* pending,
                     PageVerifier* verifier, uint32_t max_tokens,
                     uint64_t epoch, const std::atomic<bool>* is_draining)
      : cache_(cache),
        pending_(pending),
        verifier_(verifier),
        max_tokens_(max_tokens),
        epoch_(epoch),
        is_draining_(is_draining) {}

  void Register(RpcServer& server, RpcMetrics& metrics);

  // None: `call` waits, and this is run again when it need not any more.
  std::optional<absl::Status> MatchPrefix(const v1::MatchPrefixRequest& request,
                                          v1::MatchPrefixResponse& response,
                                          WaitingCall& call);
  absl::Status MatchPrefixes(const v1::MatchPrefixesRequest& request,
                             v1::MatchPrefixesResponse& response);
  absl::Status Insert(const v1::InsertRequest& request,
                      v1::InsertResponse& response);
  absl::Status Lock(const v1::LockRequest& request, v1::LockResponse& response);
  absl::Status Unlock(const v1::UnlockRequest& request,
                      v1::UnlockResponse& response);
  absl::Status Evict(const v1::EvictRequest& request,
                     v1::EvictResponse& response);

 private:
  absl::StatusOr<PrefixScore> Score(const v1::PrefixQuery& query);
  void Verify(const MatchResult& result);
  void Verify(std::span<const PageId> inserted, const InsertResult& result);

  PrefixCache* const cache_;
  PendingMatches* const pending_;
  PageVerifier* const verifier_;
  const uint32_t max_tokens_;
  const uint64_t epoch_;
  const std::atomic<bool>* const is_draining_;
  AsyncService<v1::PrefixCache> grpc_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PREFIX_CACHE_SERVICE_H_
