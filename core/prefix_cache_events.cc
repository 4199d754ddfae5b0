// The event log of PrefixCache.

#include "core/prefix_cache.h"
#include "core/preorder.h"

namespace pando {

void PrefixCache::StartEvents() {
  absl::MutexLock hold(&mutex_);
  events_.Start();
}

void PrefixCache::TakeEvents(std::vector<RawEvent>& events) {
  events.clear();  // outside the mutex
  absl::MutexLock hold(&mutex_);
  events_.Take([this](EventLog& log) { LogTree(log); }, events);
}

void PrefixCache::TakeChurn(std::vector<RawEvent>& events) {
  events.clear();
  absl::MutexLock hold(&mutex_);
  churn_.Start();
  churn_.Take([](EventLog&) {}, events);
}

void PrefixCache::LogTree(EventLog& log) {
  mutex_.AssertHeld();  // for the analysis: called from a lambda
  tree_.ForEachNamespace([&](const Namespace& ns) {
    const Node* node = ns.root;
    while ((node = NextInPreorder(*ns.root, *node)) != nullptr) {
      LogNode(*node, log);
    }
  });
}

void PrefixCache::LogNode(const Node& node, EventLog& log) {
  const Node& parent = *node.parent;
  log.Stored(node.segment, node.first_page, node.page_count,
             parent.is_root() ? kPaddingPage : parent.pages().back(),
             node.ns->key);
}

}  // namespace pando
