#ifndef PANDO_SERVICE_HANDLERS_DATA_PATH_H_
#define PANDO_SERVICE_HANDLERS_DATA_PATH_H_

#include "lane/layout.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/pool.pb.h"
#include "pando/v1/prefix_cache.pb.h"
#include "service/calls/method.h"

namespace pando {

// The methods that an engine calls for each request. Lanes and batches offer
// them, beside gRPC. The services that carry them out fill them in
// (AddMethodsTo).
struct DataPath {
  MethodPointer<v1::MatchPrefixRequest, v1::MatchPrefixResponse> match_prefix;
  MethodPointer<v1::MatchPrefixesRequest, v1::MatchPrefixesResponse>
      match_prefixes;
  MethodPointer<v1::InsertRequest, v1::InsertResponse> insert;
  MethodPointer<v1::LockRequest, v1::LockResponse> lock;
  MethodPointer<v1::UnlockRequest, v1::UnlockResponse> unlock;
  MethodPointer<v1::AllocatePagesRequest, v1::AllocatePagesResponse>
      allocate_pages;
  MethodPointer<v1::FreePagesRequest, v1::FreePagesResponse> free_pages;
  MethodPointer<v1::GetStatsRequest, v1::GetStatsResponse> get_stats;

  // Calls visit(number, method) for each of them.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    visit(lane::Method::kMatchPrefix, match_prefix);
    visit(lane::Method::kMatchPrefixes, match_prefixes);
    visit(lane::Method::kInsert, insert);
    visit(lane::Method::kLock, lock);
    visit(lane::Method::kUnlock, unlock);
    visit(lane::Method::kAllocatePages, allocate_pages);
    visit(lane::Method::kFreePages, free_pages);
    visit(lane::Method::kGetStats, get_stats);
  }
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_DATA_PATH_H_
