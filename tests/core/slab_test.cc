#include "core/nodes/slab.h"

#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using IntSlab = Slab<int>;

TEST(SlabTest, FindsAnObjectByItsHandle) {
  IntSlab slab;
  int& seven = slab.New(7);
  const auto handle = IntSlab::HandleOf(seven);
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(slab.Find(handle), &seven);
}

TEST(SlabTest, FindsNothingByAHandleThatNeverWas) {
  IntSlab slab;
  EXPECT_EQ(slab.Find(0), nullptr);
  EXPECT_EQ(slab.Find(1), nullptr);
  slab.New(7);
  for (const IntSlab::Handle handle :
       {IntSlab::Handle{0}, IntSlab::Handle{1}, ~IntSlab::Handle{0},
        IntSlab::Handle{1} << 32 | 5000, IntSlab::Handle{1} << 32 | 1}) {
    EXPECT_EQ(slab.Find(handle), nullptr) << handle;
  }
}

TEST(SlabTest, AHandleGoesStaleAndStaysSoWhenTheCellIsUsedAgain) {
  IntSlab slab;
  int& old = slab.New(1);
  const auto stale = IntSlab::HandleOf(old);
  slab.Delete(stale);
  EXPECT_EQ(slab.Find(stale), nullptr);
  int& next = slab.New(2);
  EXPECT_EQ(&next, &old);
  EXPECT_EQ(slab.Find(stale), nullptr);
  EXPECT_NE(IntSlab::HandleOf(next), stale);
}

TEST(SlabTest, KeepsAddressesWhenItGrows) {
  IntSlab slab;
  std::vector<int*> objects;
  for (int i = 0; i < 2000; ++i) objects.push_back(&slab.New(i));
  const std::set<int*> distinct(objects.begin(), objects.end());
  EXPECT_EQ(distinct.size(), objects.size());
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(*objects[i], i);
}

TEST(SlabTest, VisitsExactlyTheLiveObjects) {
  IntSlab slab;
  std::vector<IntSlab::Handle> handles;
  for (int i = 0; i < 300; ++i) handles.push_back(slab.HandleOf(slab.New(i)));
  for (int i = 0; i < 300; i += 2) slab.Delete(handles[i]);
  std::set<int> seen;
  slab.ForEach([&](int value) { seen.insert(value); });
  EXPECT_EQ(seen.size(), 150u);
  EXPECT_EQ(slab.size(), 150u);
  EXPECT_TRUE(seen.contains(299));
  EXPECT_FALSE(seen.contains(298));
}

TEST(SlabTest, DestroysWhatIsDeletedAndWhatIsLeft) {
  const auto alive = std::make_shared<int>(0);
  {
    using Slab = Slab<std::shared_ptr<int>>;
    Slab slab;
    auto& first = slab.New(alive);
    slab.New(alive);
    EXPECT_EQ(alive.use_count(), 3);
    slab.Delete(Slab::HandleOf(first));
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace pando
