#include "tiers/redis/resp_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr size_t kReadBuffer = size_t{16} << 10;
static_assert(kReadBuffer > RespReader::kMaxLine);

absl::Status Malformed(absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat("the shared store sent a reply ", what));
}

std::optional<int64_t> NumberOf(std::string_view line) {
  int64_t number = 0;
  const char* const end = line.data() + line.size();
  const auto [last, error] = std::from_chars(line.data(), end, number);
  if (error != std::errc() || last != end) return std::nullopt;
  return number;
}

}  // namespace

RespReader::RespReader(ByteStream* stream)
    : stream_(stream),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kReadBuffer)) {}

absl::StatusOr<RespReply> RespReader::Read(size_t max_bytes,
                                           absl::Time deadline) {
  ASSIGN_OR_RETURN(const Header header, ReadHeader(deadline));
  size_t left = max_bytes;
  return ReadReply(header, kMaxDepth, left, deadline);
}

absl::StatusOr<RespReply> RespReader::ReadInto(std::span<std::byte> value,
                                               absl::Time deadline) {
  ASSIGN_OR_RETURN(const Header header, ReadHeader(deadline));
  const std::optional<int64_t> size = NumberOf(header.line);
  if (header.kind != '$' || !size.has_value() || *size < 0) {
    size_t left = kMaxShortReply;
    return ReadReply(header, kMaxDepth, left, deadline);
  }
  const auto length = static_cast<size_t>(*size);
  RespReply reply;
  if (length == value.size()) {
    reply.kind = RespReply::Kind::kValue;
    RETURN_IF_ERROR(ReadBytes(value, deadline));
  } else if (length <= value.size() + kMaxExcess) {
    reply.kind = RespReply::Kind::kOtherLength;
    RETURN_IF_ERROR(SkipBytes(length, deadline));
  } else {
    return absl::DataLossError("its length differs");
  }
  RETURN_IF_ERROR(ReadLineEnd(deadline));
  return reply;
}

absl::StatusOr<RespReply> RespReader::ReadReply(const Header& header, int depth,
                                                size_t& left,
                                                absl::Time deadline) {
  RespReply reply;
  if (header.kind == '+' || header.kind == '-') {
    if (header.line.size() > left) return Malformed("that is too long");
    left -= header.line.size();
    reply.kind =
        header.kind == '+' ? RespReply::Kind::kText : RespReply::Kind::kError;
    reply.text = std::string(header.line);
    return reply;
  }
  const std::optional<int64_t> number = NumberOf(header.line);
  if (!number.has_value()) return Malformed("with a number that is none");
  if (header.kind == ':') {
    reply.kind = RespReply::Kind::kInteger;
    reply.integer = *number;
    return reply;
  }
  if (header.kind != '$' && header.kind != '*') {
    return Malformed("of an unknown kind");
  }
  if (*number == -1) return reply;
  if (*number < 0) return Malformed("of a negative length");
  if (header.kind == '*') return ReadArray(*number, depth, left, deadline);
  const auto length = static_cast<size_t>(*number);
  if (length > left) return Malformed("that is too long");
  left -= length;
  reply.kind = RespReply::Kind::kText;
  reply.text.resize(length);
  RETURN_IF_ERROR(ReadBytes(
      std::as_writable_bytes(std::span(reply.text.data(), length)), deadline));
  RETURN_IF_ERROR(ReadLineEnd(deadline));
  return reply;
}

absl::StatusOr<RespReply> RespReader::ReadArray(int64_t size, int depth,
                                                size_t& left,
                                                absl::Time deadline) {
  if (depth == 0) return Malformed("that is nested too deeply");
  RespReply reply;
  reply.kind = RespReply::Kind::kArray;
  for (int64_t i = 0; i < size; ++i) {
    if (left < kElementBytes) return Malformed("that is too long");
    left -= kElementBytes;
    ASSIGN_OR_RETURN(const Header header, ReadHeader(deadline));
    ASSIGN_OR_RETURN(RespReply element,
                     ReadReply(header, depth - 1, left, deadline));
    reply.elements.push_back(std::move(element));
  }
  return reply;
}

absl::StatusOr<RespReader::Header> RespReader::ReadHeader(absl::Time deadline) {
  size_t searched = 0;
  while (true) {
    const char* const begin =
        reinterpret_cast<const char*>(buffer_.get()) + begin_;
    const std::string_view text(begin, buffered());
    const size_t end = text.find('\n', searched);
    if (std::min(end, text.size()) >= kMaxLine) {
      return Malformed("whose line is too long");
    }
    if (end != text.npos) {
      if (end < 2 || text[end - 1] != '\r') return Malformed("without its end");
      begin_ += end + 1;
      return Header{.kind = text[0], .line = text.substr(1, end - 2)};
    }
    searched = text.size();
    RETURN_IF_ERROR(Fill(deadline));
  }
}

absl::Status RespReader::Fill(absl::Time deadline) {
  std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
  end_ -= begin_;
  begin_ = 0;
  ASSIGN_OR_RETURN(
      const size_t bytes,
      stream_->Read({buffer_.get() + end_, kReadBuffer - end_}, deadline));
  end_ += bytes;
  return absl::OkStatus();
}

// Bytes that are not in the buffer yet are read directly into `into`, without a
// copy.
absl::Status RespReader::ReadBytes(std::span<std::byte> into,
                                   absl::Time deadline) {
  const size_t here = std::min(into.size(), buffered());
  std::copy_n(buffer_.get() + begin_, here, into.data());
  begin_ += here;
  into = into.subspan(here);
  while (!into.empty()) {
    ASSIGN_OR_RETURN(const size_t bytes, stream_->Read(into, deadline));
    into = into.subspan(bytes);
  }
  return absl::OkStatus();
}

absl::Status RespReader::SkipBytes(size_t bytes, absl::Time deadline) {
  while (bytes > 0) {
    if (buffered() == 0) RETURN_IF_ERROR(Fill(deadline));
    const size_t here = std::min(bytes, buffered());
    begin_ += here;
    bytes -= here;
  }
  return absl::OkStatus();
}

absl::Status RespReader::ReadLineEnd(absl::Time deadline) {
  while (buffered() < 2) RETURN_IF_ERROR(Fill(deadline));
  const bool is_end = buffer_[begin_] == std::byte{'\r'} &&
                      buffer_[begin_ + 1] == std::byte{'\n'};
  begin_ += 2;
  return is_end ? absl::OkStatus() : Malformed("without its end");
}

}  // namespace pando
