#include "pando/lock.h"

#include <span>
#include <utility>

#include "clients/cpp/src/connection.h"
#include "pando/errors.h"

namespace pando {
inline namespace client {

Lock::Lock(std::weak_ptr<Connection> connection, uint64_t session_id,
           uint64_t id, uint32_t tokens, PrefixHandle handle)
    : connection_(std::move(connection)),
      session_id_(session_id),
      id_(id),
      tokens_(tokens),
      handle_(handle) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  if (this == &other) return *this;
  Abandon();
  connection_ = std::move(other.connection_);
  session_id_ = other.session_id_;
  id_ = std::exchange(other.id_, 0);
  tokens_ = other.tokens_;
  handle_ = other.handle_;
  is_in_doubt_ = other.is_in_doubt_;
  return *this;
}

Lock::~Lock() { Abandon(); }

void Lock::Abandon() {
  if (!held()) return;
  if (const auto connection = connection_.lock()) {
    connection->Abandon(session_id_, id_);
  }
  Forget();
}

absl::Status Lock::Release() {
  if (!held()) return absl::OkStatus();
  const std::shared_ptr<Connection> connection = connection_.lock();
  if (connection == nullptr) {
    Forget();
    return absl::OkStatus();
  }
  const absl::Status status =
      connection->Unlock(session_id_, std::span(&id_, 1));
  if (status.ok()) Forget();
  ForgetIfGone(status);
  return status;
}

void Lock::MoveTo(uint32_t tokens, PrefixHandle handle) {
  tokens_ = tokens;
  handle_ = handle;
}

void Lock::ForgetIfGone(const absl::Status& status) {
  const std::string why = ReasonOf(status);
  if (why == reason::kSessionLost || why == reason::kLockUnknown) Forget();
}

}  // namespace client
}  // namespace pando
