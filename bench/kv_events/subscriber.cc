#include "bench/kv_events/subscriber.h"

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>
#include <zmq_addon.hpp>

namespace pando::bench {
namespace {

constexpr int kPatienceMs = 30'000;
constexpr int kLittleMs = 100;

}  // namespace

Subscriber::Subscriber(const std::string& endpoint)
    : socket_(context_, zmq::socket_type::sub) {
  socket_.set(zmq::sockopt::linger, 0);
  // No limit: a frame that ZeroMQ drops would be waited for without end.
  socket_.set(zmq::sockopt::rcvhwm, 0);
  socket_.set(zmq::sockopt::subscribe, "");
  socket_.connect(endpoint);
}

std::string Subscriber::Next() {
  socket_.set(zmq::sockopt::rcvtimeo, kPatienceMs);
  std::vector<zmq::message_t> parts;
  if (!zmq::recv_multipart(socket_, std::back_inserter(parts))) {
    std::cerr << "no frame of events came in " << kPatienceMs << " ms\n";
    std::exit(1);
  }
  return parts.at(2).to_string();
}

size_t Subscriber::DropPart() {
  socket_.set(zmq::sockopt::rcvtimeo, kLittleMs);
  zmq::message_t part;
  return socket_.recv(part).value_or(0);
}

size_t StoredBlocks(const std::string& payload) {
  size_t blocks = 0;
  const auto batch = nlohmann::json::from_msgpack(payload);
  for (const auto& event : batch.at(1)) {
    if (event.at("type") == "BlockStored") {
      blocks += event.at("block_hashes").size();
    }
  }
  return blocks;
}

Reader::Reader(const std::string& endpoint)
    : thread_([this, endpoint] {
        Subscriber subscriber(endpoint);
        while (!is_over_) bytes_ += subscriber.DropPart();
      }) {}

}  // namespace pando::bench
