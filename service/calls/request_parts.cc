#include "service/calls/request_parts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Counts the parts of a message, until there are too many, the message ends, or
// it is malformed.
class PartCounter {
 public:
  explicit PartCounter(CodedInputStream* in) : in_(in) {}

  // Counts the parts of the rest of a message of type `type`. Returns false if
  // there is no need to look at the rest of the request.
  bool Count(const Descriptor& type) {
    int last_number = 0;
    const FieldDescriptor* field = nullptr;
    while (const uint32_t tag = in_->ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number != last_number) field = type.FindFieldByNumber(number);
      last_number = number;
      if (!CountField(tag, field)) return false;
    }
    return true;
  }

  int parts() const { return parts_; }

 private:
  bool CountField(uint32_t tag, const FieldDescriptor* field) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    // No message of the protocol has groups, and a peer could nest groups
    // without end.
    if (wire_type == WireFormatLite::WIRETYPE_START_GROUP) {
      parts_ = kMaxRequestParts + 1;
      return false;
    }
    const bool is_known = field != nullptr && IsOfType(wire_type, *field);
    const Descriptor* const message =
        is_known ? field->message_type() : nullptr;
    if (message != nullptr || !is_known) ++parts_;
    if (parts_ > kMaxRequestParts) return false;
    return message != nullptr ? CountWithin(*message)
                              : WireFormatLite::SkipField(in_, tag);
  }

  // A value with the number of a field but another type is an unknown field.
  static bool IsOfType(WireFormatLite::WireType wire_type,
                       const FieldDescriptor& field) {
    const auto type = static_cast<WireFormatLite::FieldType>(field.type());
    return wire_type == WireFormatLite::WireTypeForFieldType(type) ||
           (field.is_packable() &&
            wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  }

  bool CountWithin(const Descriptor& message) {
    uint32_t size = 0;
    if (!in_->ReadVarint32(&size)) return false;
    const CodedInputStream::Limit limit =
        in_->PushLimit(static_cast<int>(size));
    const bool is_whole = Count(message) && in_->BytesUntilLimit() == 0;
    in_->PopLimit(limit);
    return is_whole;
  }

  CodedInputStream* const in_;
  int parts_ = 0;
};

}  // namespace

absl::Status CheckRequestParts(google::protobuf::io::ZeroCopyInputStream& bytes,
                               const Descriptor& type) {
  CodedInputStream in(&bytes);
  PartCounter counter(&in);
  counter.Count(type);
  if (counter.parts() <= kMaxRequestParts) return absl::OkStatus();
  return MakeError(
      Reason::kInvalidField,
      absl::StrCat("the request has more than ", kMaxRequestParts,
                   " messages within it and fields that are not known here"));
}

}  // namespace pando
