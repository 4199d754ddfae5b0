#include "bench/load/load.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pando::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kPromptTokens = 1024;
constexpr uint32_t kSystemTokens = 512;  // the same in all prompts of a class
constexpr int kPromptsOfClass = 32;

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

std::vector<Token> Prompt(uint32_t number) {
  std::vector<Token> prompt(kPromptTokens, 0);
  std::fill(prompt.begin() + kSystemTokens, prompt.end(), number);
  return prompt;
}

// Adds to `times` how many microseconds `call` takes.
template <typename Call>
auto Timed(std::vector<double>& times, Call&& call) {
  const Clock::time_point start = Clock::now();
  auto result = call();
  times.push_back(
      std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  return OrExit(std::move(result));
}

// Makes the two calls of a request: admit and publish.
void Serve(Client& client, std::mt19937& random, std::vector<double>& times) {
  const std::vector<Token> prompt = Prompt(random() % kPromptsOfClass + 1);
  const Namespace ns = {.extra_key = ClassName(random() % kClasses)};
  Match match = Timed(times, [&] {
    return client.MatchPrefix(prompt, {.ns = ns,
                                       .max_tokens = kPromptTokens - 1,
                                       .lock = true,
                                       .reserve_tokens = kPromptTokens});
  });
  Timed(times, [&] {
    return client.Insert(
        {}, match.reserved.ids,
        {.lock = &match.lock,
         .lock_action = LockAction::kUnlock,
         .prompt_tokens = kPromptTokens - match.matched_tokens});
  });
}

}  // namespace

std::string ClassName(int number) { return absl::StrCat("class ", number); }

double P99(std::vector<double> values) {
  const auto at = values.begin() + values.size() * 99 / 100;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Load::Load(const std::string& address, int clients,
           std::chrono::microseconds period)
    : period_(period) {
  for (int i = 0; i < clients; ++i) {
    workers_.push_back({.client = OrExit(Client::Connect(
                            {.address = address, .name = "bench"})),
                        .random = std::mt19937(i)});
  }
}

std::vector<double> Load::Run(std::chrono::milliseconds time,
                              const std::function<void()>& meanwhile) {
  std::vector<std::vector<double>> times(workers_.size());
  {
    const Clock::time_point end = Clock::now() + time;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back(
          [this, &worker = workers_[i], &times = times[i], end] {
            for (Clock::time_point next = Clock::now(); next < end;) {
              Serve(*worker.client, worker.random, times);
              next = std::max(next + period_, Clock::now());
              std::this_thread::sleep_until(std::min(next, end));
            }
          });
    }
    meanwhile();
  }
  std::vector<double> all;
  for (const auto& of_worker : times) {
    all.insert(all.end(), of_worker.begin(), of_worker.end());
  }
  return all;
}

}  // namespace pando::bench
