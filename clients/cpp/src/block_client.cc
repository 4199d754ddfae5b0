#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/shard_mapping.h"
#include "pando/blocks.h"
#include "pando/v1/blocks.pb.h"

namespace pando {
inline namespace client {
namespace {

using Blocks = v1::Blocks::Stub;

template <typename Request, typename Response>
using BlockMethod = Connection::Method<Blocks, Request, Response>;

// Makes a call, and repeats it if the connection breaks. It needs no request
// id, because a repeat does nothing more than the first call.
template <typename Request, typename Response>
absl::Status Ask(Connection& connection, BlockMethod<Request, Response> method,
                 const Request& request, Response* response) {
  const absl::Time deadline = connection.CallDeadline();
  return connection.Repeat(request.session_id(), deadline, [&] {
    return connection.CallInto(connection.blocks(), method, request, response,
                               deadline);
  });
}

// Makes a call that gives something back or publishes it. If there is no
// answer, the call is repeated in the background.
template <typename Request, typename Response>
absl::Status End(Connection& connection, BlockMethod<Request, Response> method,
                 const Request& request) {
  Response none;
  absl::Status status = Ask(connection, method, request, &none);
  connection.RepeatIfUnknown(status, connection.blocks(), method, request);
  return status;
}

// Makes a call that takes a lock or a reservation. If there is no answer, the
// call `undo_method` is made in the background.
template <typename Request, typename Response, typename Undo, typename Undone>
absl::StatusOr<std::vector<Place>> Take(Connection& connection,
                                        BlockMethod<Request, Response> method,
                                        const Request& request,
                                        BlockMethod<Undo, Undone> undo_method,
                                        const Undo& undo) {
  Response response;
  const absl::Status status = Ask(connection, method, request, &response);
  connection.RepeatIfUnknown(status, connection.blocks(), undo_method, undo);
  RETURN_IF_ERROR(status);
  return ToVector(response.places());
}

template <typename Request, typename Response>
absl::Status EndReservation(Connection& connection,
                            BlockMethod<Request, Response> method,
                            uint64_t reservation,
                            std::span<const uint32_t> indices) {
  ASSIGN_OR_RETURN(const Session session, connection.PresentSession());
  Request request;
  request.set_session_id(session.id);
  request.set_reservation(reservation);
  Fill(indices, request.mutable_indices());
  return End(connection, method, request);
}

void FillKeys(std::span<const BlockKeys> keys,
              google::protobuf::RepeatedPtrField<v1::BlockKeys>* out) {
  static_assert(static_cast<int>(Shape::kPrefix) == v1::SHAPE_PREFIX);
  static_assert(static_cast<int>(Shape::kWindow) == v1::SHAPE_WINDOW);
  static_assert(static_cast<int>(Shape::kCheckpoint) == v1::SHAPE_CHECKPOINT);
  for (const BlockKeys& each : keys) {
    v1::BlockKeys& message = *out->Add();
    message.set_kind(each.kind);
    message.set_keys(each.keys.data(), each.keys.size());
    message.set_before(each.before.data(), each.before.size());
    message.set_shape(static_cast<v1::Shape>(each.shape));
    message.set_window(each.window);
  }
}

void FillSpec(const KindSpec& spec, v1::KindSpec* out) {
  if (IsSet(spec.ns)) ToProto(spec.ns, out->mutable_namespace_());
  out->set_identity(spec.identity);
  out->set_label(spec.label);
  out->set_key_bytes(spec.key_bytes);
  out->set_shard_bytes(spec.shard_bytes);
  out->set_shards(spec.shards);
}

Namespace ReadNamespace(const v1::Namespace& ns) {
  Namespace out{.bigram = ns.bigram()};
  if (ns.has_extra_key()) out.extra_key = ns.extra_key();
  if (ns.has_cache_salt()) out.cache_salt = ns.cache_salt();
  return out;
}

Kind ReadKind(const v1::Kind& kind) {
  const v1::KindSpec& spec = kind.spec();
  return {.number = kind.number(),
          .generation = kind.generation(),
          .shard_stride = kind.shard_stride(),
          .spec = {.identity = spec.identity(),
                   .label = spec.label(),
                   .key_bytes = spec.key_bytes(),
                   .shard_bytes = spec.shard_bytes(),
                   .shards = spec.shards(),
                   .ns = ReadNamespace(spec.namespace_())}};
}

std::vector<Kind> ReadKinds(
    const google::protobuf::RepeatedPtrField<v1::Kind>& kinds) {
  std::vector<Kind> out;
  for (const v1::Kind& kind : kinds) out.push_back(ReadKind(kind));
  return out;
}

}  // namespace

absl::StatusOr<BlockMemory> BlockClient::AttachMemory() const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::AttachMemoryRequest request;
  request.set_session_id(session.id);
  ASSIGN_OR_RETURN(const ReceivedMemory memory,
                   connection_->FetchMemory(
                       connection_->blocks(), &Blocks::AttachMemory, request,
                       [&] { return connection_->CheckSession(session.id); }));
  if (memory.descriptors.size() != 1) {
    return absl::InternalError(
        absl::StrCat("the memory socket sent ", memory.descriptors.size(),
                     " descriptors in place of the block memory"));
  }
  ASSIGN_OR_RETURN(
      ShardMapping mapping,
      MapShard({.device = "host", .size_bytes = memory.sizes.front()},
               memory.descriptors.front(), /*wanted=*/nullptr));
  connection_->MemoryAttached(session.id);
  return BlockMemory(session.epoch, mapping.bytes, std::move(mapping.owner));
}

absl::StatusOr<std::vector<Kind>> BlockClient::OpenKinds(
    std::span<const KindSpec> specs) const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::OpenKindsRequest request;
  request.set_session_id(session.id);
  for (const KindSpec& spec : specs) FillSpec(spec, request.add_kinds());
  v1::OpenKindsResponse response;
  RETURN_IF_ERROR(Ask(*connection_, &Blocks::OpenKinds, request, &response));
  return ReadKinds(response.kinds());
}

absl::StatusOr<std::vector<std::optional<Kind>>> BlockClient::FindKinds(
    std::span<const KindName> names) const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::FindKindsRequest request;
  request.set_session_id(session.id);
  for (const KindName& name : names) {
    FillSpec(KindSpec{.identity = name.identity, .ns = name.ns},
             request.add_kinds());
  }
  v1::FindKindsResponse response;
  RETURN_IF_ERROR(Ask(*connection_, &Blocks::FindKinds, request, &response));
  std::vector<std::optional<Kind>> found;
  for (const v1::Kind& kind : response.kinds()) {
    found.push_back(kind.number() == 0 ? std::nullopt
                                       : std::optional(ReadKind(kind)));
  }
  return found;
}

absl::StatusOr<std::vector<Kind>> BlockClient::ResetKinds(
    std::span<const uint32_t> numbers) const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::ResetKindsRequest request;
  request.set_session_id(session.id);
  Fill(numbers, request.mutable_kinds());
  v1::ResetKindsResponse response;
  RETURN_IF_ERROR(Ask(*connection_, &Blocks::ResetKinds, request, &response));
  return ReadKinds(response.kinds());
}

absl::StatusOr<std::vector<Place>> BlockClient::LookUp(
    std::span<const BlockKeys> keys, const LookUpOptions& options) const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::LookupBlocksRequest request;
  request.set_session_id(session.id);
  FillKeys(keys, request.mutable_keys());
  request.set_load(options.load);
  request.set_peek(options.peek);
  v1::LookupBlocksResponse response;
  RETURN_IF_ERROR(Ask(*connection_, &Blocks::LookupBlocks, request, &response));
  return ToVector(response.places());
}

absl::StatusOr<std::vector<Place>> BlockClient::Acquire(
    uint64_t lock, std::span<const BlockKeys> keys,
    const AcquireOptions& options) const {
  ASSIGN_OR_RETURN(const Session session, connection_->SessionOfMemory());
  v1::AcquireBlocksRequest request;
  request.set_session_id(session.id);
  request.set_lock(lock);
  FillKeys(keys, request.mutable_keys());
  request.set_all(options.all);
  request.set_load(options.load);
  v1::ReleaseBlocksRequest undo;
  undo.set_session_id(session.id);
  undo.add_locks(lock);
  return Take(*connection_, &Blocks::AcquireBlocks, request,
              &Blocks::ReleaseBlocks, undo);
}

absl::StatusOr<std::vector<Place>> BlockClient::Reserve(
    uint64_t reservation, std::span<const BlockKeys> keys, bool all) const {
  ASSIGN_OR_RETURN(const Session session, connection_->SessionOfMemory());
  v1::ReserveBlocksRequest request;
  request.set_session_id(session.id);
  request.set_reservation(reservation);
  FillKeys(keys, request.mutable_keys());
  request.set_all(all);
  v1::DiscardBlocksRequest undo;
  undo.set_session_id(session.id);
  undo.set_reservation(reservation);
  return Take(*connection_, &Blocks::ReserveBlocks, request,
              &Blocks::DiscardBlocks, undo);
}

absl::Status BlockClient::Publish(uint64_t reservation,
                                  std::span<const uint32_t> indices) const {
  return EndReservation<v1::PublishBlocksRequest>(
      *connection_, &Blocks::PublishBlocks, reservation, indices);
}

absl::Status BlockClient::Discard(uint64_t reservation,
                                  std::span<const uint32_t> indices) const {
  return EndReservation<v1::DiscardBlocksRequest>(
      *connection_, &Blocks::DiscardBlocks, reservation, indices);
}

absl::Status BlockClient::Release(std::span<const uint64_t> locks) const {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::ReleaseBlocksRequest request;
  request.set_session_id(session.id);
  request.mutable_locks()->Add(locks.begin(), locks.end());
  return End(*connection_, &Blocks::ReleaseBlocks, request);
}

}  // namespace client
}  // namespace pando
