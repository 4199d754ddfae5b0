// Preloaded into a process, to which the kernel then refuses io_uring.

#include "no_io_uring.h"

__attribute__((constructor)) static void Forbid(void) { ForbidIoUring(); }
