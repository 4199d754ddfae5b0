#include "os/allocator.h"

#include <malloc.h>

namespace pando {

void MergeFreedMemoryAtOnce() { mallopt(M_MXFAST, 0); }

}  // namespace pando
