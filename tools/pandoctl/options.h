#ifndef PANDO_TOOLS_PANDOCTL_OPTIONS_H_
#define PANDO_TOOLS_PANDOCTL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/made_up_trace.h"

namespace pando::ctl {

// The values of all verbs' flags; command_line.cc says which verb takes which,
// and what they mean.
struct Options {
  std::string address;  // filled before a verb is called
  // The machines of a fleet; empty: `address` alone.
  std::vector<std::string> addresses;
  double timeout_s = 10;
  std::optional<std::string> tls_ca;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> token_file;
  std::string format = "table";
  bool yes = false;

  double interval_s = 1;
  uint32_t count = 0;  // zero: without end
  std::string sessions_like;
  uint32_t limit = 1000;
  std::optional<uint64_t> namespace_number;
  std::optional<uint32_t> session_number;

  std::vector<std::string> tokens;
  std::string tokens_file;
  std::optional<std::string> extra_key;
  std::string cache_salt_file;
  bool bigram = false;

  uint32_t kind_number = 0;
  std::string block_key;  // in hexadecimal

  std::optional<uint32_t> release_session;
  std::optional<uint32_t> free_session;
  uint32_t evicted_pages = 0;
  bool all = false;
  std::string policy;
  bool exit = false;
  bool wait = false;
  bool snapshot = false;
  // Endpoint and topic of the events for routers; when empty, the events of
  // gRPC are watched.
  std::string kv_events;
  std::string topic;
  std::string service;
  bool invariants = false;

  std::string trace;
  uint32_t requests = 0;  // zero: all of the trace
  uint32_t clients = 1;
  bool handles = false;
  std::string transport;
  replay::MadeUpChats chats;
};

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_OPTIONS_H_
