// Compares pictures of a tree with naive ones, which are made from a dump of
// the same tree.

#include "service/console/picture.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/service/console/grown_cache.h"

namespace pando {
namespace {

using testing::ElementsAreArray;

struct NaiveBranch {
  std::string parent;
  std::vector<std::string> children;
  uint32_t pages = 0;  // without the pages of its children
  uint32_t locked = 0;
};

// The branches of a tree by their names.
class NaiveForest {
 public:
  explicit NaiveForest(PrefixCache& cache) {
    branches_["all"];
    for (const NamespaceInfo& ns : cache.ListNamespaces(100).namespaces) {
      Add("namespace-" + std::to_string(ns.number.value()), "all", 0, false);
    }
    for (const TreeNodeInfo& node :
         cache.DumpTree(100'000, std::nullopt).nodes) {
      Add("node-" + std::to_string(node.node),
          node.parent == 0 ? "namespace-" + std::to_string(node.ns.value())
                           : "node-" + std::to_string(node.parent),
          node.pages, node.locks > 0);
    }
  }

  Totals Below(const std::string& name) const {
    const NaiveBranch& branch = branches_.at(name);
    Totals sum{.nodes = branch.pages > 0 ? 1u : 0u,
               .pages = branch.pages,
               .locked_pages = branch.locked};
    for (const std::string& child : branch.children) sum.Add(Below(child));
    return sum;
  }

  // Returns `name` and the names of all branches below it.
  std::vector<std::string> Subtree(const std::string& name) const {
    std::vector<std::string> names = {name};
    for (size_t i = 0; i < names.size(); ++i) {
      for (const std::string& child : branches_.at(names[i]).children) {
        names.push_back(child);
      }
    }
    return names;
  }

  const NaiveBranch& operator[](const std::string& name) const {
    return branches_.at(name);
  }
  const auto& branches() const { return branches_; }

 private:
  void Add(const std::string& name, const std::string& parent, uint32_t pages,
           bool is_locked) {
    branches_[name] = {parent, {}, pages, is_locked ? pages : 0};
    branches_[parent].children.push_back(name);
  }

  std::map<std::string, NaiveBranch> branches_;
};

auto Numbers(const Totals& totals) {
  return std::tuple(totals.nodes, totals.pages, totals.locked_pages);
}

class PictureTest : public testing::Test {
 protected:
  void Grow(int prompts) { cache_.PublishAtRandom(prompts, random_); }

  const uint64_t seed_ =
      FromEnvironment("PANDO_TEST_SEED", std::random_device()());
  std::mt19937 random_{static_cast<unsigned>(seed_)};
  GrownCache cache_{2'000};
};

TEST_F(PictureTest, TheTotalsOfEveryBranchAreThoseOfAllBelowIt) {
  Grow(300);
  const Forest forest(CopyWholeTree(*cache_));
  const NaiveForest naive(*cache_);
  ASSERT_EQ(forest.size(), naive.branches().size()) << "seed " << seed_;
  for (const auto& [name, branch] : naive.branches()) {
    const auto index = forest.Find(name);
    ASSERT_TRUE(index.has_value()) << name << ", seed " << seed_;
    EXPECT_EQ(forest.NameOf(*index), name);
    EXPECT_EQ(Numbers(forest[*index].below), Numbers(naive.Below(name)))
        << name << ", seed " << seed_;
    if (name != "all") {
      EXPECT_EQ(forest.NameOf(forest[*index].parent), branch.parent);
    }
  }
}

// The picture shows the largest branches. If several branches have the same
// size, those that come first in the forest are shown.
TEST_F(PictureTest, TheLargestBranchesAreShownAndTheRestIsMerged) {
  Grow(300);
  const Forest forest(CopyWholeTree(*cache_));
  const NaiveForest naive(*cache_);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed_ << ", picture " << i);
    const Forest::Index root = random_() % forest.size();
    const uint32_t limit = 1 + random_() % 60;
    const uint32_t min_pages = 1 + random_() % 4;
    const std::vector<ShownBranch> picture =
        MakePicture(forest, root, limit, min_pages);

    std::vector<Forest::Index> wanted;
    for (const std::string& name : naive.Subtree(forest.NameOf(root))) {
      const bool is_large = naive.Below(name).pages >= min_pages;
      const Forest::Index index = forest.Find(name).value();
      if (is_large || index == root) wanted.push_back(index);
    }
    std::sort(wanted.begin(), wanted.end(), [&](auto a, auto b) {
      const auto order = [&](Forest::Index index) {
        return std::tuple(index != root, -int64_t{forest[index].below.pages},
                          index);
      };
      return order(a) < order(b);
    });
    wanted.resize(std::min<size_t>(wanted.size(), limit));
    std::vector<Forest::Index> shown;
    for (const ShownBranch& branch : picture) shown.push_back(branch.index);
    ASSERT_THAT(shown, ElementsAreArray(wanted));

    for (const ShownBranch& branch : picture) {
      uint32_t merged_children = 0;
      Totals merged;
      for (const std::string& child :
           naive[forest.NameOf(branch.index)].children) {
        const Forest::Index index = forest.Find(child).value();
        if (std::find(shown.begin(), shown.end(), index) != shown.end()) {
          continue;
        }
        ++merged_children;
        merged.Add(naive.Below(child));
      }
      EXPECT_EQ(branch.merged_children, merged_children);
      EXPECT_EQ(Numbers(branch.merged), Numbers(merged));
    }
  }
}

TEST_F(PictureTest, AnEmptyCacheIsOneBranch) {
  const Forest forest(CopyWholeTree(*cache_));
  EXPECT_EQ(forest.size(), 1u);
  EXPECT_EQ(MakePicture(forest, Forest::kEverything, 100, 1).size(), 1u);
}

TEST_F(PictureTest, ANodeThatIsSplitKeepsItsPlaceAmongItsSiblings) {
  cache_.Publish({1, 1, 1, 1});
  cache_.Publish({2, 2});
  const Forest before(CopyWholeTree(*cache_));
  cache_.Publish({1, 1, 3});
  const Forest after(CopyWholeTree(*cache_));
  const auto order_of_children = [](const Forest& forest) {
    std::vector<uint64_t> oldest;
    for (const Forest::Index child :
         forest[*forest.FindNamespace(NamespaceNumber(1))].children) {
      oldest.push_back(forest[child].oldest);
    }
    return oldest;
  };
  EXPECT_EQ(order_of_children(before), order_of_children(after));
}

TEST_F(PictureTest, NamesThatMeanNothingAreNotFound) {
  cache_.Publish({1});
  const Forest forest(CopyWholeTree(*cache_));
  for (const char* name : {"", "node", "node-", "node-x", "node--1", "node-999",
                           "namespace-0", "everything", "node-1 "}) {
    EXPECT_EQ(forest.Find(name).value_or(0), 0u) << name;
  }
  EXPECT_FALSE(forest.Find("node-999").has_value());
}

}  // namespace
}  // namespace pando
