#include "service/handlers/block_service.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/block_calls/block_ends.h"
#include "core/block_calls/block_reserve.h"
#include "core/block_calls/block_search.h"
#include "core/requests/errors.h"
#include "service/handlers/block_wire.h"
#include "service/handlers/serve_data_path.h"
#include "service/handlers/step_time.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr int kMaxKindsOfCall = 256;

// Checks the length of the list `field`: kinds, locks or indices.
absl::Status CheckCount(const char* field, int count, int limit) {
  if (count <= limit) return absl::OkStatus();
  return MakeError(
      Reason::kInvalidField,
      absl::StrCat(field, " has ", count, " entries; the limit is ", limit));
}

template <typename Request>
absl::Status CheckKinds(const Request& request) {
  if (request.kinds().empty()) {
    return MakeError(Reason::kEmptyRequest, "kinds is empty");
  }
  return CheckCount("kinds", request.kinds_size(), kMaxKindsOfCall);
}

template <typename Response>
void FillKinds(const std::vector<BlockKind>& kinds, Response& response) {
  for (const BlockKind& kind : kinds) FillKind(kind, response.add_kinds());
}

template <typename Id>
std::vector<Id> IdsOf(const auto& ids) {
  return std::vector<Id>(ids.begin(), ids.end());
}

std::span<const uint32_t> IndicesOf(const PackedIds& indices) {
  return {indices.data(), static_cast<size_t>(indices.size())};
}

// The cache's work for one call, together with the list that the work goes
// through.
template <typename W, typename Item>
class ListWork final : public SteppedCalls::Work {
 public:
  // `make` makes the work from a span of the list.
  template <typename Make>
  ListWork(PrefixCache* cache, std::vector<Item> list, Make make)
      : cache_(cache),
        list_(std::move(list)),
        work_(make(std::span<const Item>(list_))) {}

  SteppedCalls::Progress Step() override {
    return SteppedCalls::TakeSteps(*cache_, work_);
  }
  W& work() { return work_; }
  std::span<const Item> list() const { return list_; }

 private:
  PrefixCache* const cache_;
  const std::vector<Item> list_;
  W work_;
};

using ReserveWork = ListWork<BlockReserve, BlockKeys>;
using ReleaseWork = ListWork<BlockRelease, BlockLockId>;

// Searches the memory, then the tier.
class SearchWork final : public SteppedCalls::Work {
 public:
  // The questions to the tier; see AskedOfTier.
  struct AskedTier {
    BlockTier* tier;  // may be null
    SessionId session;
    bool uses = false;
    bool looks = false;
    bool loads = false;
  };

  // `make` makes the search from a span of `keys`.
  template <typename Make>
  SearchWork(PrefixCache* cache, const AskedTier& asked,
             std::vector<BlockKeys> keys, Make make)
      : cache_(cache),
        asked_(asked),
        keys_(std::move(keys)),
        search_(make(std::span<const BlockKeys>(keys_))) {}

  SteppedCalls::Progress Step() override {
    if (!look_.has_value()) {
      if (SteppedCalls::TakeSteps(*cache_, search_) !=
          SteppedCalls::Progress::kDone) {
        return SteppedCalls::Progress::kMore;
      }
      places_ = search_.Take();
      if (asked_.tier == nullptr || !places_.ok()) {
        return SteppedCalls::Progress::kDone;
      }
      look_.emplace(asked_.tier->Look({.session = asked_.session,
                                       .keys = keys_,
                                       .uses = asked_.uses,
                                       .looks = asked_.looks,
                                       .loads = asked_.loads},
                                      *places_));
    }
    const StepTime time;
    while (!look_->Step()) {
      if (time.is_over()) return SteppedCalls::Progress::kMore;
    }
    return SteppedCalls::Progress::kDone;
  }

  const absl::StatusOr<std::vector<BlockPlace>>& places() const {
    return places_;
  }
  // Returns how many blocks the tier has of those that the memory lacks.
  uint32_t kept() const { return look_.has_value() ? look_->found() : 0; }

 private:
  PrefixCache* const cache_;
  const AskedTier asked_;
  const std::vector<BlockKeys> keys_;
  BlockSearch search_;
  absl::StatusOr<std::vector<BlockPlace>> places_ = std::vector<BlockPlace>();
  std::optional<BlockLook> look_;
};

// Makes a new generation of each kind, and waits until the tier can bring back
// no block of the old ones.
class ResetWork final : public SteppedCalls::Work {
 public:
  // `tier` may be null.
  ResetWork(BlockCache* blocks, BlockTier* tier, SessionId session,
            std::vector<KindNumber> kinds, Resumable* call)
      : blocks_(blocks),
        tier_(tier),
        session_(session),
        numbers_(std::move(kinds)),
        call_(call) {}
  ~ResetWork() override {
    if (tier_ != nullptr) tier_->EndWait(*call_);
  }

  SteppedCalls::Progress Step() override {
    if (!has_begun_) {
      has_begun_ = true;
      kinds_ = blocks_->ResetKinds(session_, numbers_);
      if (tier_ != nullptr && kinds_.ok()) tier_->Renewed(*kinds_);
    }
    const bool waits =
        tier_ != nullptr && kinds_.ok() && !tier_->AreRenewed(*call_);
    return waits ? SteppedCalls::Progress::kWaits
                 : SteppedCalls::Progress::kDone;
  }
  absl::StatusOr<std::vector<BlockKind>> Take() { return std::move(kinds_); }

 private:
  BlockCache* const blocks_;
  BlockTier* const tier_;
  const SessionId session_;
  const std::vector<KindNumber> numbers_;
  Resumable* const call_;
  bool has_begun_ = false;
  absl::StatusOr<std::vector<BlockKind>> kinds_ = std::vector<BlockKind>();
};

// Fills in the places that the work has found.
template <typename Response>
absl::Status FillPlaces(BlockCall& done, Response& response) {
  ASSIGN_OR_RETURN(const std::vector<BlockPlace> places, done.Take());
  AppendPlaces(places, response.mutable_places());
  return absl::OkStatus();
}

constexpr int kMaxKeys = static_cast<int>(kMaxBlockKeys);

}  // namespace

void BlockService::AddMethodsTo(DataPath& data_path) {
  AddDataPathMethods<v1::Blocks>(this, data_path);
}

void BlockService::Register(RpcServer& server, RpcMetrics& metrics,
                            const DataPath& data_path) {
  server.AddService(&grpc_);
  ServeDataPath(server, grpc_, metrics, data_path);
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::Blocks>(this, &BlockService::AttachMemory));
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::Blocks>(this, &BlockService::OpenKinds));
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::Blocks>(this, &BlockService::FindKinds));
}

absl::Status BlockService::AttachMemory(const v1::AttachMemoryRequest& request,
                                        v1::AttachMemoryResponse& response,
                                        const WaitingCall& call) {
  const SessionId session(request.session_id());
  RETURN_IF_ERROR(cache_->CheckSession(session));
  if (memory_bytes_ == 0) {
    return MakeError(Reason::kNoBlockMemory,
                     "this server has no block memory; start it with memory");
  }
  ASSIGN_OR_RETURN(
      const AttachToken token,
      memory_->IssueToken(
          {.session = session, .what = AttachGrant::What::kBlockMemory},
          call.caller().peer));
  response.set_token(token.data(), token.size());
  response.set_memory_socket(memory_->path());
  response.set_memory_bytes(memory_bytes_);
  response.set_epoch(epoch_);
  return absl::OkStatus();
}

absl::Status BlockService::OpenKinds(const v1::OpenKindsRequest& request,
                                     v1::OpenKindsResponse& response) {
  RETURN_IF_ERROR(CheckKinds(request));
  std::vector<KindSpec> specs;
  for (const v1::KindSpec& kind : request.kinds()) {
    ASSIGN_OR_RETURN(specs.emplace_back(), KindSpecOf(kind));
  }
  ASSIGN_OR_RETURN(const std::vector<BlockKind> kinds,
                   blocks_->OpenKinds(SessionId(request.session_id()), specs));
  if (tier_ != nullptr) tier_->Opened(kinds);
  FillKinds(kinds, response);
  return absl::OkStatus();
}

absl::Status BlockService::FindKinds(const v1::FindKindsRequest& request,
                                     v1::FindKindsResponse& response) {
  RETURN_IF_ERROR(CheckKinds(request));
  std::vector<KindName> names;
  for (const v1::KindSpec& kind : request.kinds()) {
    ASSIGN_OR_RETURN(names.emplace_back(), KindNameOf(kind));
  }
  ASSIGN_OR_RETURN(const std::vector<BlockKind> kinds,
                   blocks_->FindKinds(SessionId(request.session_id()), names));
  if (tier_ != nullptr) tier_->Opened(kinds);
  FillKinds(kinds, response);
  return absl::OkStatus();
}

std::optional<absl::Status> BlockService::ResetKinds(
    const v1::ResetKindsRequest& request, v1::ResetKindsResponse& response,
    WaitingCall& call) {
  RETURN_IF_ERROR(CheckKinds(request));
  return stepped_->Answer<ResetWork>(
      call,
      [&] {
        return std::make_unique<ResetWork>(
            blocks_, tier_, SessionId(request.session_id()),
            IdsOf<KindNumber>(request.kinds()), &call);
      },
      [&](ResetWork& done) -> absl::Status {
        ASSIGN_OR_RETURN(const std::vector<BlockKind> kinds, done.Take());
        FillKinds(kinds, response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> BlockService::LookupBlocks(
    const v1::LookupBlocksRequest& request, v1::LookupBlocksResponse& response,
    WaitingCall& call) {
  if (request.peek() && request.load()) {
    return MakeError(Reason::kInvalidField,
                     "peek and load are both set; a peek loads nothing");
  }
  ASSIGN_OR_RETURN(std::vector<BlockKeys> keys, BlockKeysOf(request.keys()));
  const SessionId session(request.session_id());
  return stepped_->Answer<SearchWork>(
      call,
      [&] {
        return std::make_unique<SearchWork>(
            cache_,
            SearchWork::AskedTier{.tier = tier_,
                                  .session = session,
                                  .looks = !request.peek(),
                                  .loads = request.load()},
            std::move(keys), [&](std::span<const BlockKeys> list) {
              return BlockSearch(session, list, request.peek());
            });
      },
      [&](SearchWork& done) -> absl::Status {
        RETURN_IF_ERROR(done.places().status());
        response.set_kept(done.kept());
        AppendPlaces(*done.places(), response.mutable_places());
        return absl::OkStatus();
      });
}

std::optional<absl::Status> BlockService::AcquireBlocks(
    const v1::AcquireBlocksRequest& request,
    v1::AcquireBlocksResponse& response, WaitingCall& call) {
  ASSIGN_OR_RETURN(std::vector<BlockKeys> keys, BlockKeysOf(request.keys()));
  const SessionId session(request.session_id());
  return stepped_->Answer<SearchWork>(
      call,
      [&] {
        return std::make_unique<SearchWork>(
            cache_,
            SearchWork::AskedTier{.tier = tier_,
                                  .session = session,
                                  .uses = true,
                                  .looks = request.load(),
                                  .loads = request.load()},
            std::move(keys), [&](std::span<const BlockKeys> list) {
              return BlockSearch({.session = session,
                                  .lock = BlockLockId(request.lock()),
                                  .keys = list,
                                  .all = request.all()});
            });
      },
      [&](SearchWork& done) -> absl::Status {
        RETURN_IF_ERROR(done.places().status());
        AppendPlaces(*done.places(), response.mutable_places());
        return absl::OkStatus();
      });
}

std::optional<absl::Status> BlockService::ReserveBlocks(
    const v1::ReserveBlocksRequest& request,
    v1::ReserveBlocksResponse& response, WaitingCall& call) {
  ASSIGN_OR_RETURN(std::vector<BlockKeys> keys, BlockKeysOf(request.keys()));
  return stepped_->Answer<ReserveWork>(
      call,
      [&] {
        return std::make_unique<ReserveWork>(
            cache_, std::move(keys), [&](std::span<const BlockKeys> list) {
              return BlockReserve(
                  {.session = SessionId(request.session_id()),
                   .reservation = ReservationId(request.reservation()),
                   .keys = list,
                   .all = request.all()});
            });
      },
      [&](ReserveWork& done) { return FillPlaces(done.work(), response); });
}

template <typename Request, typename Response>
std::optional<absl::Status> BlockService::Complete(
    const Request& request, Response& response, WaitingCall& call,
    BlockCompletion::Outcome outcome) {
  RETURN_IF_ERROR(CheckCount("indices", request.indices_size(), kMaxKeys));
  const bool stores =
      tier_ != nullptr && outcome == BlockCompletion::Outcome::kPublished;
  return stepped_->AnswerFromCache<BlockCompletion>(
      call,
      [&] {
        return BlockCompletion(SessionId(request.session_id()),
                               ReservationId(request.reservation()),
                               IndicesOf(request.indices()), outcome, stores);
      },
      [&](BlockCompletion& done) -> absl::Status {
        ASSIGN_OR_RETURN(const uint32_t unknown, done.result());
        if (stores) tier_->Published(done.TakeKeys());
        response.set_unknown(unknown);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> BlockService::PublishBlocks(
    const v1::PublishBlocksRequest& request,
    v1::PublishBlocksResponse& response, WaitingCall& call) {
  return Complete(request, response, call,
                  BlockCompletion::Outcome::kPublished);
}

std::optional<absl::Status> BlockService::DiscardBlocks(
    const v1::DiscardBlocksRequest& request,
    v1::DiscardBlocksResponse& response, WaitingCall& call) {
  return Complete(request, response, call,
                  BlockCompletion::Outcome::kDiscarded);
}

std::optional<absl::Status> BlockService::ReleaseBlocks(
    const v1::ReleaseBlocksRequest& request,
    v1::ReleaseBlocksResponse& response, WaitingCall& call) {
  RETURN_IF_ERROR(CheckCount("locks", request.locks_size(), kMaxKeys));
  return stepped_->Answer<ReleaseWork>(
      call,
      [&] {
        return std::make_unique<ReleaseWork>(
            cache_, IdsOf<BlockLockId>(request.locks()),
            [&](std::span<const BlockLockId> list) {
              return BlockRelease(SessionId(request.session_id()), list);
            });
      },
      [&](ReleaseWork& done) -> absl::Status {
        ASSIGN_OR_RETURN(const uint32_t unknown, done.work().result());
        response.set_unknown(unknown);
        return absl::OkStatus();
      });
}

}  // namespace pando
