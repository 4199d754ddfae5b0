#ifndef PANDO_TESTS_CLIENTS_PANDOD_FIXTURE_H_
#define PANDO_TESTS_CLIENTS_PANDOD_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "pando/client.h"
#include "replay/pandod_process.h"

namespace pando {

inline constexpr uint32_t kPageTokens = 16;
inline constexpr uint32_t kPoolPages = 65;
inline constexpr uint32_t kMaxTokens = 4096;

// Runs a real pandod on a Unix socket in a folder of its own.
class PandodTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "pando-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    StartPandod();
  }

  void TearDown() override {
    pandod_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Returns the flags of pandod other than its socket.
  virtual std::vector<std::string> Flags() const {
    return {"--http",
            "",
            "--pool-pages",
            std::to_string(kPoolPages),
            "--page-tokens",
            std::to_string(kPageTokens),
            "--layers",
            "2",
            "--heads",
            "2",
            "--head-size",
            "8",
            "--dtype",
            "float32",
            "--model=llama",
            "--max-tokens-per-request",
            std::to_string(kMaxTokens),
            "--log-level",
            "error"};
  }
  // Returns flags in addition to those of Flags().
  virtual std::vector<std::string> MoreFlags() const { return {}; }

  void StartPandod() {
    std::vector<std::string> flags = Flags();
    const std::vector<std::string> more = MoreFlags();
    flags.insert(flags.end(), more.begin(), more.end());
    absl::StatusOr<PandodProcess> process =
        PandodProcess::Start(PANDOD, socket_path(), flags);
    ASSERT_TRUE(process.ok()) << process.status();
    pandod_ = *std::move(process);
  }

  std::string socket_path() const { return folder_ / "pando.sock"; }

  // Returns a connected client. Aborts if it cannot connect.
  std::unique_ptr<Client> Connect(ConnectOptions options = {}) {
    if (options.address.empty()) options.address = "unix:" + socket_path();
    if (options.name.empty()) options.name = "test";
    options.timeout = absl::Seconds(30);
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect(std::move(options));
    if (!client.ok()) {
      ADD_FAILURE() << client.status();
      abort();
    }
    return *std::move(client);
  }

  std::filesystem::path folder_;
  std::optional<PandodProcess> pandod_;
};

// Returns a prompt. Prompts with different seeds differ in their first token.
inline std::vector<Token> Prompt(size_t tokens, uint32_t seed = 1) {
  std::vector<Token> prompt(tokens);
  std::iota(prompt.begin(), prompt.end(), seed * 100'000);
  return prompt;
}

// Waits until `holds` returns true, which another process or thread brings
// about. Returns false if that takes longer than 30 seconds.
inline bool Eventually(const std::function<bool()>& holds) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

MATCHER_P(FailsWith, reason, "fails with reason " + std::string(reason)) {
  *result_listener << arg.ToString();
  return !arg.ok() && ReasonOf(arg) == reason;
}

}  // namespace pando

#endif  // PANDO_TESTS_CLIENTS_PANDOD_FIXTURE_H_
