// Tells the sanitizer that absl::Mutex orders what threads do (see
// CMakeLists.txt). A thread that unlocks a mutex may evaluate the conditions of
// waiting threads while it still has the mutex. The sanitizer believes that the
// mutex is unlocked by then, so the wrappers hide the reads of conditions from
// it.

#include <sanitizer/tsan_interface.h>

#include "absl/time/time.h"

extern "C" {

void __real__ZN4absl7debian35Mutex4LockEv(void* mutex);
bool __real__ZN4absl7debian35Mutex7TryLockEv(void* mutex);
void __real__ZN4absl7debian35Mutex6UnlockEv(void* mutex);
void __real__ZN4absl7debian35Mutex10ReaderLockEv(void* mutex);
void __real__ZN4absl7debian35Mutex12ReaderUnlockEv(void* mutex);
void __real__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(
    void* mutex, const void* condition);
bool __real__ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(
    void* mutex, const void* condition, absl::Duration timeout);

void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);

void __wrap__ZN4absl7debian35Mutex4LockEv(void* mutex) {
  __tsan_mutex_pre_lock(mutex, 0);
  __real__ZN4absl7debian35Mutex4LockEv(mutex);
  __tsan_mutex_post_lock(mutex, 0, 0);
}

bool __wrap__ZN4absl7debian35Mutex7TryLockEv(void* mutex) {
  __tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
  const bool is_locked = __real__ZN4absl7debian35Mutex7TryLockEv(mutex);
  __tsan_mutex_post_lock(
      mutex,
      __tsan_mutex_try_lock | (is_locked ? 0 : __tsan_mutex_try_lock_failed),
      0);
  return is_locked;
}

void __wrap__ZN4absl7debian35Mutex6UnlockEv(void* mutex) {
  __tsan_mutex_pre_unlock(mutex, 0);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  __real__ZN4absl7debian35Mutex6UnlockEv(mutex);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  __tsan_mutex_post_unlock(mutex, 0);
}

void __wrap__ZN4absl7debian35Mutex10ReaderLockEv(void* mutex) {
  __tsan_mutex_pre_lock(mutex, __tsan_mutex_read_lock);
  __real__ZN4absl7debian35Mutex10ReaderLockEv(mutex);
  __tsan_mutex_post_lock(mutex, __tsan_mutex_read_lock, 0);
}

void __wrap__ZN4absl7debian35Mutex12ReaderUnlockEv(void* mutex) {
  __tsan_mutex_pre_unlock(mutex, __tsan_mutex_read_lock);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  __real__ZN4absl7debian35Mutex12ReaderUnlockEv(mutex);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  __tsan_mutex_post_unlock(mutex, __tsan_mutex_read_lock);
}

// Await unlocks the mutex, and locks it again when the condition holds. The
// code under test calls no other Await than the two below.
void __wrap__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(
    void* mutex, const void* condition) {
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  __real__ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(mutex, condition);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  __tsan_mutex_pre_lock(mutex, 0);
  __tsan_mutex_post_lock(mutex, 0, 0);
}

bool __wrap__ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(
    void* mutex, const void* condition, absl::Duration timeout) {
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  const bool holds =
      __real__ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(
          mutex, condition, timeout);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  __tsan_mutex_pre_lock(mutex, 0);
  __tsan_mutex_post_lock(mutex, 0, 0);
  return holds;
}

}  // extern "C"
