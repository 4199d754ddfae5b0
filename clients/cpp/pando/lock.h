#ifndef PANDO_LOCK_H_
#define PANDO_LOCK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Connection;

// A lock on a cached prefix: while it is held, the prefix is not evicted.
//
// Owned by the caller; move-only; the destructor releases it. It knows the
// session it belongs to and may outlive the Client: once that session is over,
// there is nothing left to release, and nothing is sent. Thread-compatible.
class Lock {
 public:
  // Makes an empty lock, which holds nothing.
  Lock() = default;
  Lock(Lock&& other) noexcept { *this = std::move(other); }
  Lock& operator=(Lock&& other) noexcept;
  // Releases the lock if it is still held. If pandod does not answer, the
  // client goes on trying in the background.
  ~Lock();

  bool held() const { return id_ != 0; }
  // Returns whether an Insert that was to move the lock got no answer. The
  // lock's boundary is then not known, and nothing more can be inserted after
  // it; release it.
  bool is_in_doubt() const { return is_in_doubt_; }
  // The boundary: how many tokens of the prompt the lock protects. The tokens
  // of an Insert anchored at this lock begin there.
  uint32_t tokens() const { return tokens_; }
  // A handle of the same prefix, for calls after the lock is released.
  const PrefixHandle& handle() const { return handle_; }
  uint64_t id() const { return id_; }
  uint64_t session_id() const { return session_id_; }

  // Releases the lock now. If the server cannot be reached, this fails; the
  // lock then stays held, and Release may be called again. Does nothing for an
  // empty lock.
  absl::Status Release();

 private:
  friend class Client;

  Lock(std::weak_ptr<Connection> connection, uint64_t session_id, uint64_t id,
       uint32_t tokens, PrefixHandle handle);
  // Follows the server, which has moved the lock.
  void MoveTo(uint32_t tokens, PrefixHandle handle);
  // The server may have moved the lock.
  void LoseEnd() { is_in_doubt_ = true; }
  // Empties the lock, without a call.
  void Forget() { id_ = 0; }
  // Releases the lock, in the background if necessary.
  void Abandon();
  // Empties the lock if `status` says that the server does not hold it.
  void ForgetIfGone(const absl::Status& status);

  std::weak_ptr<Connection> connection_;
  uint64_t session_id_ = 0;
  // It is zero if nothing is held.
  uint64_t id_ = 0;
  uint32_t tokens_ = 0;
  PrefixHandle handle_;
  bool is_in_doubt_ = false;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_LOCK_H_
