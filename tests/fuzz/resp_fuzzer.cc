// Takes the bytes as the answers of a Redis server, and receives them in parts.
// Whatever the bytes are, each read must end, keep its limits, and write only
// where it may.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/tiers/redis/byte_stream_of.h"
#include "tiers/redis/redis_slots.h"
#include "tiers/redis/resp_reader.h"

namespace {

constexpr size_t kMaxValue = 300;

void Expect(bool holds) {
  if (!holds) std::abort();
}

// Returns the size of a reply, as its limit counts it.
size_t SizeOf(const pando::RespReply& reply) {
  size_t size = reply.text.size();
  for (const pando::RespReply& element : reply.elements) {
    size += pando::RespReader::kElementBytes + SizeOf(element);
  }
  return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const auto part_bytes = bytes.ConsumeIntegralInRange<size_t>(1, 40'000);
  const auto value_bytes = bytes.ConsumeIntegralInRange<size_t>(1, kMaxValue);
  const auto max_bytes = bytes.ConsumeIntegralInRange<size_t>(0, 4096);
  const auto values = bytes.ConsumeIntegral<uint8_t>();
  pando::ByteStreamOf stream(bytes.ConsumeRemainingBytesAsString(), part_bytes);
  pando::RespReader reader(&stream);
  for (int i = 0;; i = (i + 1) % 8) {
    // The value is on the heap, so that the sanitizer finds writes beside it.
    std::vector<std::byte> value(value_bytes);
    const bool is_value = (values >> i & 1) != 0;
    const absl::StatusOr<pando::RespReply> reply =
        is_value ? reader.ReadInto(value, absl::InfiniteFuture())
                 : reader.Read(max_bytes, absl::InfiniteFuture());
    if (!reply.ok()) return 0;
    Expect(SizeOf(*reply) <=
           (is_value ? pando::RespReader::kMaxShortReply : max_bytes));
    const pando::RedisAddress asked = {.host = "a", .port = 1};
    const auto slots = pando::RedisSlots::Parse(*reply, asked);
    if (slots.ok()) {
      Expect(!slots->nodes().empty());
      slots->NodeOf(reply->text);
    }
    pando::RedisRedirection::Parse(reply->text, asked);
  }
}
