#include "service/handlers/pool_service.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "core/match/freeing.h"
#include "core/requests/errors.h"
#include "service/handlers/serve_data_path.h"
#include "service/handlers/wire.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr size_t kMaxModelDigestBytes = 256;
static_assert(kMaxModelDigestBytes <= PageLedger::kMaxModelBytes);

}  // namespace

void PoolService::AddMethodsTo(DataPath& data_path) {
  AddDataPathMethods<v1::PagePool>(this, data_path);
}

void PoolService::Register(RpcServer& server, RpcMetrics& metrics,
                           const DataPath& data_path) {
  server.AddService(&grpc_);
  ServeDataPath(server, grpc_, metrics, data_path);
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::PagePool>(this, &PoolService::DescribePool));
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::PagePool>(this, &PoolService::AttachPool));
}

absl::Status PoolService::DescribePool(const v1::DescribePoolRequest&,
                                       v1::DescribePoolResponse& response) {
  *response.mutable_pool() = description_;
  response.set_epoch(epoch_);
  return absl::OkStatus();
}

absl::Status PoolService::AttachPool(const v1::AttachPoolRequest& request,
                                     v1::AttachPoolResponse& response,
                                     const WaitingCall& call) {
  const SessionId session(request.session_id());
  RETURN_IF_ERROR(cache_->CheckSession(session));
  if (open_ != nullptr) return AttachOpen(request, response);
  if (!has_pool_) {
    return absl::FailedPreconditionError(
        "this server has blocks and no pool of pages; for engines that compute "
        "in a pool start it with pool-bytes");
  }
  if (request.fingerprint() != 0 &&
      request.fingerprint() != description_.fingerprint()) {
    return MakeError(
        Reason::kLayoutMismatch,
        absl::StrFormat("fingerprint is %016x, but the pool's is %016x: layout "
                        "or model differ (see DescribePool)",
                        request.fingerprint(), description_.fingerprint()));
  }
  const std::string& digest = request.model_digest();
  RETURN_IF_ERROR(CheckModelDigest(digest));
  ASSIGN_OR_RETURN(
      const AttachToken token,
      memory_->IssueToken({.session = session}, call.caller().peer));
  if (model_digest_.empty() && !digest.empty()) TakeModel(digest);
  response.set_token(token.data(), token.size());
  response.set_memory_socket(memory_->path());
  return absl::OkStatus();
}

absl::Status PoolService::AttachOpen(const v1::AttachPoolRequest& request,
                                     v1::AttachPoolResponse& response) {
  if (!request.has_layout()) return OpenPool::HasNoPages();
  if (!open_->is_taken()) {
    RETURN_IF_ERROR(cache_->CheckIsAdmitting());
    ASSIGN_OR_RETURN(const KvShape shape, ShapeOf(request.layout()));
    RETURN_IF_ERROR(open_->Take(shape, request.model()));
  }
  response.set_takes_layout(true);
  return absl::OkStatus();
}

void PoolService::TakeModel(const std::string& digest) {
  model_digest_ = digest;
  if (on_model_ != nullptr) on_model_(digest);
}

absl::Status PoolService::CheckModelDigest(const std::string& digest) const {
  if (digest.size() > kMaxModelDigestBytes) {
    return MakeError(
        Reason::kInvalidField,
        absl::StrFormat("model_digest has %u bytes; at most %u are allowed",
                        digest.size(), kMaxModelDigestBytes));
  }
  if (digest.empty() || model_digest_.empty() || digest == model_digest_) {
    return absl::OkStatus();
  }
  return MakeError(
      Reason::kLayoutMismatch,
      absl::StrFormat("model_digest is '%s', but the pool has KV of '%s': the "
                      "configuration of the model differs from that of the "
                      "worker that attached first",
                      digest, model_digest_));
}

std::optional<absl::Status> PoolService::AllocatePages(
    const v1::AllocatePagesRequest& request,
    v1::AllocatePagesResponse& response, WaitingCall& call) {
  if (request.pages() == 0) {
    return MakeError(Reason::kEmptyRequest, "pages is 0; at least 1 is needed");
  }
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  std::optional<uint32_t> min_pages;
  if (request.has_min_pages()) min_pages = request.min_pages();
  return stepped_->AnswerFromCache<Allocation>(
      call,
      [&] {
        return cache_->Start(
            AllocateRequest{.session = SessionId(request.session_id()),
                            .ns = ns,
                            .pages = request.pages(),
                            .min_pages = min_pages,
                            .request_id = RequestId(request.request_id())});
      },
      [&](Allocation& done) -> absl::Status {
        ASSIGN_OR_RETURN(const AllocateResult result, done.Take());
        // A repeat of an answered call gets the same pages, which may be cached
        // by now.
        if (verifier_ != nullptr && !result.is_repeat) {
          verifier_->Reserved(result.pages);
        }
        AppendPages(result.pages, response.mutable_page_ids());
        response.set_free_pages(result.room.free);
        response.set_evictable_pages(result.room.evictable);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> PoolService::FreePages(
    const v1::FreePagesRequest& request, v1::FreePagesResponse&,
    WaitingCall& call) {
  if (request.page_ids().empty()) {
    return MakeError(Reason::kEmptyRequest, "page_ids is empty");
  }
  return stepped_->AnswerFromCache<Freeing>(
      call,
      [&] {
        return Freeing(SessionId(request.session_id()),
                       PagesOf(request.page_ids()),
                       RequestId(request.request_id()));
      },
      [](Freeing& done) { return done.status(); });
}

}  // namespace pando
