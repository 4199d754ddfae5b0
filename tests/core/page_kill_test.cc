// Kills a process with cached pages at random moments, and checks that the next
// process on the ledger has the pages.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/operators/earlier_pages.h"
#include "core/prefix_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/ledger_memory.h"
#include "tests/core/shared_prompts.h"

namespace pando {
namespace {

constexpr uint32_t kPageTokens = kSharedPromptPageTokens;
constexpr uint32_t kPages = 160;
constexpr uint32_t kPrompts = 40;
constexpr uint32_t kNoPrompt = kPrompts;
constexpr uint32_t kPromptPages = 12;
constexpr int kKills = 150;

const PrefixCache::Options kOptions{.page_tokens = kPageTokens,
                                    .capacity_pages = kPages};

// The memory that outlives a process.
struct Shared {
  // The worker has written these values to the pages.
  uint64_t bytes[kPages];
  std::atomic<uint64_t> calls;
  // The prompt of the last insert that was answered. It is kNoPrompt while
  // another call may evict pages of the prompt.
  std::atomic<uint32_t> prompt = kNoPrompt;
};

uint32_t NamespaceNumberOf(uint32_t prompt) { return prompt / 8 % 3; }
NamespaceKey NamespaceOf(uint32_t prompt) {
  return {.extra_key = std::to_string(NamespaceNumberOf(prompt)),
          .cache_salt = {}};
}

// One process on the ledger, together with the worker that it serves.
class Life {
 public:
  Life(Shared* shared, std::span<std::byte> ledger)
      : shared_(shared), cache_(LedgerMemory::With(kOptions, ledger)) {
    const SessionId before(1);
    cache_.OpenSession(before, "before");
    cache_.Run(EarlierPages(before, before));
    cache_.CloseSession(before);
    PageLedger::Complete(ledger);
    cache_.OpenSession(session_, "worker");
  }

  [[noreturn]] void Work(uint64_t seed) {
    std::minstd_rand random(static_cast<uint32_t>(seed) | 1);
    while (true) {
      ++shared_->calls;
      switch (random() % 16) {
        case 0:
          shared_->prompt = kNoPrompt;
          cache_.Evict(random() % kPages);
          break;
        case 1:
          shared_->prompt = kNoPrompt;
          cache_.FlushNamespace(NamespaceOf(random() % kPrompts));
          break;
        default:
          Store(random() % kPrompts, 1 + random() % kPromptPages);
      }
    }
  }

  // Returns a description of the first error: an invariant that does not hold,
  // a page with the bytes of another prefix, or a stored prompt that is
  // missing. Returns an empty string if there is none.
  std::string Check() {
    const std::vector<std::string> violations = cache_.CheckInvariants();
    if (!violations.empty()) return violations[0];
    for (uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
      const std::vector<Token> tokens = SharedPrompt(prompt, kPromptPages);
      const NamespaceKey ns = NamespaceOf(prompt);
      const auto match =
          cache_.Match({.session = {}, .ns = ns, .tokens = tokens});
      for (size_t i = 0; i < match->pages.size(); ++i) {
        if (shared_->bytes[match->pages[i].value()] !=
            ContentOfPage(prompt, static_cast<uint32_t>(i + 1),
                          NamespaceNumberOf(prompt))) {
          return "a page has the bytes of another prefix";
        }
      }
      if (shared_->prompt == prompt && match->pages.size() < kPromptPages) {
        return "what was stored is gone";
      }
    }
    return "";
  }

 private:
  // Stores the first pages of a prompt as an engine does: with a lock on what
  // is cached, and at times in two chunks.
  void Store(uint32_t prompt, uint32_t pages) {
    const std::vector<Token> tokens = SharedPrompt(prompt, pages);
    const NamespaceKey ns = NamespaceOf(prompt);
    shared_->prompt = kNoPrompt;
    auto match = cache_.Match({.session = session_,
                               .ns = ns,
                               .tokens = tokens,
                               .lock = true,
                               .reserve_tokens = pages * kPageTokens});
    if (!match.ok()) return;
    const size_t cached = match->pages.size();
    const size_t used = pages - cached;
    for (size_t i = 0; i < used; ++i) {
      shared_->bytes[match->reserved[i].value()] =
          ContentOfPage(prompt, static_cast<uint32_t>(cached + i + 1),
                        NamespaceNumberOf(prompt));
    }
    const std::span rest = std::span(tokens).subspan(cached * kPageTokens);
    const std::span reserved(match->reserved);
    const size_t first = used / 2;
    cache_
        .Insert({.session = session_,
                 .ns = ns,
                 .tokens = rest.first(first * kPageTokens),
                 .pages = reserved.first(first),
                 .anchor = match->lock,
                 .lock_action = LockAction::kRelock})
        .IgnoreError();
    cache_
        .Insert({.session = session_,
                 .ns = ns,
                 .tokens = rest.subspan(first * kPageTokens),
                 .pages = reserved.subspan(first, used - first),
                 .anchor = match->lock,
                 .lock_action = LockAction::kUnlock,
                 .free_pages = reserved.subspan(used)})
        .IgnoreError();
    if (pages == kPromptPages) shared_->prompt = prompt;
  }

  Shared* const shared_;
  PrefixCache cache_;
  const SessionId session_{2};
};

TEST(PageKillTest, TheNextProcessHasThePagesOfAKilledOneWithTheirBytes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  LedgerMemory ledger(kOptions);
  auto* const shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared();
  for (int kill_count = 0; kill_count < kKills; ++kill_count) {
    const uint64_t goal = shared->calls + 1 + random() % 200;
    const uint64_t pause = random() % 2'000;
    const uint64_t work = random();
    const pid_t child = fork();
    if (child == 0) Life(shared, ledger.memory()).Work(work);
    ASSERT_GT(child, 0);
    while (shared->calls < goal) sched_yield();
    for (std::atomic<uint64_t> spins = 0; spins < pause; ++spins) {
    }
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    // The check works on a copy, so that the next child takes over the ledger
    // as the killed child left it.
    ASSERT_TRUE(PageLedger::IsOf(ledger.pool(), ledger.memory()));
    ASSERT_EQ(Life(shared, ledger.Copy()).Check(), "") << "kill " << kill_count;
  }
}

}  // namespace
}  // namespace pando
