// Tells the sanitizer that all that happened before an alarm was set happened
// before its tag comes out of the completion queue (see CMakeLists.txt). The
// polling thread itself puts in and takes out all other tags.

#include <grpc/support/time.h>
#include <sanitizer/tsan_interface.h>

extern "C" {

void __real__ZN4grpc5Alarm11SetInternalEPNS_15CompletionQueueE12gpr_timespecPv(
    void* alarm, void* queue, gpr_timespec deadline, void* tag);
int __real__ZN4grpc15CompletionQueue17AsyncNextInternalEPPvPb12gpr_timespec(
    void* queue, void** tag, bool* ok, gpr_timespec deadline);

void __wrap__ZN4grpc5Alarm11SetInternalEPNS_15CompletionQueueE12gpr_timespecPv(
    void* alarm, void* queue, gpr_timespec deadline, void* tag) {
  __tsan_release(tag);
  __real__ZN4grpc5Alarm11SetInternalEPNS_15CompletionQueueE12gpr_timespecPv(
      alarm, queue, deadline, tag);
}

int __wrap__ZN4grpc15CompletionQueue17AsyncNextInternalEPPvPb12gpr_timespec(
    void* queue, void** tag, bool* ok, gpr_timespec deadline) {
  constexpr int kGotEvent = 1;
  const int status =
      __real__ZN4grpc15CompletionQueue17AsyncNextInternalEPPvPb12gpr_timespec(
          queue, tag, ok, deadline);
  if (status == kGotEvent) __tsan_acquire(*tag);
  return status;
}

}  // extern "C"
