#ifndef PANDO_SERVICE_LANE_GAUGE_BOARD_H_
#define PANDO_SERVICE_LANE_GAUGE_BOARD_H_

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "lane/gauge_page.h"
#include "os/shared_memory.h"

namespace pando {

// pandod's end of the gauge page: figures of the cache that workers read from
// shared memory, without a call. Owned by Server. Only one thread at a time may
// call Show; any thread may call Share.
class GaugeBoard {
 public:
  // Makes the page, or returns why its memory cannot be made.
  static absl::StatusOr<std::unique_ptr<GaugeBoard>> Create() {
    ASSIGN_OR_RETURN(SharedMemory memory,
                     SharedMemory::Create("pando-gauges", lane::kGaugePageBytes,
                                          SharedMemory::Peers::kMayRead));
    return absl::WrapUnique(new GaugeBoard(std::move(memory)));
  }

  // Writes the figures to the page, if they have changed.
  void Show(const lane::Gauges& gauges) {
    if (gauges == shown_) return;
    shown_ = gauges;
    lane::WriteGauges(gauges, page());
  }

  // Returns a read-only descriptor of the page for a worker.
  absl::StatusOr<UniqueFd> Share() const { return memory_.Share(); }

 private:
  explicit GaugeBoard(SharedMemory memory) : memory_(std::move(memory)) {
    page().version = lane::kVersion;
    page().magic = lane::kGaugeMagic;
  }

  lane::GaugePage& page() const {
    return *reinterpret_cast<lane::GaugePage*>(memory_.data());
  }

  const SharedMemory memory_;
  lane::Gauges shown_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_GAUGE_BOARD_H_
