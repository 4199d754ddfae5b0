#ifndef PANDO_CORE_KEPT_BYTES_H_
#define PANDO_CORE_KEPT_BYTES_H_

#include <cstdint>
#include <utility>

#include "base/ids.h"

namespace pando {

class PrefixCache;

// Memory that is kept outside the cache for a session, such as a request that
// waits. It counts in the session's account, next to what the cache itself
// keeps, until this object is destroyed or the session ends. The owner of the
// memory owns this object too. The destructor takes the mutex of the cache, so
// the destroying thread must hold no mutex that another thread holds while it
// calls the cache.
class KeptBytes {
 public:
  KeptBytes() = default;
  KeptBytes(KeptBytes&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)),
        session_(other.session_),
        bytes_(other.bytes_) {}
  KeptBytes& operator=(KeptBytes&& other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(session_, other.session_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~KeptBytes();

  // Whether it counts any memory.
  bool counts() const { return cache_ != nullptr; }

 private:
  friend class PrefixCache;

  KeptBytes(PrefixCache* cache, SessionId session, uint64_t bytes)
      : cache_(cache), session_(session), bytes_(bytes) {}

  PrefixCache* cache_ = nullptr;  // null: nothing is counted
  SessionId session_;
  uint64_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_KEPT_BYTES_H_
