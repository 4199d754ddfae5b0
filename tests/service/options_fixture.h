#ifndef PANDO_TESTS_SERVICE_OPTIONS_FIXTURE_H_
#define PANDO_TESTS_SERVICE_OPTIONS_FIXTURE_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "service/options/options.h"

namespace pando {

// Returns options, each with a value that is not its default. A few options are
// missing because they exclude others; see options_test.cc.
inline const std::vector<std::pair<std::string, std::string>>& OtherValues() {
  static const auto* const values =
      new std::vector<std::pair<std::string, std::string>>{
          {"socket", "/tmp/a.sock"},
          {"memory-socket", "/tmp/b.sock"},
          {"mover-socket", "/tmp/c.sock"},
          {"socket-mode", "0600"},
          {"socket-group", "pando"},
          {"allowed-uids", "1000,1001"},
          {"tcp", "0.0.0.0:7000"},
          {"tls-certificate", "/tls/tls.crt"},
          {"tls-key", "/tls/tls.key"},
          {"tls-client-ca", "/tls/ca.crt"},
          {"http", "[::1]:80"},
          {"http-hosts", "pando.example,pando"},
          {"console", "no"},
          {"console-show-tokens", "yes"},
          {"pool-pages", "77"},
          {"pool-memory", "cuda"},
          {"pool-devices", "1,0,GPU-7"},
          {"pool-shards", "3"},
          {"page-tokens", "32"},
          {"layers", "5"},
          {"kv-planes", "1"},
          {"heads", "6"},
          {"head-size", "64"},
          {"dtype", "float8_e4m3"},
          {"layout-order", "page_first"},
          {"page-format", "nhd"},
          {"model", "tiny"},
          {"memory", "67108864"},
          {"memory-nodes", "0-1,4"},
          {"block-extent", "1048576"},
          {"block-tier-disk", "/blocks"},
          {"block-tier-disk-bytes", "6442450944"},
          {"block-write-limit", "5s"},
          {"eviction-policy", "slru"},
          {"learn-reuse", "yes"},
          {"low-free-pages", "5"},
          {"high-free-pages", "9"},
          {"session-grace", "3s"},
          {"quarantine", "1m"},
          {"attach-token-ttl", "1.5s"},
          {"max-tokens-per-request", "99"},
          {"max-locks-per-session", "7"},
          {"max-reserved-pages-per-session", "9"},
          {"max-block-locks-per-session", "8"},
          {"max-reserved-blocks-per-session", "6"},
          {"max-kept-bytes-per-session", "1000"},
          {"max-attach-tokens-per-session", "2"},
          {"lane-bytes", "65536"},
          {"max-lanes", "3"},
          {"lane-spin", "50us"},
          {"max-calls-per-second", "1000"},
          {"max-calls-per-connection", "50"},
          {"event-history", "100"},
          {"kv-events", "tcp://*:5557"},
          {"kv-events-replay", "tcp://[::1]:5657"},
          {"kv-events-form", "array"},
          {"kv-events-topic", "kv@{worker}@{model}"},
          {"kv-events-workers", "one,two"},
          {"kv-events-block-tokens", "64"},
          {"tier-host-bytes", "3221225472"},
          {"tier-disk", "/tier"},
          {"tier-disk-bytes", "5368709120"},
          {"tier-shared", "redis://a:1?ttl=2h,redis://b:1"},
          {"block-tier-shared", "file:///mnt/blocks"},
          {"tier-shared-key-file", "/tier.key"},
          {"tier-min-load-tokens", "100"},
          {"tier-write", "second-hit"},
          {"keep", "no"},
          {"drain-timeout", "0"},
          {"check-invariants-every", "30s"},
          {"verify-pages", "0.25"},
          {"log-level", "debug"},
          {"log-format", "json"},
          {"slow-call", "20ms"}};
  return *values;
}

inline constexpr char kTwoQuotas[] =
    "quotas:\n"
    "  - {class: a, extra_key: \"tenant-a/*\", floor_pages: 10, cap_pages: "
    "20}\n"
    "  - class: b\n"
    "    extra_key: b\n";

// A fixture that parses flags, environments and files as pandod does.
class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pando_options_XXXXXX")
            .string();
    dir_ = mkdtemp(name.data());
  }
  ~OptionsTest() override { std::filesystem::remove_all(dir_); }

  std::string WriteYaml(const std::string& text) {
    const std::string path = dir_ + "/pando.yaml";
    std::ofstream(path) << text;
    return path;
  }

  static absl::StatusOr<CommandLine> Parse(
      const std::vector<std::string>& flags,
      const std::vector<std::string>& environment = {}) {
    std::vector<const char*> argv = {"pandod"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    std::vector<const char*> env;
    for (const std::string& entry : environment) env.push_back(entry.c_str());
    env.push_back(nullptr);
    return ParseOptions(static_cast<int>(argv.size()), argv.data(), env.data());
  }

  static Options Parsed(const std::vector<std::string>& flags,
                        const std::vector<std::string>& environment = {}) {
    const absl::StatusOr<CommandLine> line = Parse(flags, environment);
    EXPECT_TRUE(line.ok()) << line.status();
    return line.ok() ? line->options : Options();
  }

  static std::string Error(const std::vector<std::string>& flags,
                           const std::vector<std::string>& environment = {}) {
    const absl::Status status = Parse(flags, environment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  std::string YamlError(const std::string& text) {
    return Error({"--config", WriteYaml(text)});
  }

  std::string dir_;
};

}  // namespace pando

#endif  // PANDO_TESTS_SERVICE_OPTIONS_FIXTURE_H_
