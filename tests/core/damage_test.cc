// Checks that CheckInvariants finds damage. Each test damages parts of the
// cache by hand, one value after another, and restores each value afterwards.

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "core/blocks/block_holds.h"
#include "tests/core/cache_fixture.h"

namespace pando {

// A friend of the classes under test that reaches the parts of a cache.
class DamagedCache {
 public:
  explicit DamagedCache(PrefixCache& cache) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : tree(cache.parts_.tree),
        pool(cache.parts_.pool),
        sessions(cache.parts_.sessions),
        quarantine(cache.parts_.holdings.quarantine_),
        pending(cache.parts_.pending),
        evictable_pages(tree.evictable_pages_),
        class_pages(tree.classes_[0].cached_pages),
        namespaces_by_key(tree.namespaces_by_key_),
        namespaces_by_number(tree.namespaces_by_number_),
        reserved_by_class(pool.reserved_[0]),
        free(pool.free_) {}

  EvictionPolicy& order() { return tree.classes_[0].order.now(); }
  uint32_t& count(PageState state) {
    return pool.counts_[static_cast<size_t>(state)];
  }
  PageRecord& record(PageId page) { return pool.Record(page); }
  PageRecord WithState(PageId page, PageState state) {
    PageRecord changed = record(page);
    changed.state = state;
    return changed;
  }
  PageRecord Marked(PageId page) {
    PageRecord changed = record(page);
    changed.is_marked = true;
    return changed;
  }

  RadixTree& tree;
  PagePool& pool;
  SessionTable& sessions;
  Quarantine& quarantine;
  PendingPages& pending;
  uint32_t& evictable_pages;
  uint32_t& class_pages;
  SteadyIndex& namespaces_by_key;
  absl::btree_map<NamespaceNumber, Namespace*>& namespaces_by_number;
  uint32_t& reserved_by_class;
  std::vector<PageId>& free;
};

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// A cache with the prompts "abc" and "abdd", whose nodes are ab, c and dd, and
// with the prompt "x" in another namespace.
class DamageTest : public CacheFixture {
 protected:
  DamageTest() {
    Publish("abc");
    Publish("abdd");
    Publish("x", other_key_);
  }

  Namespace& Home() { return *damaged_.tree.FindNamespace(kNoNamespace); }
  Namespace& Other() { return *damaged_.tree.FindNamespace(other_key_); }
  // Changes the index of namespaces: the keys of Home() and Other(), which now
  // find `now`, find `then` afterwards.
  void Relink(std::array<const Namespace*, 2> now,
              std::array<const Namespace*, 2> then) {
    const std::array<size_t, 2> hashes = {absl::HashOf(kNoNamespace),
                                          absl::HashOf(other_key_)};
    for (size_t i = 0; i < 2; ++i) {
      damaged_.namespaces_by_key.Remove(hashes[i],
                                        Slab<Namespace>::IndexOf(*now[i]));
    }
    for (size_t i = 0; i < 2; ++i) {
      damaged_.namespaces_by_key.Add(hashes[i],
                                     Slab<Namespace>::IndexOf(*then[i]));
    }
  }
  // Returns the node in which the prompt ends.
  Node& NodeOf(std::string_view letters) {
    const auto tokens = Spell(letters);
    return *damaged_.tree
                .Walk(EndOf(*Home().root), tokens,
                      static_cast<uint32_t>(letters.size()), nullptr)
                .node;
  }
  LockRecord& LockOf(SessionId session, LockId lock) {
    return *damaged_.sessions.FindLock(*damaged_.sessions.Find(session), lock);
  }
  // Locks the prompt and announces that the session computes what follows.
  LockId Announce(std::string_view letters) {
    const auto match = MatchAndLock(
        letters, static_cast<uint32_t>(letters.size()) * kPageTokens);
    EXPECT_EQ(Outcome(match), "OK");
    return match.ok() ? match->lock : LockId();
  }
  WaitId WaitFor(std::string_view letters) {
    const auto tokens = Spell(letters);
    const auto match =
        cache_.Match({.session = session_,
                      .ns = kNoNamespace,
                      .tokens = tokens,
                      .lock = true,
                      .reserve_tokens = static_cast<uint32_t>(tokens.size()),
                      .wait = true});
    EXPECT_EQ(Outcome(match), "OK");
    return match.ok() ? match->wait : WaitId();
  }
  PendingPage& PendingAfter(const Node& node) {
    PendingPage* found = nullptr;
    damaged_.pending.ForEach([&](PendingPage& page) {
      if (page.after == &node) found = &page;
    });
    return *found;
  }

  // Returns what CheckInvariants finds while `value` is `damaged`.
  template <typename T>
  std::vector<std::string> Violations(T& value, T damaged) {
    std::swap(value, damaged);
    auto violations = cache_.CheckInvariants();
    std::swap(value, damaged);
    return violations;
  }

  const NamespaceKey other_key_{.extra_key = "other", .cache_salt = {}};
  DamagedCache damaged_{cache_};
};

auto Tells(const std::string& violation) {
  return Contains(HasSubstr(violation));
}

TEST_F(DamageTest, OfLockCounts) {
  EXPECT_THAT(Violations(NodeOf("ab").newer, &NodeOf("abc")),
              Tells("is missing in the order"));
  EXPECT_THAT(
      Violations(NodeOf("ab").lock_count, 1u),
      Tells("lock_count is not its own locks plus its locked children"));
}

TEST_F(DamageTest, OfLinksBetweenNodes) {
  EXPECT_THAT(Violations(NodeOf("abc").parent, &NodeOf("abdd")),
              Tells("is listed below another parent"));
  EXPECT_THAT(Violations(NodeOf("abc").parent, static_cast<Node*>(nullptr)),
              Tells("3 roots, but 2 namespaces"));
  EXPECT_THAT(Violations(Home().root->first_child, static_cast<Node*>(nullptr)),
              Tells("is the root of a namespace with nothing in it"));
}

TEST_F(DamageTest, OfTheListsOfNamespaces) {
  const char* const kNotTheRoot = "is not the root of its namespace";
  EXPECT_THAT(Violations(Home().root, &NodeOf("ab")), Tells(kNotTheRoot));
  EXPECT_THAT(
      Violations(damaged_.namespaces_by_number[Home().number], &Other()),
      Tells(kNotTheRoot));

  Namespace& home = Home();
  Namespace& other = Other();
  Relink({&home, &other}, {&other, &home});
  EXPECT_THAT(cache_.CheckInvariants(), Tells(kNotTheRoot));
  Relink({&other, &home}, {&home, &other});

  damaged_.namespaces_by_number[NamespaceNumber(99)] = &Home();
  EXPECT_THAT(cache_.CheckInvariants(),
              Tells("a namespace is listed by another number"));
  damaged_.namespaces_by_number.erase(NamespaceNumber(99));
}

TEST_F(DamageTest, OfTheRunOfANode) {
  Node& node = NodeOf("abc");
  EXPECT_THAT(Violations(node.page_count, 0u), Tells("has no pages"));
  EXPECT_THAT(Violations(NodeOf("abdd").page_count, 1u),
              Tells("the nodes of a segment hold 1 pages, but 2 are counted"));
  EXPECT_THAT(Violations(node.first_page, 3u),
              Tells("reaches past its segment"));
  EXPECT_THAT(Violations(node.first_page, 1u),
              AllOf(Tells("is not found by its first page"),
                    Tells("is in two nodes"), Tells("is in no node")));
  EXPECT_THAT(Violations(node.depth_pages, 1u),
              Tells("does not begin where its parent ends"));
  EXPECT_THAT(Violations(node.ns, &Other()),
              Tells("is in another namespace than its parent"));
}

TEST_F(DamageTest, OfSums) {
  EXPECT_THAT(
      Violations(damaged_.evictable_pages, 7u),
      Tells("the tree has 4 nodes, 6 evictable and 0 protected pages, but"));
  EXPECT_THAT(Violations(Home().evictable_pages, 6u), Tells("a namespace has"));
  EXPECT_THAT(Violations(damaged_.class_pages, 7u),
              Tells("a class of namespaces has"));
}

TEST_F(DamageTest, OfTheOrderOfLru) {
  Touch("abc");
  Node& leaf = NodeOf("abc");
  EXPECT_THAT(Violations(NodeOf("ab").last_access, uint64_t{0}),
              Tells("is too far back in the order"));
  damaged_.order().Remove(leaf);
  EXPECT_THAT(cache_.CheckInvariants(), Tells("is missing in the order"));
  damaged_.order().Add(leaf);
  EXPECT_THAT(cache_.CheckInvariants(), Tells("is newer than its parent"));
  Touch("abc");
}

TEST_F(DamageTest, OfTheEndedLeaves) {
  EXPECT_THAT(
      Violations(NodeOf("abc").has_ended, true),
      AllOf(Tells("is not listed among the ended leaves as it should be"),
            Tells("the list of ended leaves is not as long as it should be")));
}

TEST_F(DamageTest, OfAnOrderByRank) {
  cache_.SetEvictionPolicy(EvictionPolicyKind::kFifo);
  Node& leaf = NodeOf("abc");
  damaged_.order().Remove(leaf);
  EXPECT_THAT(cache_.CheckInvariants(),
              AllOf(Tells("fifo: node"), Tells("is missing in the order"),
                    Tells("tree: 2 leaves in the order of eviction of 3")));
  damaged_.order().Add(leaf);

  std::swap(leaf.id, NodeOf("abdd").id);
  EXPECT_THAT(cache_.CheckInvariants(), Tells("is missing in the order"));
  std::swap(leaf.id, NodeOf("abdd").id);
}

TEST_F(DamageTest, OfThePagesStates) {
  const PageId cached = PagesOf("abc")[2];
  const PageId free = damaged_.free.back();
  EXPECT_THAT(Violations(damaged_.record(cached),
                         damaged_.WithState(cached, PageState::kQuarantined)),
              Tells("is not sealed"));
  const char* const kWrongCounts = "the counts by state or class are wrong";
  EXPECT_THAT(Violations(damaged_.count(PageState::kSealed), 9u),
              Tells(kWrongCounts));
  EXPECT_THAT(Violations(damaged_.reserved_by_class, 1u), Tells(kWrongCounts));
  EXPECT_THAT(Violations(damaged_.record(free),
                         damaged_.WithState(free, PageState::kSealed)),
              Tells("is in no node, but sealed"));
  EXPECT_THAT(Violations(damaged_.record(free), damaged_.Marked(free)),
              Tells("is left marked"));
  EXPECT_THAT(Violations(damaged_.free, {}),
              AllOf(Tells("is free, but not listed as that"),
                    Tells("the list of free pages is not as long")));
  std::vector<PageId> swapped = damaged_.free;
  std::swap(swapped.front(), swapped.back());
  EXPECT_THAT(Violations(damaged_.free, swapped),
              Tells("is free, but not listed as that"));
}

TEST_F(DamageTest, OfReservedPages) {
  Allocate(2);
  auto& reserved = damaged_.sessions.Find(session_)->reserved.pages;
  EXPECT_THAT(Violations(reserved, {reserved[1], reserved[0]}),
              Tells("is not reserved by its owner"));
  EXPECT_THAT(Violations(reserved, {reserved[0]}),
              Tells("a reserved page belongs to no session"));
}

TEST_F(DamageTest, OfQuarantinedPages) {
  Quarantine::Batch batch;
  batch.owner = session_;
  batch.pages = {PageId(1)};
  batch.blocks = std::make_unique<BlockOwner>();
  damaged_.quarantine.Add(std::move(batch));
  EXPECT_THAT(cache_.CheckInvariants(),
              Tells("a quarantined page is in no batch"));
  damaged_.quarantine.TakeBatchesOf(session_);
}

TEST_F(DamageTest, OfLocks) {
  LockRecord& lock = LockOf(session_, Lock("abc"));
  Session stranger;
  stranger.id = SessionId(99);
  EXPECT_THAT(Violations(lock.session, &stranger),
              Tells("a lock belongs to no live session"));
  Node gone;
  EXPECT_THAT(Violations(lock.node, &gone),
              Tells("a lock names a node that is gone"));
}

TEST_F(DamageTest, OfPagesThatAreBeingComputed) {
  LockRecord& owner = LockOf(session_, Announce("abcz"));
  Announce("abddz");
  WaitFor("abcz");
  PendingPage& page = PendingAfter(NodeOf("abc"));
  const char* const kNotItsNext = "a page is not its owner's next one";
  EXPECT_THAT(Violations(owner.pending, static_cast<PendingPage*>(nullptr)),
              Tells(kNotItsNext));
  EXPECT_THAT(Violations(owner.node, &NodeOf("ab")), Tells(kNotItsNext));
  EXPECT_THAT(Violations(page.waits, {}), Tells("a wait is for no page"));
  EXPECT_THAT(Violations(page.waits, {WaitId(99)}),
              Tells("a wait is not for its page"));
  std::swap(page.waits, PendingAfter(NodeOf("abdd")).waits);
  EXPECT_THAT(cache_.CheckInvariants(), Tells("a wait is not for its page"));
  std::swap(page.waits, PendingAfter(NodeOf("abdd")).waits);
}

TEST_F(DamageTest, OfAPageThatIsBeingComputedThoughItIsCached) {
  Announce("abz");
  PendingPage& page = PendingAfter(NodeOf("ab"));
  EXPECT_THAT(Violations(page.tokens, Spell("c")),
              Tells("a page is cached already"));
}

}  // namespace
}  // namespace pando
