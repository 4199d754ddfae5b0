#include "service/self_check.h"

#include "service/logging/log.h"

namespace pando {

std::vector<std::string> SelfCheck::Run() {
  std::vector<std::string> violations = cache_->CheckInvariants();
  violations_ += violations.size();
  for (const std::string& violation : violations) {
    Log(LogLevel::kError, "invariant violated", {{"violation", violation}});
  }
  return violations;
}

}  // namespace pando
