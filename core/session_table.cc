#include "core/session_table.h"

#include <utility>

#include "base/check.h"

namespace pando {

Session& SessionTable::Open(SessionId id, std::string client_name,
                            absl::Time now) {
  auto session = std::make_unique<Session>();
  session->id = id;
  session->client_name = std::move(client_name);
  session->opened_at = now;
  session->number = SessionNumber(++opened_);
  auto [it, is_new] = sessions_.emplace(id, std::move(session));
  CHECK(is_new);
  return *it->second;
}

Session* SessionTable::Find(SessionId id) const {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

void SessionTable::Erase(Session& session) {
  CHECK(session.first_lock == nullptr && session.reserved.pages.empty());
  const SessionId id = session.id;
  sessions_.erase(id);
}

LockRecord& SessionTable::AddLock(Session& session, Node& node,
                                  absl::Time now) {
  LockRecord& lock = locks_.New();
  lock.session = &session;
  lock.node = &node;
  lock.taken_at = now;
  lock.next = session.first_lock;
  if (lock.next != nullptr) lock.next->previous = &lock;
  session.first_lock = &lock;
  ++session.lock_count;
  lock.older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = &lock;
  newest_ = &lock;
  return lock;
}

LockRecord* SessionTable::FindLock(const Session& session, LockId id) {
  LockRecord* lock = locks_.Find(id.value());
  return lock != nullptr && lock->session == &session ? lock : nullptr;
}

void SessionTable::RemoveLock(LockRecord& lock) {
  --lock.session->lock_count;
  if (lock.previous != nullptr) {
    lock.previous->next = lock.next;
  } else {
    lock.session->first_lock = lock.next;
  }
  if (lock.next != nullptr) lock.next->previous = lock.previous;
  (lock.older != nullptr ? lock.older->newer : oldest_) = lock.newer;
  (lock.newer != nullptr ? lock.newer->older : newest_) = lock.older;
  locks_.Delete(Slab<LockRecord>::HandleOf(lock));
}

}  // namespace pando
