#include "os/allocator.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <vector>

namespace pando {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsGlibc = false;
#elif defined(__has_feature)
constexpr bool kIsGlibc =
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kIsGlibc = true;
#endif

TEST(AllocatorTest, NoFreedMemoryWaitsToBeMerged) {
  if (!kIsGlibc) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  MergeFreedMemoryAtOnce();
  std::vector<std::unique_ptr<int>> many(10'000);
  for (auto& small : many) small = std::make_unique<int>();
  many.clear();
  EXPECT_EQ(mallinfo2().fsmblks, 0u);
}

}  // namespace
}  // namespace pando
