#ifndef PANDO_CLIENTS_LANE_GAUGES_H_
#define PANDO_CLIENTS_LANE_GAUGES_H_

#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "lane/gauge_page.h"

namespace pando::lane {

// pandod's gauge page, mapped for reading. Thread-safe. It stays readable as
// long as it is mapped, even if pandod has ended.
class MappedGauges {
 public:
  // Maps the page. Returns null, with the reason in `error`, if it is no gauge
  // page of a version that this library knows.
  static std::shared_ptr<const MappedGauges> Map(const UniqueFd& memory,
                                                 std::string& error);
  ~MappedGauges();
  MappedGauges(const MappedGauges&) = delete;
  MappedGauges& operator=(const MappedGauges&) = delete;

  // Returns none if pandod died while it wrote the page: see lane/gauge_page.h.
  std::optional<Gauges> Read() const { return ReadGauges(*page_); }

 private:
  explicit MappedGauges(const GaugePage* page) : page_(page) {}

  const GaugePage* const page_;
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_GAUGES_H_
