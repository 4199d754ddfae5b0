// Checks the invariants step by step while the cache is in use. The check must
// report no violation for a sound cache, and one for a broken cache.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/operators/invariants.h"
#include "tests/core/cache_fixture.h"
#include "tests/core/environment.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

// A cache in use by random calls, most of which succeed. The cache is so large
// that each stage of the check takes several steps.
class BusyCache {
 public:
  static constexpr uint32_t kPages = 30'000;

  BusyCache(uint64_t seed, EvictionPolicyKind policy)
      : random_(static_cast<uint32_t>(seed)),
        cache_({.page_tokens = 1,
                .capacity_pages = kPages + 1,
                .eviction_policy = policy,
                .quota_classes = {{.name = "a",
                                   .pattern = "a",
                                   .floor_pages = 100,
                                   .cap_pages = kPages / 2}}}) {
    for (uint64_t id = 1; id <= 4; ++id) cache_.OpenSession(SessionId(id), "");
    last_session_ = 4;
  }

  PrefixCache& cache() { return cache_; }

  void RunOne() {
    switch (Any(20)) {
      case 0:
        cache_.Evict(Any(30));
        break;
      case 1:
        if (Any(500) == 0) cache_.FlushNamespace(Namespace());
        break;
      case 2:
        ReplaceSession();
        break;
      case 3:
        Unlock();
        break;
      case 4:
      case 5:
        Lock();
        break;
      case 6:
        (void)cache_.Allocate({AnySession(), Namespace(), Any(40)});
        break;
      default:
        Serve();
    }
  }

 private:
  uint32_t Any(uint32_t below) { return random_() % below; }
  SessionId AnySession() { return SessionId(last_session_ - Any(4)); }
  NamespaceKey Namespace() {
    const char* const keys[] = {"a", "b", "c"};
    return {.extra_key = keys[Any(3)],
            .cache_salt = std::nullopt,
            .bigram = Any(4) == 0};
  }
  std::vector<Token> Prompt() {
    std::vector<Token> tokens;
    for (uint32_t i = 0; i < 3; ++i) tokens.push_back(Any(40));
    tokens.resize(tokens.size() + Any(6), 7);
    return tokens;
  }

  // Admits a request and either finishes it or leaves it half done.
  void Serve() {
    const SessionId session = AnySession();
    const NamespaceKey ns = Namespace();
    const std::vector<Token> tokens = Prompt();
    const auto match =
        cache_.Match({.session = session,
                      .ns = ns,
                      .tokens = tokens,
                      .lock = true,
                      .reserve_tokens = static_cast<uint32_t>(tokens.size())});
    if (!match.ok() || Any(10) == 0) return;
    const LockAction actions[] = {LockAction::kKeep, LockAction::kRelock,
                                  LockAction::kUnlock, LockAction::kUnlock};
    const auto rest =
        static_cast<uint32_t>(tokens.size()) - match->matched_tokens;
    const uint32_t units = ns.bigram && rest > 0 ? rest - 1 : rest;
    (void)cache_.Insert({.session = session,
                         .ns = ns,
                         .tokens = {},
                         .pages = std::span(match->reserved).first(units),
                         .anchor = match->lock,
                         .lock_action = actions[Any(4)],
                         .prompt_tokens = rest});
  }
  void Lock() {
    const SessionId session = AnySession();
    const auto lock = cache_.Lock(
        {.session = session, .ns = Namespace(), .tokens = Prompt()});
    if (lock.ok()) locks_.emplace_back(session, lock->lock);
  }
  void Unlock() {
    if (locks_.empty()) return;
    const auto [session, lock] = locks_.back();
    locks_.pop_back();
    (void)cache_.Unlock(session, std::vector{lock});
  }
  void ReplaceSession() {
    if (Any(20) > 0) return;
    cache_.CloseSession(SessionId(last_session_ - 3));
    cache_.OpenSession(SessionId(++last_session_), "");
  }

  std::minstd_rand random_;
  PrefixCache cache_;
  uint64_t last_session_;
  std::vector<std::pair<SessionId, LockId>> locks_;
};

class InvariantCheckTest : public testing::TestWithParam<EvictionPolicyKind> {};

TEST_P(InvariantCheckTest, FindsNothingWhileASoundCacheIsInUse) {
  const uint64_t seed = FromEnvironment("PANDO_TEST_SEED", 1);
  SCOPED_TRACE(testing::Message() << "PANDO_TEST_SEED=" << seed);
  BusyCache busy(seed, GetParam());
  for (int i = 0; i < 20'000; ++i) busy.RunOne();
  int checks = 0;
  int steps = 0;
  for (; checks < 20; ++steps) {
    for (int i = 0; i < 30; ++i) busy.RunOne();
    const auto violations = busy.cache().CheckInvariantsStep();
    if (!violations.has_value()) continue;
    ASSERT_THAT(*violations, IsEmpty()) << "in check " << checks;
    ++checks;
  }
  // Each stage took several steps, so that much changed during the stage.
  EXPECT_GT(steps, 20 * 12);
  EXPECT_THAT(busy.cache().CheckInvariants(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Policies, InvariantCheckTest,
                         testing::Values(EvictionPolicyKind::kLru,
                                         EvictionPolicyKind::kSlru),
                         [](const auto& param) {
                           return std::string(EvictionPolicyName(param.param));
                         });

}  // namespace
}  // namespace pando
