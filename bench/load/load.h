#ifndef PANDO_BENCH_LOAD_LOAD_H_
#define PANDO_BENCH_LOAD_LOAD_H_

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pando/client.h"

namespace pando::bench {

constexpr uint32_t kPageTokens = 16;
// Half of the pages that all prompts have together, so that some match and some
// are evicted.
constexpr uint32_t kPoolPages = 4096;
// How many namespaces the prompts are in: "class 0" and so on.
constexpr int kClasses = 8;

// The extra_key of a namespace.
std::string ClassName(int number);

// The 99th percentile of `values`, which are at least one.
double P99(std::vector<double> values);

// Workers that admit and finish one request after the other. Owns their
// connections and ends them.
class Load {
 public:
  // Each worker begins a request every `period`, or as soon as the one before
  // has been answered.
  Load(const std::string& address, int clients,
       std::chrono::microseconds period = {});

  // Lets all workers run for `time`, and runs `meanwhile` on this thread.
  // Returns the times of all calls, in microseconds.
  std::vector<double> Run(std::chrono::milliseconds time,
                          const std::function<void()>& meanwhile);

 private:
  struct Worker {
    std::unique_ptr<Client> client;
    std::mt19937 random;
  };

  const std::chrono::microseconds period_;
  std::vector<Worker> workers_;
};

}  // namespace pando::bench

#endif  // PANDO_BENCH_LOAD_LOAD_H_
