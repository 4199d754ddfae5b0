// Abseil's packages are built without the thread sanitizer, which then does not
// see that absl::Mutex orders what threads do. In a build with that sanitizer
// the linker puts these in place of Lock and Unlock (see CMakeLists.txt).

#include <sanitizer/tsan_interface.h>

extern "C" {

void __real__ZN4absl7debian35Mutex4LockEv(void* mutex);
void __real__ZN4absl7debian35Mutex6UnlockEv(void* mutex);

void __wrap__ZN4absl7debian35Mutex4LockEv(void* mutex) {
  __tsan_mutex_pre_lock(mutex, 0);
  __real__ZN4absl7debian35Mutex4LockEv(mutex);
  __tsan_mutex_post_lock(mutex, 0, 0);
}

void __wrap__ZN4absl7debian35Mutex6UnlockEv(void* mutex) {
  __tsan_mutex_pre_unlock(mutex, 0);
  __real__ZN4absl7debian35Mutex6UnlockEv(mutex);
  __tsan_mutex_post_unlock(mutex, 0);
}

}  // extern "C"
