// pandoctl watch --kv-events: what routers hear, without tokens and salts.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// The fields of an event that is written as an array, after its type.
const std::vector<std::string> kStoredFields = {
    "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
    "medium",       "lora_name"};
const std::vector<std::string> kRemovedFields = {"block_hashes", "medium"};

// Returns the event in the map form, whichever form it came in.
Json Named(const Json& event) {
  if (!event.is_array() || event.empty()) return event;
  Json named = {{"type", event[0]}};
  const std::vector<std::string>& fields =
      event[0] == "BlockStored" ? kStoredFields : kRemovedFields;
  for (size_t i = 0; i < fields.size() && i + 1 < event.size(); ++i) {
    named[fields[i]] = event[i + 1];
  }
  return named;
}

// Ids are written as the hashes that they begin; engines have other forms.
std::string IdText(const Json& id) {
  if (id.is_number_unsigned()) {
    return absl::StrFormat("%012x", id.get<uint64_t>() >> 16);
  }
  return id.is_number() ? id.dump() : "?";
}

std::string EventText(const Json& event) {
  const std::string type = event.value("type", "?");
  std::string text = type == "BlockStored"    ? "stored"
                     : type == "BlockRemoved" ? "removed"
                     : type == "AllBlocksCleared"
                         ? "cleared"
                         : absl::StrCat("unknown ", NameText(type));
  const auto ids = event.find("block_hashes");
  if (ids == event.end() || !ids->is_array() || ids->empty()) return text;
  absl::StrAppend(&text, " ", Counted(ids->size(), "block"));
  const auto medium = event.find("medium");
  if (medium != event.end() && medium->is_string() && *medium != "GPU") {
    absl::StrAppend(&text, " in ", NameText(medium->get<std::string>()));
  }
  if (type != "BlockStored") {
    return absl::StrCat(text, ", from ", IdText(ids->front()));
  }
  absl::StrAppend(&text, " of ", event.value("block_size", 0), " tokens");
  const auto lora = event.find("lora_name");
  if (lora != event.end() && lora->is_string()) {
    absl::StrAppend(&text, ", lora_name ", NameText(lora->get<std::string>()));
  }
  const auto parent = event.find("parent_block_hash");
  if (parent != event.end() && !parent->is_null()) {
    absl::StrAppend(&text, ", after ", IdText(*parent));
  }
  return absl::StrCat(text, ", up to ", IdText(ids->back()));
}

uint64_t NumberIn(const std::string& bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) {
    number = number << 8 | static_cast<uint8_t>(byte);
  }
  return number;
}

struct Frame {
  std::string topic;
  uint64_t sequence = 0;
  std::vector<Json> events;  // in the map form
};

// Throws what nlohmann's library throws where there are no events.
Frame Decode(const std::vector<zmq::message_t>& parts) {
  Frame frame{parts.at(0).to_string(), NumberIn(parts.at(1).to_string()), {}};
  const Json batch = Json::from_msgpack(parts.at(2).to_string());
  for (const Json& event : batch.at(1)) frame.events.push_back(Named(event));
  return frame;
}

void Print(const Output& output, const Frame& frame, Json event) {
  if (output.is_table()) {
    output.Print(absl::StrCat(frame.sequence, " ", EventText(event), "\n"));
    return;
  }
  for (const char* secret : {"token_ids", "cache_salt", "extra_keys"}) {
    event.erase(secret);
  }
  output.PrintNext(Json{{"sequence", frame.sequence},
                        {"topic", frame.topic},
                        {"event", std::move(event)}});
}

// The events of one endpoint. A subscriber of ZeroMQ waits silently where no
// publisher answers; this one reports that, and the end of a connection.
class Feed {
 public:
  explicit Feed(std::string endpoint)
      : endpoint_(std::move(endpoint)),
        socket_(context_, zmq::socket_type::sub),
        monitor_(context_, zmq::socket_type::pair) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::ipv6, absl::StrContains(endpoint_, '[') ? 1 : 0);
    zmq_socket_monitor(socket_.handle(), kMonitor,
                       ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
    monitor_.connect(kMonitor);
  }

  // Unavailable if no publisher answers in time.
  absl::Status Connect(const std::string& topic, absl::Duration timeout) {
    try {
      socket_.connect(endpoint_);
    } catch (const zmq::error_t& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--kv-events is '", endpoint_, "': ", error.what()));
    }
    socket_.set(zmq::sockopt::subscribe, topic);
    monitor_.set(zmq::sockopt::rcvtimeo,
                 static_cast<int>(absl::ToInt64Milliseconds(timeout)));
    if (NextChange() != ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      return absl::UnavailableError(
          absl::StrCat(endpoint_, " publishes no events: nobody answered in ",
                       absl::FormatDuration(timeout)));
    }
    return absl::OkStatus();
  }

  // Waits. Unavailable when the connection has ended and all was read.
  absl::StatusOr<std::vector<zmq::message_t>> Next() {
    std::vector<zmq::message_t> parts;
    while (true) {
      std::array<zmq::pollitem_t, 2> ready = {
          {{socket_.handle(), 0, ZMQ_POLLIN, 0},
           {monitor_.handle(), 0, ZMQ_POLLIN, 0}}};
      zmq::poll(ready, std::chrono::milliseconds(-1));
      if (ready[0].revents != 0 &&
          zmq::recv_multipart(socket_, std::back_inserter(parts))) {
        return parts;
      }
      if (ready[1].revents != 0 && NextChange() == ZMQ_EVENT_DISCONNECTED) {
        return absl::UnavailableError(
            absl::StrCat(endpoint_, " has ended the connection"));
      }
    }
  }

 private:
  static constexpr char kMonitor[] = "inproc://changes";

  // Returns what became of the connection (zmq_socket_monitor(3): a message has
  // 16 bits of event and a value, then the endpoint); zero when no change came
  // in time.
  uint16_t NextChange() {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(monitor_, std::back_inserter(parts))) return 0;
    uint16_t change = 0;
    std::memcpy(&change, parts.at(0).data(), sizeof(change));
    return change;
  }

  const std::string endpoint_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::socket_t monitor_;
};

}  // namespace

absl::Status WatchKvEvents(const Context& context) {
  const std::string& endpoint = context.options.kv_events;
  Feed feed(endpoint);
  RETURN_IF_ERROR(feed.Connect(context.options.topic,
                               absl::Seconds(context.options.timeout_s)));
  uint32_t shown = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<zmq::message_t> parts, feed.Next());
    try {
      const Frame frame = Decode(parts);
      for (const Json& event : frame.events) {
        Print(context.output, frame, event);
        if (++shown == context.options.count) return absl::OkStatus();
      }
    } catch (const std::exception&) {
      return absl::UnknownError(
          absl::StrCat(endpoint, " sends something else than events"));
    }
  }
}

}  // namespace pando::ctl
