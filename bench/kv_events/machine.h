#ifndef PANDO_BENCH_KV_EVENTS_MACHINE_H_
#define PANDO_BENCH_KV_EVENTS_MACHINE_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/pandod_process.h"

namespace pando::bench {

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

// A pandod in a folder of its own, with or without events.
class Machine {
 public:
  Machine(const std::string& pandod, const std::string& folder,
          uint32_t pool_pages, bool publishes);

  std::string address() const { return "unix:" + socket_; }
  const std::string& endpoint() const { return endpoint_; }
  // Processor time of the threads that do nothing but publish.
  double PublishingSeconds() const;
  double EvictedPages() const;

 private:
  std::vector<std::string> Flags(uint32_t pool_pages, bool publishes) const;

  const std::string socket_;
  const int http_port_;
  const std::string endpoint_;
  PandodProcess process_;
};

}  // namespace pando::bench

#endif  // PANDO_BENCH_KV_EVENTS_MACHINE_H_
