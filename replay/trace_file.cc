// Reads traces from files.
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "replay/trace.h"

namespace pando::replay {
namespace {

constexpr uint32_t kBlockTokensOfRequestLines = 512;
constexpr double kSecondsBetweenConversations = 60;

struct CloseGzFile {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGzFile>;

// Reads the whole file; zlib hands plain files through.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, path);
  std::string text;
  char chunk[1 << 16];
  int got;
  while ((got = gzread(file.get(), chunk, sizeof(chunk))) > 0) {
    text.append(chunk, got);
  }
  if (got < 0) {
    int code;
    return absl::DataLossError(
        absl::StrCat(path, ": ", gzerror(file.get(), &code)));
  }
  return text;
}

absl::Status CheckBlocks(const char* field, uint64_t blocks, uint32_t tokens,
                         uint64_t needed) {
  if (blocks == needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", blocks, " ids for ", tokens, " tokens, need ", needed));
}

// Collects the requests of a file's lines. Its functions throw what
// nlohmann::json throws.
class TraceBuilder {
 public:
  absl::Status AddLine(const nlohmann::json& line) {
    return line.contains("requests") ? AddConversation(line) : AddRequest(line);
  }

  Trace Take(size_t max_requests) {
    std::ranges::stable_sort(requests_, {}, &TimedRequest::seconds);
    if (max_requests > 0 && requests_.size() > max_requests) {
      requests_.resize(max_requests);
    }
    Trace trace{.block_tokens = block_tokens_};
    for (TimedRequest& timed : requests_) {
      trace.requests.push_back(std::move(timed.request));
    }
    return trace;
  }

  size_t requests() const { return requests_.size(); }
  bool has_conversations() const { return conversations_ > 0; }

 private:
  struct TimedRequest {
    double seconds;
    TraceRequest request;
  };

  absl::Status SetBlockTokens(uint32_t tokens) {
    if (tokens == 0 || (block_tokens_ != 0 && block_tokens_ != tokens)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "blocks of ", tokens, " tokens after others of ", block_tokens_));
    }
    block_tokens_ = tokens;
    return absl::OkStatus();
  }

  absl::Status AddRequest(const nlohmann::json& line) {
    RETURN_IF_ERROR(SetBlockTokens(kBlockTokensOfRequestLines));
    TraceRequest request;
    line.at("input_length").get_to(request.input_tokens);
    line.at("output_length").get_to(request.output_tokens);
    line.at("hash_ids").get_to(request.block_ids);
    const uint64_t needed =
        (uint64_t{request.input_tokens} + block_tokens_ - 1) / block_tokens_;
    RETURN_IF_ERROR(CheckBlocks("hash_ids", request.block_ids.size(),
                                request.input_tokens, needed));
    requests_.push_back({.seconds = 0, .request = std::move(request)});
    return absl::OkStatus();
  }

  absl::Status AddConversation(const nlohmann::json& line) {
    RETURN_IF_ERROR(SetBlockTokens(line.at("block")));
    const double begin = conversations_++ * kSecondsBetweenConversations;
    const uint32_t first_id = next_id_;
    const size_t first_request = requests_.size();
    for (const nlohmann::json& json : line.at("requests")) {
      TraceRequest request;
      json.at("in").get_to(request.input_tokens);
      json.at("out").get_to(request.output_tokens);
      RETURN_IF_ERROR(AddRuns(json.at("h"), first_id, request));
      requests_.push_back({.seconds = begin + json.at("t").get<double>(),
                           .request = std::move(request)});
    }
    // Only here is it known which ids the conversation does not use itself.
    for (size_t i = first_request; i < requests_.size(); ++i) {
      TraceRequest& request = requests_[i].request;
      if (request.input_tokens % block_tokens_ != 0) {
        request.block_ids.push_back(next_id_++);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddRuns(const nlohmann::json& runs, uint32_t first_id,
                       TraceRequest& request) {
    const uint64_t needed = request.input_tokens / block_tokens_;
    uint64_t blocks = 0;
    for (const nlohmann::json& run : runs) {
      const uint32_t first = run.at(0);
      const uint32_t count = run.at(1);
      blocks += count;
      if (blocks > needed) break;
      for (uint32_t i = 0; i < count; ++i) {
        request.block_ids.push_back(first_id + first + i);
      }
      next_id_ = std::max(next_id_, first_id + first + count);
    }
    return CheckBlocks("h", blocks, request.input_tokens, needed);
  }

  uint32_t block_tokens_ = 0;
  uint32_t conversations_ = 0;
  // Greater than all ids so far.
  uint32_t next_id_ = 0;
  std::vector<TimedRequest> requests_;
};

absl::Status AddLine(std::string_view text, TraceBuilder& builder) {
  const auto line = nlohmann::json::parse(text, nullptr,
                                          /*allow_exceptions=*/false);
  if (!line.is_object()) return absl::InvalidArgumentError("not an object");
  try {
    return builder.AddLine(line);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path, size_t max_requests) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  TraceBuilder builder;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    // Conversations overlap in time: the first requests may be of any of them.
    const bool is_enough = max_requests > 0 && !builder.has_conversations() &&
                           builder.requests() >= max_requests;
    if (is_enough) break;
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (absl::Status status = AddLine(line, builder); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", status.message()));
    }
  }
  return builder.Take(max_requests);
}

}  // namespace pando::replay
