#include "service/console/console.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "os/random_id.h"
#include "service/console/block_json.h"
#include "service/console/console_query.h"
#include "service/console/explain_json.h"
#include "service/console/forest_json.h"
#include "service/console/page_files.h"
#include "service/console/search.h"
#include "service/console/session_json.h"
#include "service/console/stats_json.h"
#include "service/console/tier_json.h"
#include "service/console/tree_copy.h"

namespace pando {
namespace {

using nlohmann::json;

constexpr std::string_view kFolder = "/console/";
constexpr std::string_view kApi = "/console/api/";
constexpr char kPage[] = "index.html";
constexpr char kJson[] = "application/json";

// How many branches the page shows by default, and at most.
constexpr uint32_t kShownBranches = 400;
constexpr uint32_t kMaxShownBranches = 2'000;
// A branch that is smaller than the whole divided by this is merged with
// others.
constexpr uint32_t kShownParts = 500;
constexpr uint32_t kMaxShownParts = 10'000;
constexpr uint32_t kShownChildren = 20;
constexpr uint32_t kListedSessions = 200;
// How many sessions are listed, the oldest first. The page shows those of them
// that hold most.
constexpr uint32_t kKnownSessions = 10'000;
constexpr size_t kListedKinds = 50;
constexpr uint32_t kListedLocks = 1'000;
constexpr uint32_t kLocksOfASession = 100;
constexpr uint32_t kShownTokens = 4'096;

// The size of a prompt to explain as JSON: for each token, for the rest of the
// body, and at most.
constexpr uint64_t kBytesOfAToken = 12;
constexpr uint64_t kBytesBesideTokens = 4'096;
constexpr uint64_t kMaxBodyBytes = uint64_t{16} << 20;

// The page may load nothing from elsewhere, and no other page may frame or read
// it. $0 is the nonce of the script within the page.
constexpr char kContentSecurityPolicy[] =
    "default-src 'none'; script-src 'self' 'nonce-$0'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

uint32_t DivideRoundingUp(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a} + b - 1) / b);
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    default:
      return 500;
  }
}

HttpReply JsonReply(int status, const json& body) {
  return {status, kJson,
          body.dump(-1, ' ', false, json::error_handler_t::replace)};
}

HttpReply ErrorReply(int status, const std::string& message) {
  return JsonReply(status, {{"error", message}});
}

// Returns a file of the console. `nonce` is the nonce of the script within the
// page.
HttpReply FileReply(const std::string& path, const std::string& nonce) {
  const std::string name = path.empty() ? kPage : path;
  const PageFile* file = FindPageFile(name);
  if (file == nullptr) return ErrorReply(404, "the console has no such file");
  std::string content(file->content);
  if (name == kPage) absl::StrReplaceAll({{"NONCE", nonce}}, &content);
  return {200, std::string(file->content_type), std::move(content)};
}

// Returns the branch that `query` names.
absl::StatusOr<Forest::Index> BranchIn(const std::string& query,
                                       const Forest& forest) {
  ASSIGN_OR_RETURN(const std::string name, TextIn(query, "name", "all"));
  const std::optional<Forest::Index> found = forest.Find(name);
  if (found.has_value()) return *found;
  return absl::NotFoundError(
      absl::StrCat("name is '", name, "', which is not cached (any more)"));
}

template <typename T>
std::function<std::shared_ptr<const T>()> Maker(std::function<T()> make) {
  return [make] { return std::make_shared<const T>(make()); };
}

}  // namespace

Console::Console(Config config)
    : config_(std::move(config)),
      forest_([cache = config_.cache] {
        return std::make_shared<const Forest>(CopyWholeTree(*cache));
      }),
      sessions_(Maker<SessionList>([cache = config_.cache] {
        return cache->ListSessions(kKnownSessions);
      })),
      locks_(Maker<LockList>([cache = config_.cache] {
        return cache->ListLocks(kListedLocks, std::nullopt);
      })),
      blocks_(Maker<BlockStats>(
          [blocks = config_.blocks] { return blocks->Stats(); })) {}

size_t Console::max_body_bytes() const {
  return std::min(kMaxBodyBytes,
                  config_.max_tokens * kBytesOfAToken + kBytesBesideTokens);
}

HttpReply Console::Answer(const HttpRequest& request) {
  const std::string nonce =
      absl::StrFormat("%016x%016x", RandomId(), RandomId());
  HttpReply reply;
  if (request.path == "/console") {
    reply = {301, kJson, "", {{"Location", std::string(kFolder)}}};
  } else if (request.path.starts_with(kApi)) {
    const Json answer = Ask(request);
    reply = answer.ok() ? JsonReply(200, *answer)
                        : ErrorReply(HttpStatusOf(answer.status()),
                                     std::string(answer.status().message()));
  } else if (request.method == "GET") {
    reply = FileReply(request.path.substr(kFolder.size()), nonce);
  } else {
    reply = ErrorReply(405, "only GET is allowed");
  }
  for (const auto& [header, value] :
       {std::pair<const char*, std::string>(
            "Content-Security-Policy",
            absl::Substitute(kContentSecurityPolicy, nonce)),
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"}}) {
    reply.headers.emplace_back(header, value);
  }
  return reply;
}

Console::Json Console::Ask(const HttpRequest& request) {
  const std::string what = request.path.substr(kApi.size());
  if (request.method == "POST") {
    if (what == "explain") return ExplainMatch(request.body);
  } else if (request.method == "GET") {
    if (what == "stats") return Stats();
    if (what == "tree") return Tree(request.query);
    if (what == "branch") return Branch(request.query);
    if (what == "sessions") return Sessions(request.query);
    if (what == "locks") return Locks(request.query);
    if (what == "search") return Search(request.query);
    if (what == "tokens" && config_.shows_tokens) return Tokens(request.query);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ", request.method, " ", request.path));
}

Console::Json Console::Stats() {
  json stats = CacheJson(config_.cache->Stats());
  stats["internal_sessions"] = InternalSessions(*sessions_.Get());
  stats["blocks"] = config_.blocks == nullptr
                        ? json(nullptr)
                        : BlocksJson(*blocks_.Get(), kListedKinds);
  stats["tiers"] =
      config_.tiers == nullptr ? json::array() : TiersJson(*config_.tiers);
  stats["movers"] =
      config_.tiers == nullptr ? json::array() : MoversJson(*config_.tiers);
  stats["rpc"] = RpcJson(config_.rpc->Figures());
  stats["time_s"] = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  stats["page_tokens"] = config_.cache->page_tokens();
  stats["page_bytes"] = config_.page_bytes;
  stats["model"] = config_.model;
  stats["is_open"] = config_.is_open;
  stats["layout"] = LayoutJson(config_.layout);
  stats["is_draining"] = config_.is_draining->load(std::memory_order_relaxed);
  stats["shows_tokens"] = config_.shows_tokens;
  return stats;
}

Console::Json Console::Sessions(const std::string& query) {
  ASSIGN_OR_RETURN(const auto text, TextIn(query, "text", ""));
  return SessionsJson(*sessions_.Get(), *locks_.Get(), text, kListedSessions);
}

Console::Json Console::Tree(const std::string& query) {
  ASSIGN_OR_RETURN(const auto limit, NumberIn(query, {"limit", kShownBranches,
                                                      1, kMaxShownBranches}));
  ASSIGN_OR_RETURN(const auto parts,
                   NumberIn(query, {"parts", kShownParts, 1, kMaxShownParts}));
  const std::shared_ptr<const Forest> forest = forest_.Get();
  ASSIGN_OR_RETURN(const auto root, BranchIn(query, *forest));
  const uint32_t pages = (*forest)[root].below.pages;
  return TreeJson(*forest, root, limit,
                  std::max(1u, DivideRoundingUp(pages, parts)));
}

Console::Json Console::Branch(const std::string& query) {
  ASSIGN_OR_RETURN(const auto first,
                   NumberIn(query, {"first_child", 0, 0, UINT32_MAX}));
  const std::shared_ptr<const Forest> forest = forest_.Get();
  ASSIGN_OR_RETURN(const auto branch, BranchIn(query, *forest));
  return BranchJson(*forest, branch, first, kShownChildren);
}

Console::Json Console::Locks(const std::string& query) {
  ASSIGN_OR_RETURN(const auto session,
                   NumberIn(query, {"session", 0, 1, UINT32_MAX}));
  return LocksJson(
      config_.cache->ListLocks(kLocksOfASession, SessionNumber(session)),
      *forest_.Get());
}

Console::Json Console::Search(const std::string& query) {
  ASSIGN_OR_RETURN(const auto text, TextIn(query, "text", ""));
  return SearchJson(text, *forest_.Get(), *sessions_.Get());
}

Console::Json Console::Tokens(const std::string& query) {
  const std::shared_ptr<const Forest> forest = forest_.Get();
  ASSIGN_OR_RETURN(const auto branch, BranchIn(query, *forest));
  const NodeCopy* node = (*forest)[branch].node;
  if (node == nullptr) {
    return absl::InvalidArgumentError("name is not that of a node");
  }
  return json{
      {"tokens", config_.cache->CopyTokens(node->handle, kShownTokens)}};
}

Console::Json Console::ExplainMatch(const std::string& body) const {
  ASSIGN_OR_RETURN(const v1::ExplainMatchRequest request,
                   ExplainRequestOf(body, config_.max_tokens));
  v1::ExplainMatchResponse response;
  RETURN_IF_ERROR(config_.explain(request, response));
  if (!config_.explains_fully && !config_.shows_tokens) {
    if (response.diverged_at() > 0) {
      response.set_diverged_at(response.matched_tokens());
    }
    response.clear_longer_in_namespaces();
  }
  return ExplanationJson(response);
}

}  // namespace pando
