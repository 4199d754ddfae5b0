#include "tiers/redis/redis_slots.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr uint16_t kCrcPolynomial = 0x1021;
constexpr size_t kMaxHostBytes = 253;  // of a name in DNS
// More nodes than any cluster has.
constexpr size_t kMaxNodes = 1000;

absl::Status BadSlots() {
  return absl::UnavailableError(
      "the shared store sent slots of a cluster that make no sense");
}

// A node without a host has the host of the node that was asked.
RedisAddress NodeBeside(const RedisAddress& asked, std::string_view host,
                        uint16_t port) {
  RedisAddress node = asked;
  if (!host.empty() && host != "?") node.host = std::string(host);
  node.port = port;
  return node;
}

bool IsPort(int64_t number) { return number > 0 && number <= UINT16_MAX; }

// A slash is refused, because the address would then be a Unix socket of this
// machine.
bool IsHost(std::string_view text) {
  return text.size() <= kMaxHostBytes &&
         text.find_first_of("/ \t\r\n") == text.npos &&
         text.find('\0') == text.npos;
}

}  // namespace

RedisSlots::RedisSlots(const RedisAddress& node)
    : nodes_({node}), node_of_slot_(kSlots, 0) {}

uint16_t RedisSlots::Add(const RedisAddress& node) {
  const auto found = std::ranges::find(nodes_, node);
  const auto index = static_cast<uint16_t>(found - nodes_.begin());
  if (found == nodes_.end()) nodes_.push_back(node);
  return index;
}

// Each range has its first and last slot, its primary, then its replicas.
absl::StatusOr<RedisSlots> RedisSlots::Parse(const RespReply& reply,
                                             const RedisAddress& asked) {
  if (reply.kind != RespReply::Kind::kArray || reply.elements.empty())
    return BadSlots();
  RedisSlots slots;
  for (const RespReply& range : reply.elements) {
    if (range.elements.size() < 3) return BadSlots();
    const int64_t first = range.elements[0].integer;
    const int64_t last = range.elements[1].integer;
    const std::vector<RespReply>& node = range.elements[2].elements;
    if (node.size() < 2 || !IsHost(node[0].text) || !IsPort(node[1].integer) ||
        first < 0 || first > last || last >= int64_t{kSlots}) {
      return BadSlots();
    }
    const uint16_t index = slots.Add(NodeBeside(
        asked, node[0].text, static_cast<uint16_t>(node[1].integer)));
    if (slots.nodes_.size() > kMaxNodes) return BadSlots();
    std::fill(slots.node_of_slot_.begin() + first,
              slots.node_of_slot_.begin() + last + 1, index);
  }
  return slots;
}

// CRC-16/XMODEM.
size_t RedisSlots::SlotOf(std::string_view key) {
  uint16_t crc = 0;
  for (const char byte : key) {
    crc ^= static_cast<uint16_t>(static_cast<unsigned char>(byte) << 8);
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = (crc & 0x8000) != 0;
      crc = static_cast<uint16_t>(crc << 1);
      if (is_set) crc ^= kCrcPolynomial;
    }
  }
  return crc % kSlots;
}

const RedisAddress* RedisSlots::NodeOf(std::string_view key) const {
  const uint16_t node = node_of_slot_[SlotOf(key)];
  return node == kNobody ? nullptr : &nodes_[node];
}

// The error is like "MOVED 3999 127.0.0.1:6381" or "ASK 3999 127.0.0.1:6381".
std::optional<RedisRedirection> RedisRedirection::Parse(
    std::string_view error, const RedisAddress& asked) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(error.data(), error.size()), ' ');
  if (words.size() != 3 || (words[0] != "MOVED" && words[0] != "ASK")) {
    return std::nullopt;
  }
  const std::string& place = words[2];
  const size_t colon = place.rfind(':');
  int port = 0;
  if (colon == place.npos || !IsHost(place.substr(0, colon)) ||
      !absl::SimpleAtoi(place.substr(colon + 1), &port) || !IsPort(port)) {
    return std::nullopt;
  }
  return RedisRedirection{
      NodeBeside(asked, place.substr(0, colon), static_cast<uint16_t>(port)),
      words[0] == "ASK"};
}

}  // namespace pando
