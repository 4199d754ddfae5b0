#ifndef PANDO_SERVICE_CONSOLE_CONSOLE_H_
#define PANDO_SERVICE_CONSOLE_CONSOLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/kv_layout.h"
#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "pando/v1/admin.pb.h"
#include "service/calls/method_metrics.h"
#include "service/console/forest.h"
#include "service/console/refreshed.h"
#include "service/http/http_message.h"
#include "tiers/tiers.h"

namespace pando {

// Serves /console: a page that shows the cache live, and the JSON that the page
// asks for. It changes nothing in the cache, and copies the tree in short
// parts. It never shows salts, and shows tokens only if Config says so. Owned
// by Server; thread-safe.
class Console {
 public:
  using Explain = std::function<absl::Status(const v1::ExplainMatchRequest&,
                                             v1::ExplainMatchResponse&)>;
  struct Config {
    // All pointers outlive the console.
    PrefixCache* cache = nullptr;
    BlockCache* blocks = nullptr;  // null: there is no block memory
    const Tiers* tiers = nullptr;  // null: there are no tiers
    const RpcMetrics* rpc = nullptr;
    const std::atomic<bool>* is_draining = nullptr;
    Explain explain;
    uint32_t max_tokens = 0;  // the longest prompt that may be explained
    uint64_t page_bytes = 0;  // bytes of one page in all shards together
    std::string model = {};
    bool is_open = false;                // the pool waits for its layout
    const kv::Layout* layout = nullptr;  // null: there is no pool, or none yet
    bool shows_tokens = false;
    // Set if the console admits only callers that may also call
    // Admin.ExplainMatch. If neither this nor shows_tokens is set, an
    // explanation tells no more than a match would: how many whole pages are
    // cached in the namespace that was asked about.
    bool explains_fully = false;
  };

  explicit Console(Config config);

  // Answers a request for the page, its files or its JSON. Errors are JSON,
  // too: {"error": "..."} with status 400, 404, 405 or 500.
  HttpReply Answer(const HttpRequest& request);
  // Returns the size of a request's body with the longest prompt that may be
  // explained, in bytes; at most 16 MiB.
  size_t max_body_bytes() const;

 private:
  using Json = absl::StatusOr<nlohmann::json>;

  Json Ask(const HttpRequest& request);
  Json Stats();
  Json Sessions(const std::string& query);
  Json Tree(const std::string& query);
  Json Branch(const std::string& query);
  Json Locks(const std::string& query);
  Json Search(const std::string& query);
  Json Tokens(const std::string& query);
  Json ExplainMatch(const std::string& body) const;

  const Config config_;
  Refreshed<Forest> forest_;
  Refreshed<SessionList> sessions_;
  Refreshed<LockList> locks_;
  Refreshed<BlockStats> blocks_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_CONSOLE_H_
