#ifndef PANDO_OS_ALLOCATOR_H_
#define PANDO_OS_ALLOCATOR_H_

namespace pando {

// Makes malloc merge small blocks of memory as they are freed. By default glibc
// puts the merging off until the next allocation of a kilobyte or more, which
// then merges all of them: 20 ms where an eviction has freed a million. To be
// called before there are threads.
void MergeFreedMemoryAtOnce();

}  // namespace pando

#endif  // PANDO_OS_ALLOCATOR_H_
