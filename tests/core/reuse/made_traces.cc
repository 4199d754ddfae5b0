#include "tests/core/reuse/made_traces.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint32_t kRequests = 6000;

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }
  // Returns a block that no prompt has asked for before.
  uint32_t Fresh() { return ++fresh_; }

  // Repeats the same sequence of prompts.
  std::vector<MadePrompt> Loop(uint32_t length) {
    return Make([=](uint32_t i) { return MadePrompt{1'000'000 + i % length}; });
  }
  // Asks for other prompts in the second half.
  std::vector<MadePrompt> PhaseChange() {
    return Make([this](uint32_t i) {
      const uint32_t phase = i < kRequests / 2 ? 1 : 2;
      if (Below(3) == 0) return MadePrompt{phase * 1'000'000 + Below(150)};
      return phase == 1 ? MadePrompt{Fresh()} : MadePrompt{3'000'000 + i % 260};
    });
  }
  // Draws prompts from a set that moves slowly.
  std::vector<MadePrompt> Drift() {
    return Make([this](uint32_t i) {
      return MadePrompt{1'000'000 + i / 8 + Below(300)};
    });
  }
  // Draws a depth in the stack of the most recently used blocks. LRU is the
  // best policy here.
  std::vector<MadePrompt> RecencyStack() {
    std::vector<uint32_t> stack;
    return Make([this, stack](uint32_t) mutable {
      uint32_t depth = 0;
      while (depth < stack.size() && Below(100) > 0) ++depth;
      if (depth == stack.size()) stack.push_back(Fresh());
      std::rotate(stack.begin(), stack.begin() + depth,
                  stack.begin() + depth + 1);
      return MadePrompt{stack.front()};
    });
  }
  // Mixes a few prompts that are used again with many that are not.
  std::vector<MadePrompt> Flood() {
    return Make([this](uint32_t) {
      return Below(4) == 0 ? MadePrompt{1'000'000 + Below(120)}
                           : MadePrompt{Fresh(), Fresh()};
    });
  }
  // Alternates between phases, so that each phase makes wrong what the cache
  // learnt about prompts that were used once.
  std::vector<MadePrompt> Alternation(uint32_t period) {
    std::vector<uint32_t> seen;
    return Make([=, this](uint32_t i) mutable {
      if (i % (2 * period) < period || seen.size() < 2) {
        seen.push_back(Fresh());
        return MadePrompt{seen.back()};
      }
      const auto back =
          std::min<uint32_t>(static_cast<uint32_t>(seen.size()), 190);
      return MadePrompt{seen[seen.size() - 1 - Below(back)]};
    });
  }
  // Extends conversations. Each turn adds to the prompt before it.
  std::vector<MadePrompt> Conversations() {
    std::vector<MadePrompt> open;
    return Make([=, this](uint32_t) mutable {
      if (open.size() < 60 || Below(4) == 0) open.push_back({Below(5)});
      MadePrompt& prompt = open[open.size() - 1 - Below(60) % open.size()];
      prompt.push_back(Fresh());
      if (prompt.size() > 12) prompt = {prompt.front()};
      return prompt;
    });
  }
  // Extends conversations, but in one turn of five first removes a part of the
  // prompt.
  std::vector<MadePrompt> Edits() {
    std::vector<MadePrompt> open(40);
    return Make([=, this](uint32_t) mutable {
      MadePrompt& prompt = open[Below(40)];
      if (prompt.empty() || prompt.size() > 16) prompt = {Below(3)};
      if (Below(5) == 0) {
        prompt.resize(1 + Below(static_cast<uint32_t>(prompt.size())));
      }
      for (uint32_t turn = 1 + Below(3); turn > 0; --turn) {
        prompt.push_back(Fresh());
      }
      return prompt;
    });
  }
  // Alternates between questions about documents and turns of agents.
  std::vector<MadePrompt> DocumentsAndAgents() {
    std::vector<MadePrompt> agents(30);
    return Make([=, this](uint32_t i) mutable {
      if (i / 750 % 2 == 0) {
        const uint32_t document = Below(1 + Below(90));
        MadePrompt prompt(2 + document % 6, 2'000'000 + document);
        prompt.push_back(Fresh());
        return prompt;
      }
      MadePrompt& prompt = agents[Below(30)];
      if (prompt.empty() || Below(12) == 0) prompt = {1, 2};
      prompt.push_back(Fresh());
      return prompt;
    });
  }

 private:
  template <typename Next>
  static std::vector<MadePrompt> Make(Next next) {
    std::vector<MadePrompt> prompts;
    for (uint32_t i = 0; i < kRequests; ++i) prompts.push_back(next(i));
    return prompts;
  }

  std::mt19937_64 random_;
  uint32_t fresh_ = 10'000'000;
};

}  // namespace

std::vector<MadeTrace> MadeTraces(uint64_t seed) {
  Maker maker(seed);
  return {{"short loop", maker.Loop(220)},
          {"loop", maker.Loop(300)},
          {"long loop", maker.Loop(2000)},
          {"phase change", maker.PhaseChange()},
          {"drift", maker.Drift()},
          {"recency stack", maker.RecencyStack()},
          {"flood", maker.Flood()},
          {"alternation", maker.Alternation(300)},
          {"slow alternation", maker.Alternation(1500)},
          {"conversations", maker.Conversations()},
          {"edits", maker.Edits()},
          {"documents and agents", maker.DocumentsAndAgents()}};
}

MadeCache::MadeCache(EvictionPolicyKind policy, ReuseOptions reuse)
    : cache_({.page_tokens = 1,
              .capacity_pages = kPages + 1,
              .eviction_policy = policy,
              .reuse = reuse}) {
  cache_.OpenSession(kSession, "made");
}

void MadeCache::Serve(const MadePrompt& prompt) {
  std::vector<Token> tokens;
  for (const uint32_t block : prompt)
    tokens.resize(tokens.size() + kBlockPages, block);
  const auto count = static_cast<uint32_t>(tokens.size());
  const auto match = cache_.Match({.session = kSession,
                                   .ns = ns_,
                                   .tokens = tokens,
                                   .lock = true,
                                   .reserve_tokens = count});
  ASSERT_TRUE(match.ok()) << match.status();
  hit_pages_ += match->matched_tokens;
  requested_pages_ += count;
  const auto insert =
      cache_.Insert({.session = kSession,
                     .ns = ns_,
                     .tokens = {},
                     .pages = match->reserved,
                     .anchor = match->lock,
                     .lock_action = LockAction::kUnlock,
                     .prompt_tokens = count - match->matched_tokens});
  ASSERT_TRUE(insert.ok()) << insert.status();
}

}  // namespace pando
