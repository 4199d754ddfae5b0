#ifndef PANDO_SERVICE_CALLS_REQUEST_PARTS_H_
#define PANDO_SERVICE_CALLS_REQUEST_PARTS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include "absl/status/status.h"

namespace pando {

// The most parts that a request may have. A part is a message within the
// request, or a field that the server does not know. Either may take two bytes
// on the wire and a hundred once parsed, while a list of numbers does not grow.
// So a request with more parts is refused before it is parsed. The limit is
// enough for the 4,096 queries of a MatchPrefixes, each with a namespace and a
// handle.
inline constexpr int kMaxRequestParts = 3 * 4096 + 64;

// Counts the parts in the bytes of a request of type `type`, without allocating
// memory for them. Returns INVALID_FIELD if there are more than
// kMaxRequestParts. Returns OK for bytes that are not such a message: the
// parser refuses them later.
absl::Status CheckRequestParts(google::protobuf::io::ZeroCopyInputStream& bytes,
                               const google::protobuf::Descriptor& type);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_REQUEST_PARTS_H_
