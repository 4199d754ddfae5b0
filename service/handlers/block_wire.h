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

// INVALID_FIELD when a namespace is too long.
absl::StatusOr<KindSpec> KindSpecOf(const v1::KindSpec& spec);
absl::StatusOr<KindName> KindNameOf(const v1::KindSpec& spec);
void FillKind(const BlockKind& kind, v1::Kind* out);

// Views of the message's keys; valid as long as the message. INVALID_FIELD when
// a shape is not known here.
absl::StatusOr<std::vector<BlockKeys>> BlockKeysOf(
    const google::protobuf::RepeatedPtrField<v1::BlockKeys>& keys);
void AppendPlaces(std::span<const BlockPlace> places, PackedIds* out);

// For operators. The kinds with the most memory come first, `limit` at most.
void FillBlockFigures(const BlockStats& stats, v1::BlockFigures* out);
void FillKinds(const BlockStats& stats, uint32_t limit,
               v1::ListKindsResponse* out);
void FillBlockExplanation(const BlockExplanation& explanation,
                          v1::ExplainBlockResponse* out);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_BLOCK_WIRE_H_
