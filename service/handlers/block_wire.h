#ifndef PANDO_SERVICE_HANDLERS_BLOCK_WIRE_H_
#define PANDO_SERVICE_HANDLERS_BLOCK_WIRE_H_

#include <google/protobuf/repeated_field.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/requests/block_requests.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/blocks.pb.h"
#include "service/handlers/wire.h"

namespace pando {

// Converts between the messages of pando.v1.Blocks and the plain types of core.

// Both return INVALID_FIELD if a field of the namespace is too long.
absl::StatusOr<KindSpec> KindSpecOf(const v1::KindSpec& spec);
absl::StatusOr<KindName> KindNameOf(const v1::KindSpec& spec);
void FillKind(const BlockKind& kind, v1::Kind* out);

// Returns views of the message's keys, which are valid as long as the message.
// Returns INVALID_FIELD if this server does not know a shape.
absl::StatusOr<std::vector<BlockKeys>> BlockKeysOf(
    const google::protobuf::RepeatedPtrField<v1::BlockKeys>& keys);
void AppendPlaces(std::span<const BlockPlace> places, PackedIds* out);

// Results for operators. FillKinds lists at most `limit` kinds, those with the
// most memory first.
void FillBlockFigures(const BlockStats& stats, v1::BlockFigures* out);
void FillKinds(const BlockStats& stats, uint32_t limit,
               v1::ListKindsResponse* out);
void FillBlockExplanation(const BlockExplanation& explanation,
                          v1::ExplainBlockResponse* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_BLOCK_WIRE_H_
