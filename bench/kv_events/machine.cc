#include "bench/kv_events/machine.h"

#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "bench/kv_events/thread_times.h"
#include "bench/load/load.h"
#include "bench/load/scraper.h"

namespace pando::bench {
namespace {

// The first encodes, the second sends.
const std::vector<std::string> kPublishingThreads = {"events", "ZMQbg/IO/0"};

std::string SocketIn(const std::string& folder) {
  std::filesystem::create_directories(folder);
  return folder + "/pando.sock";
}

}  // namespace

Machine::Machine(const std::string& pandod, const std::string& folder,
                 uint32_t pool_pages, bool publishes)
    : socket_(SocketIn(folder)),
      http_port_(FreePort()),
      endpoint_(absl::StrCat("tcp://127.0.0.1:", FreePort())),
      process_(OrExit(PandodProcess::Start(pandod, socket_,
                                           Flags(pool_pages, publishes)))) {}

double Machine::PublishingSeconds() const {
  return ThreadSeconds(process_.pid(), kPublishingThreads);
}

double Machine::EvictedPages() const {
  double pages = 0;
  std::istringstream lines(Scrape(http_port_));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("pando_evicted_pages_total{")) {
      pages += std::stod(line.substr(line.rfind(' ')));
    }
  }
  return pages;
}

std::vector<std::string> Machine::Flags(uint32_t pool_pages,
                                        bool publishes) const {
  std::vector<std::string> flags = {
      "--http",        absl::StrCat("127.0.0.1:", http_port_),
      "--pool-pages",  absl::StrCat(pool_pages),
      "--page-tokens", absl::StrCat(kPageTokens),
      "--layers",      "1",
      "--heads",       "1",
      "--head-size",   "1",
      "--log-level",   "error"};
  if (publishes) flags.insert(flags.end(), {"--kv-events", endpoint_});
  return flags;
}

}  // namespace pando::bench
