#ifndef PANDO_SERVICE_LANE_LANE_METHODS_H_
#define PANDO_SERVICE_LANE_LANE_METHODS_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/data_path.h"
#include "service/lane/lane_connection.h"
#include "service/lane/served_lane.h"

namespace pando {

// One method that can be called on a lane.
class LaneMethod {
 public:
  virtual ~LaneMethod() = default;
  // Carries a short call out, or lets it wait. Takes the turn, so the caller
  // must not hold it.
  virtual void Serve(LaneConnection& lane, const ServedLane::Taken& call) = 0;
  // Returns a place for a call with a long request, which is served in parts.
  virtual std::unique_ptr<LaneCall> NewCall() const = 0;
};

// The methods that can be called on a lane, by number. Owned by LaneServer;
// used by its thread alone.
class LaneMethods {
 public:
  // `policy` outlives this.
  LaneMethods(CallPolicy* policy, const DataPath& data_path,
              RpcMetrics& metrics);

  // Carries a short call out, or lets it wait; a call of an unknown method gets
  // an error. Takes the turn, so the caller must not hold it.
  void Serve(LaneConnection& lane, const ServedLane::Taken& call);
  // Returns a place for a call of this method, or null if there is no such
  // method.
  std::unique_ptr<LaneCall> NewCall(uint32_t method) const {
    const auto found = methods_.find(method);
    return found == methods_.end() ? nullptr : found->second->NewCall();
  }

 private:
  CallPolicy* const policy_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<LaneMethod>> methods_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_METHODS_H_
