#include "service/lane/long_call.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <string_view>

namespace pando {
namespace {

// How many bytes are copied or parsed at a time.
constexpr size_t kPartBytes = size_t{64} << 10;

// Returns the beginning of the message up to the end of a field: at least
// kPartBytes, or the whole message if it is shorter or malformed.
std::string_view FirstFields(std::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  while (static_cast<size_t>(in.CurrentPosition()) < kPartBytes) {
    const uint32_t tag = in.ReadTag();
    if (tag == 0 || !WireFormatLite::SkipField(&in, tag)) return bytes;
  }
  return bytes.substr(0, static_cast<size_t>(in.CurrentPosition()));
}

}  // namespace

bool LongCall::Step() {
  if (place_ == nullptr) return TakeStep();
  const bool is_one_part = bytes() <= kPartBytes;
  if (call_.request.size() < bytes()) {
    lane_->lane().CopyMore(call_, kPartBytes);
    if (!is_one_part) return true;
  }
  if (parsed_.ok() && parsed_bytes_ < bytes()) {
    Parse();
    if (!is_one_part) return true;
  }
  return Begin();
}

// Parses the next fields. In protobuf's encoding, each run of whole fields is a
// message, and merging these messages gives the whole one.
void LongCall::Parse() {
  const std::string_view rest =
      std::string_view(call_.request).substr(parsed_bytes_);
  if (parsed_bytes_ == 0) parsed_ = place_->CheckParts(rest);
  if (!parsed_.ok()) return;
  const std::string_view fields = FirstFields(rest);
  parsed_ = place_->ParseMore(fields);
  parsed_bytes_ += fields.size();
}

bool LongCall::Begin() {
  call_.request = {};
  FairMutexLock turn(&policy_->turn().mutex());
  return lane_->Begin(std::move(place_), call_.slot, parsed_);
}

bool LongCall::TakeStep() {
  FairMutexLock turn(&policy_->turn().mutex());
  return lane_->TakeStep();
}

}  // namespace pando
