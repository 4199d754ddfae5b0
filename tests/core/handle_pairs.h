#ifndef PANDO_TESTS_CORE_HANDLE_PAIRS_H_
#define PANDO_TESTS_CORE_HANDLE_PAIRS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "core/requests/requests.h"

namespace pando::program {

// Pairs of handles that two caches gave for the same prefix. Each cache chooses
// its own number for a node, and must keep to that number.
class HandlePairs {
 public:
  struct Pair {
    PrefixHandle real;
    PrefixHandle model;
  };

  // Adds a pair. Returns an empty string if the two handles can name the same
  // prefix, otherwise a description of the error.
  std::string Add(const PrefixHandle& real, const PrefixHandle& model) {
    if ((real == PrefixHandle()) != (model == PrefixHandle())) {
      return real == PrefixHandle() ? "only the model gives a handle"
                                    : "the model gives no handle";
    }
    if (real == PrefixHandle()) return "";
    if (real.tokens != model.tokens) return "handles differ in tokens";
    if (model_of_.emplace(real.node, model.node).first->second != model.node ||
        real_of_.emplace(model.node, real.node).first->second != real.node) {
      return "handles name different nodes";
    }
    recent_.push_front({real, model});
    if (recent_.size() > kRemembered) recent_.pop_back();
    return "";
  }

  // Returns the pair at `index` modulo the number of pairs, counted from the
  // newest pair. Returns an empty pair if there are none.
  Pair Recent(size_t index) const {
    return recent_.empty() ? Pair() : recent_[index % recent_.size()];
  }

 private:
  static constexpr size_t kRemembered = 24;

  std::map<uint64_t, uint64_t> model_of_;  // real node -> node of the model
  std::map<uint64_t, uint64_t> real_of_;
  std::deque<Pair> recent_;  // newest first
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_HANDLE_PAIRS_H_
