#ifndef PANDO_OS_SOCKETS_CONNECTION_RATES_H_
#define PANDO_OS_SOCKETS_CONNECTION_RATES_H_

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace pando {

// Limits how often one peer connects. A connection is far more work for gRPC
// than a call, so a peer that connects in a loop would hold up the calls of all
// others. Not thread-safe.
class ConnectionRates {
 public:
  // A peer may make so many connections at once after a pause, and so many a
  // second on average.
  static constexpr int kAtOnce = 1024;
  static constexpr int kPerSecond = 128;

  // Counts a connection. Returns false if it is one too many. REQUIRES: `now`
  // never goes back.
  bool Admit(const std::string& peer, absl::Time now);

  size_t peers() const { return buckets_.size(); }

 private:
  // A token bucket. It is stored as the time at which the token that the next
  // connection takes fell into it.
  using Bucket = absl::Time;

  absl::flat_hash_map<std::string, Bucket> buckets_;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_CONNECTION_RATES_H_
