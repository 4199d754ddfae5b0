#include "service/self_check.h"

#include <spdlog/spdlog.h>

namespace pando {

std::vector<std::string> SelfCheck::Run() {
  std::vector<std::string> violations = cache_->CheckInvariants();
  violations_ += violations.size();
  for (const std::string& violation : violations) {
    spdlog::error("invariant violated: {}", violation);
  }
  return violations;
}

}  // namespace pando
