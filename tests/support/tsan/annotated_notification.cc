// Tells the sanitizer that all that happened before a call of
// absl::Notification::Notify happened before the waits for it end (see
// CMakeLists.txt).

#include <sanitizer/tsan_interface.h>

#include "absl/time/time.h"

extern "C" {

void __real__ZN4absl7debian312Notification6NotifyEv(void* notification);
void __real__ZNK4absl7debian312Notification19WaitForNotificationEv(
    const void* notification);
bool __real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const void* notification, absl::Duration timeout);

void __wrap__ZN4absl7debian312Notification6NotifyEv(void* notification) {
  __tsan_release(notification);
  __real__ZN4absl7debian312Notification6NotifyEv(notification);
}

void __wrap__ZNK4absl7debian312Notification19WaitForNotificationEv(
    const void* notification) {
  __real__ZNK4absl7debian312Notification19WaitForNotificationEv(notification);
  __tsan_acquire(const_cast<void*>(notification));
}

bool __wrap__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const void* notification, absl::Duration timeout) {
  const bool is_notified =
      __real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
          notification, timeout);
  if (is_notified) __tsan_acquire(const_cast<void*>(notification));
  return is_notified;
}

}  // extern "C"
