#ifndef PANDO_SERVICE_CALLS_REQUEST_PARTS_H_
#define PANDO_SERVICE_CALLS_REQUEST_PARTS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include "absl/status/status.h"

namespace pando {

// A request of more messages within messages, and fields that the server does
// not know, is refused before it is parsed. Each of these takes two bytes on
// the wire and, once parsed, a hundred; a list of numbers takes what it takes
// on the wire. Room for the 4,096 queries of a MatchPrefixes, each with a
// namespace and a handle.
inline constexpr int kMaxRequestParts = 3 * 4096 + 64;

// Looks at the bytes of a request of this type, without making anything of
// them: ok, or INVALID_FIELD because it has too many parts. Of bytes that are
// no such message it says nothing.
absl::Status CheckRequestParts(google::protobuf::io::ZeroCopyInputStream& bytes,
                               const google::protobuf::Descriptor& type);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_REQUEST_PARTS_H_
