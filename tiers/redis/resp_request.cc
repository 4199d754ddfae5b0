#include "tiers/redis/resp_request.h"

#include "absl/strings/str_cat.h"

namespace pando {
namespace {

constexpr char kLineEnd[] = "\r\n";

iovec PartOf(const void* data, size_t size) {
  // The cast is safe, because a write does not change the bytes.
  return {.iov_base = const_cast<void*>(data), .iov_len = size};
}

}  // namespace

RespRequest::RespRequest(size_t words)
    : text_(absl::StrCat("*", words, kLineEnd)) {}

RespRequest::RespRequest(std::initializer_list<std::string_view> words)
    : RespRequest(words.size()) {
  for (const std::string_view word : words) Add(word);
}

void RespRequest::Add(std::string_view word) {
  absl::StrAppend(&text_, "$", word.size(), kLineEnd);
  text_ += word;
  text_ += kLineEnd;
}

void RespRequest::AddValue(std::span<const std::byte> value) {
  absl::StrAppend(&text_, "$", value.size(), kLineEnd);
  value_ = value;
  value_offset_ = text_.size();
  text_ += kLineEnd;
}

void RespRequest::AppendTo(std::vector<iovec>& parts) const {
  const auto append = [&parts](const void* data, size_t size) {
    if (size > 0) parts.push_back(PartOf(data, size));
  };
  append(text_.data(), value_offset_);
  append(value_.data(), value_.size());
  append(text_.data() + value_offset_, text_.size() - value_offset_);
}

}  // namespace pando
