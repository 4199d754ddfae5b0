#include "bench/replay/trace.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pando::replay {
namespace {

struct CloseGzFile {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGzFile>;

// The whole file; zlib hands plain files through.
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

absl::StatusOr<TraceRequest> ParseRequest(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("not an object");
  TraceRequest request;
  try {
    json.at("input_length").get_to(request.input_tokens);
    json.at("output_length").get_to(request.output_tokens);
    json.at("hash_ids").get_to(request.block_ids);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const size_t blocks =
      (request.input_tokens + kBlockTokens - 1) / kBlockTokens;
  if (request.block_ids.size() != blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("hash_ids: ", request.block_ids.size(), " ids for ",
                     request.input_tokens, " tokens, need ", blocks));
  }
  return request;
}

uint64_t SplitMix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

absl::StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path,
                                                    size_t max_requests) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  std::vector<TraceRequest> trace;
  std::string_view rest = *text;
  while (!rest.empty() && (max_requests == 0 || trace.size() < max_requests)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    absl::StatusOr<TraceRequest> request = ParseRequest(line);
    if (!request.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", trace.size() + 1, ": ", request.status().message()));
    }
    trace.push_back(*std::move(request));
  }
  return trace;
}

HitTokens UnlimitedCacheHits(const std::vector<TraceRequest>& trace) {
  std::unordered_set<uint32_t> seen;
  HitTokens tokens;
  for (const TraceRequest& request : trace) {
    const auto& ids = request.block_ids;
    const auto miss = std::find_if(ids.begin(), ids.end(), [&](uint32_t id) {
      return !seen.contains(id);
    });
    const uint64_t cached = (miss - ids.begin()) * uint64_t{kBlockTokens};
    tokens.hit += std::min<uint64_t>(cached, request.input_tokens);
    tokens.input += request.input_tokens;
    seen.insert(ids.begin(), ids.end());
  }
  return tokens;
}

void MakeTokens(const TraceRequest& request, std::vector<uint32_t>* tokens) {
  tokens->resize(request.input_tokens);
  for (uint32_t i = 0; i < request.input_tokens; ++i) {
    const uint64_t block = request.block_ids[i / kBlockTokens];
    (*tokens)[i] = static_cast<uint32_t>(
        SplitMix64(block * kBlockTokens + i % kBlockTokens) >> 32);
  }
}

}  // namespace pando::replay
