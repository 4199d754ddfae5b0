#include "service/self_check.h"

#include <optional>
#include <utility>

#include "os/logging/log.h"

namespace pando {

bool SelfCheck::Step() {
  if (begun_ == ended_) ++begun_;
  std::optional<std::vector<std::string>> found = cache_->CheckInvariantsStep();
  if (!found.has_value()) return false;
  ++ended_;
  last_violations_ = *std::move(found);
  violations_ += last_violations_.size();
  for (const std::string& violation : last_violations_) {
    Log(LogLevel::kError, "invariant violated", {{"violation", violation}});
  }
  return true;
}

}  // namespace pando
