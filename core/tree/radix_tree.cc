#include "core/tree/radix_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "base/check.h"

namespace pando {
namespace {

// It uses memcpy, because std::vector would copy objects of class PageId one by
// one.
void AppendPages(std::span<const PageId> from, std::vector<PageId>& to) {
  // If empty, from.data() may be null, which memcpy must not get.
  if (from.empty()) return;
  const size_t old_size = to.size();
  to.resize(old_size + from.size());
  std::memcpy(to.data() + old_size, from.data(), from.size_bytes());
}

}  // namespace

RadixTree::RadixTree(uint32_t page_tokens, uint32_t max_pages,
                     EvictionPolicyKind policy, const QuotaClasses* classes,
                     const ReuseOptions& reuse, PageLedger* ledger)
    : page_tokens_(page_tokens),
      max_pages_(max_pages),
      quota_classes_(classes),
      reuse_(reuse),
      ledger_(ledger),
      nodes_(ledger == nullptr ? nullptr : &ledger->counts().node_generation),
      index_(page_tokens, &nodes_),
      classes_(classes->count()) {
  if (reuse_.learns_always) MakeLearner();
  SetPolicy(policy);
}

RadixTree::~RadixTree() = default;

Namespace* RadixTree::FindNamespace(const NamespaceKey& key) const {
  const uint32_t cell =
      namespaces_by_key_.Find(absl::HashOf(key), [&](uint32_t candidate) {
        return *namespaces_.FindAt(candidate)->key == key;
      });
  return cell == SteadyIndex::kNone ? nullptr : namespaces_.FindAt(cell);
}

Namespace* RadixTree::FindNamespace(NamespaceNumber number) const {
  const auto it = namespaces_by_number_.find(number);
  return it == namespaces_by_number_.end() ? nullptr : it->second;
}

const Namespace* RadixTree::NamespaceAfter(NamespaceNumber number) const {
  const auto it = namespaces_by_number_.upper_bound(number);
  return it == namespaces_by_number_.end() ? nullptr : it->second;
}

Namespace& RadixTree::FindOrMakeNamespace(const NamespaceKey& key) {
  if (Namespace* const known = FindNamespace(key); known != nullptr) {
    return *known;
  }
  return MakeNamespace(key, ledger_ == nullptr ? PageLedger::kNoCell
                                               : ledger_->AddNamespace(key));
}

Namespace& RadixTree::MakeNamespace(const NamespaceKey& key,
                                    uint32_t ledger_cell) {
  Namespace& ns = namespaces_.New(
      Namespace{.key = std::make_shared<const NamespaceKey>(key),
                .number = NamespaceNumber(++namespaces_created_),
                .quota_class = quota_classes_->ClassOf(key),
                .ledger_cell = ledger_cell});
  ns.root = &NewNode(ns);
  namespaces_by_key_.Add(absl::HashOf(key), Slab<Namespace>::IndexOf(ns));
  namespaces_by_number_[ns.number] = &ns;
  if (IsAudited(*ns.root)) audit_->Add(*ns.root);
  return ns;
}

void RadixTree::Prune(Namespace& ns) {
  if (!ns.root->is_leaf() || ns.root->is_locked()) return;
  if (IsAudited(*ns.root)) audit_->Remove(*ns.root);
  if (ledger_ != nullptr) ledger_->RemoveNamespace(ns.ledger_cell);
  nodes_.Delete(Slab<Node>::HandleOf(*ns.root));
  namespaces_by_number_.erase(ns.number);
  namespaces_by_key_.Remove(absl::HashOf(*ns.key),
                            Slab<Namespace>::IndexOf(ns));
  namespaces_.Delete(Slab<Namespace>::HandleOf(ns));
}

std::optional<TreePosition> RadixTree::FindPosition(Slab<Node>::Handle handle,
                                                    uint32_t pages) const {
  Node* node = nodes_.Find(handle);
  if (node == nullptr || node->end_pages() < pages) return std::nullopt;
  while (pages <= node->depth_pages && !node->is_root()) node = node->parent;
  return TreePosition{node, pages - node->depth_pages};
}

TreePosition RadixTree::Walk(TreePosition position,
                             std::span<const Token> tokens, uint32_t max_pages,
                             std::vector<PageId>* pages) const {
  const Token* next = tokens.data();
  uint32_t left = std::min(max_pages, WholePages(position.node->ns->lookahead(),
                                                 tokens.size(), page_tokens_));
  const auto advance = [&](uint32_t known) {
    Node& node = *position.node;
    const uint32_t begin = position.pages_in_node;
    const uint32_t common = CommonPages(
        node, begin, next, std::min(left, node.page_count - begin), known);
    if (pages != nullptr) {
      AppendPages(node.pages().subspan(begin, common), *pages);
    }
    position.pages_in_node += common;
    next += size_t{common} * page_tokens_;
    left -= common;
  };
  if (position.is_inside_node()) advance(0);
  while (left > 0 && !position.is_inside_node()) {
    Node* child = index_.Find(*position.node, next);
    if (child == nullptr) break;
    position = {child, 0};
    advance(1);  // the index compared the first page
  }
  return position;
}

// Returns how many of the `pages` pages of `node`, from `first_page` on, equal
// `tokens`. The first `known` pages are known to be equal. It compares
// everything at once, because that usually succeeds, and halves the range if
// there is a difference.
uint32_t RadixTree::CommonPages(const Node& node, uint32_t first_page,
                                const Token* tokens, uint32_t pages,
                                uint32_t known) const {
  const Token* const own =
      node.tokens(page_tokens_) + size_t{first_page} * page_tokens_;
  const size_t lookahead = node.ns->lookahead();
  const auto equal = [&](uint32_t begin, uint32_t end) {
    const size_t offset = size_t{begin} * page_tokens_;
    const size_t count = size_t{end - begin} * page_tokens_ + lookahead;
    return std::memcmp(own + offset, tokens + offset, count * sizeof(Token)) ==
           0;
  };
  if (known == pages || equal(known, pages)) return pages;
  uint32_t same = known;
  uint32_t differs_before = pages;  // the first difference is in [same, this)
  while (differs_before - same > 1) {
    const uint32_t middle = same + (differs_before - same) / 2;
    if (equal(same, middle)) {
      same = middle;
    } else {
      differs_before = middle;
    }
  }
  return same;
}

Node& RadixTree::NodeEndingAt(TreePosition position) {
  return position.is_inside_node()
             ? Split(*position.node, position.pages_in_node)
             : *position.node;
}

Node& RadixTree::NewNode(Namespace& ns) {
  Node& node = nodes_.New();
  node.ns = &ns;
  node.id = ++nodes_created_;
  node.inserted_at = node.used_at = time_;
  return node;
}

// The old node stays the suffix, so that locks on it and handles to it stay
// valid; its new parent takes the first `pages` pages and copies the rest.
Node& RadixTree::Split(Node& node, uint32_t pages) {
  Node& parent = *node.parent;
  Node& front = NewNode(*node.ns);
  front.segment = node.segment;
  front.first_page = node.first_page;
  front.page_count = pages;
  front.lock_count = node.is_locked() ? 1 : 0;
  front.last_access = node.last_access;
  front.hit_count = node.hit_count;
  front.priority = node.priority;
  front.inserted_at = node.inserted_at;
  front.used_at = node.used_at;
  front.retained_from = node.retained_from;
  front.retained_seconds = node.retained_seconds;
  front.has_ended = node.has_ended;
  front.is_loaded = node.is_loaded;

  {
    const AuditedChange change(*this, node);
    RemoveChild(node);
    node.first_page += pages;
    node.page_count -= pages;
    AddChild(parent, front);
    AddChild(front, node);
  }
  if (IsAudited(front)) audit_->Add(front);
  if (IsAudited(node) && !IsAudited(front)) audit_->RemovePages(front.pages());
  if (!IsAudited(node) && IsAudited(front)) audit_->AddPages(front.pages());
  if (learner_ != nullptr) learner_->Split(front, node);
  if (!node.is_locked()) OrderOf(node).AddFront(front, node);
  return front;
}

Node& RadixTree::AddLeaf(Node& parent, SegmentRef segment, const Use& use) {
  Node& leaf = Attach(parent, std::move(segment), use);
  Touch(leaf, use);
  return leaf;
}

Node& RadixTree::Attach(Node& parent, SegmentRef segment, const Use& use) {
  Node& leaf = NewNode(*parent.ns);
  leaf.page_count = segment->used_pages();
  leaf.segment = std::move(segment);
  leaf.priority = use.priority;
  if (parent.has_ended) ForgetEnd(parent);
  const bool was_leaf = parent.is_leaf();
  {
    const AuditedChange change(*this, parent);
    AddChild(parent, leaf);
  }
  PublishSegment(leaf);
  if (IsAudited(leaf)) {
    audit_->Add(leaf);
    audit_->AddPages(leaf.pages());
  }
  if (was_leaf && !parent.is_root() && !parent.is_locked()) {
    OrderOf(parent).LeafChanged(parent);
  }
  CountPages(*leaf.ns, leaf.page_count, 0);
  if (learner_ != nullptr) {
    SplitIntoParts(leaf, use.request);
  } else {
    OrderOf(leaf).Add(leaf);
  }
  return leaf;
}

void RadixTree::NoteUseInLedger(Node& node) const {
  if (ledger_ == nullptr) return;
  node.segment.NoteUsed(node.last_access, node.hit_count, node.priority);
}

void RadixTree::PublishSegment(Node& node) const {
  if (node.ns->ledger_cell == PageLedger::kNoCell) return;
  const Node& parent = *node.parent;
  node.segment.Publish(
      {.namespace_cell = node.ns->ledger_cell,
       .before = parent.is_root() ? kPaddingPage : parent.pages().back(),
       .depth_pages = node.depth_pages});
}

void RadixTree::SplitIntoParts(Node& leaf, RequestFacts* request) {
  const std::span<const ReuseLearner::Part> parts =
      learner_->AddLeaf(leaf, request);
  OrderOf(leaf).Add(leaf);
  for (const ReuseLearner::Part& part : parts.first(parts.size() - 1)) {
    learner_->SetPart(Split(leaf, part.pages), part, request);
  }
}

void RadixTree::MarkLoaded(const Node& parent, Node& leaf) {
  has_loaded_ = true;
  for (Node* n = &leaf; n != &parent; n = n->parent) n->is_loaded = true;
}

uint32_t RadixTree::TakeLoaded(Node& node) {
  uint32_t pages = 0;
  for (Node* n = &node; has_loaded_ && !n->is_root(); n = n->parent) {
    if (std::exchange(n->is_loaded, false)) pages += n->page_count;
  }
  return pages;
}

RequestFacts RadixTree::BeginRequest(uint32_t prompt_tokens,
                                     uint32_t cached_tokens) {
  if (learner_ == nullptr) return {};
  return learner_->BeginRequest(prompt_tokens, cached_tokens);
}

void RadixTree::Touch(Node& node, const Use& use) {
  ++now_;
  if (!node.is_root()) TouchPath(node, use);
  if (learner_ != nullptr) learner_->NoteUsed(use.request);
}

void RadixTree::TouchPath(Node& node, const Use& use) {
  OrderOf(node).BeforeUse(node);
  for (Node* n = &node; !n->is_root(); n = n->parent) {
    if (n->has_ended) ForgetEnd(*n);
    n->last_access = now_;
    n->used_at = time_;
    n->hit_count += use.is_hit;
    n->priority = std::max(n->priority, use.priority);
  }
  if (learner_ != nullptr) learner_->Use(node, node.ns->root, use.request);
  OrderOf(node).AfterUse(node);
  NoteUseInLedger(node);
}

void RadixTree::Lock(Node& node) {
  if (node.is_ended_leaf()) EndedOf(node).Remove(node);
  ChangingOrder& order = OrderOf(node);
  uint32_t pages = 0;
  for (Node* n = &node; n != nullptr; n = n->parent) {
    const AuditedChange change(*this, *n);
    if (n->lock_count++ > 0) break;  // the nodes above it are locked, too
    if (n->is_root()) break;
    order.Remove(*n);
    if (ledger_ != nullptr) n->segment.NoteLocked(n->page_count);
    pages += n->page_count;
  }
  if (pages > 0) CountPages(*node.ns, -int64_t{pages}, pages);
}

Node* RadixTree::Unlock(Node& node, uint32_t& steps) {
  ++now_;
  uint32_t pages = 0;
  uint32_t left = steps;
  Node* next = &node;  // the node that loses the lock next
  for (; left > 0; --left) {
    const AuditedChange change(*this, *next);
    CHECK(next->lock_count > 0);
    if (--next->lock_count > 0 || next->is_root()) break;
    next->last_access = now_;
    next->used_at = time_;
    if (ledger_ != nullptr) next->segment.NoteUnlocked(next->page_count);
    pages += next->page_count;
    // The parent counted this node as a locked child. Its count stays the same,
    // because it now counts the moved lock instead.
    next = next->parent;
  }
  if (next != &node) NoteUseInLedger(node);
  if (learner_ != nullptr) learner_->Use(node, next, nullptr);
  ChangingOrder& order = OrderOf(node);
  for (Node* n = &node; n != next; n = n->parent) order.Add(*n);
  if (node.is_ended_leaf()) EndedOf(node).Add(node);
  if (pages > 0) CountPages(*node.ns, pages, -int64_t{pages});
  steps = left;
  return left > 0 ? nullptr : next;
}

void RadixTree::MoveLock(Node& ancestor, Node& node) {
  Lock(node);
  const AuditedChange change(*this, ancestor);
  --ancestor.lock_count;
}

void RadixTree::CountPages(Namespace& ns, int64_t evictable, int64_t locked) {
  ClassState& of_class = classes_[ns.quota_class];
  for (uint32_t* count :
       {&ns.evictable_pages, &of_class.evictable_pages, &evictable_pages_}) {
    *count += static_cast<uint32_t>(evictable);
  }
  for (uint32_t* count : {&ns.protected_pages, &protected_pages_}) {
    *count += static_cast<uint32_t>(locked);
  }
  of_class.cached_pages += static_cast<uint32_t>(evictable + locked);
}

uint32_t RadixTree::EvictablePagesUpTo(TreePosition position) {
  // All ancestors of a locked node are locked, so the loop ends at the first.
  uint32_t pages = 0;
  for (Node* n = position.node; !n->is_root() && !n->is_locked();
       n = n->parent) {
    pages += n == position.node ? position.pages_in_node : n->page_count;
  }
  return pages;
}

void RadixTree::AddChild(Node& parent, Node& node) {
  node.parent = &parent;
  node.depth_pages = parent.end_pages();
  node.previous_sibling = nullptr;
  node.next_sibling = parent.first_child;
  if (parent.first_child != nullptr) {
    parent.first_child->previous_sibling = &node;
  }
  parent.first_child = &node;
  ++node.ns->nodes;
  index_.Add(node);
}

void RadixTree::RemoveChild(Node& node) {
  index_.Remove(node);
  --node.ns->nodes;
  if (node.previous_sibling != nullptr) {
    node.previous_sibling->next_sibling = node.next_sibling;
  } else {
    node.parent->first_child = node.next_sibling;
  }
  if (node.next_sibling != nullptr) {
    node.next_sibling->previous_sibling = node.previous_sibling;
  }
}

void RadixTree::ForEachNode(absl::FunctionRef<void(const Node&)> visit) const {
  nodes_.ForEach([&](const Node& node) {
    if (!node.is_root()) visit(node);
  });
}

void RadixTree::ForEachNodeOfBlock(
    uint32_t block, absl::FunctionRef<void(const Node&)> visit) const {
  nodes_.ForEachOfBlock(block, visit);
}

void RadixTree::ForEachNamespace(
    absl::FunctionRef<void(Namespace&)> visit) const {
  for (const auto& [number, ns] : namespaces_by_number_) visit(*ns);
}

}  // namespace pando
