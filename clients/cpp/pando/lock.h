#ifndef PANDO_LOCK_H_
#define PANDO_LOCK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Connection;

// A lock on a cached prefix: while it is held the prefix is not evicted.
//
// Owned by the caller; move-only; released by the destructor. It knows the
// session it belongs to, and may outlive the Client: once that session is over
// there is nothing left to release, and nothing is sent. Thread-compatible.
class Lock {
 public:
  // Holds nothing.
  Lock() = default;
  Lock(Lock&& other) noexcept { *this = std::move(other); }
  Lock& operator=(Lock&& other) noexcept;
  // Releases the lock if it is still held; without an answer, in the
  // background.
  ~Lock();

  bool held() const { return id_ != 0; }
  // The boundary: tokens that the lock protects, and where the tokens of an
  // Insert anchored at it begin.
  uint32_t tokens() const { return tokens_; }
  // The same place as a handle, for calls after the lock is released.
  const PrefixHandle& handle() const { return handle_; }
  uint64_t id() const { return id_; }
  uint64_t session_id() const { return session_id_; }

  // Releases the lock now. When this fails because the server cannot be
  // reached the lock stays held and may be released again; an empty lock is
  // released already.
  absl::Status Release();

 private:
  friend class Client;

  Lock(std::weak_ptr<Connection> connection, uint64_t session_id, uint64_t id,
       uint32_t tokens, PrefixHandle handle);
  // The server moved the lock.
  void MoveTo(uint32_t tokens, PrefixHandle handle);
  void Forget() { id_ = 0; }
  void Abandon();
  // After a call that failed because the server does not hold the lock.
  void ForgetIfGone(const absl::Status& status);

  std::weak_ptr<Connection> connection_;
  uint64_t session_id_ = 0;
  // Zero: nothing is held.
  uint64_t id_ = 0;
  uint32_t tokens_ = 0;
  PrefixHandle handle_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_LOCK_H_
