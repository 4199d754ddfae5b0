#include "service/console/forest_json.h"

#include <algorithm>

namespace pando {
namespace {

using nlohmann::json;

double SecondsOf(uint32_t tenths) { return tenths / 10.0; }

json TotalsJson(const Totals& totals) {
  json out = {{"nodes", totals.nodes},
              {"pages", totals.pages},
              {"locked_pages", totals.locked_pages}};
  if (totals.nodes > 0) out["idle_s"] = SecondsOf(totals.idle);
  return out;
}

json NodeJson(const NodeCopy& node) {
  return {{"number", node.number},
          {"begin_page", node.begin_page},
          {"pages", node.pages},
          {"locks", node.locks},
          {"hits", node.hits},
          {"priority", node.priority},
          {"age_s", SecondsOf(node.age)},
          {"idle_s", SecondsOf(node.idle)}};
}

json BranchJson(const Forest& forest, Forest::Index index) {
  const Forest::Branch& branch = forest[index];
  json out = {{"name", forest.NameOf(index)},
              {"oldest", branch.oldest},
              {"below", TotalsJson(branch.below)}};
  if (index != Forest::kEverything)
    out["parent"] = forest.NameOf(branch.parent);
  if (branch.node != nullptr) {
    out["node"] = NodeJson(*branch.node);
  } else if (branch.ns != nullptr) {
    out["namespace"] = NamespaceJson(*branch.ns);
  }
  return out;
}

json PathJson(const Forest& forest, Forest::Index index) {
  json path = json::array();
  for (const Forest::Index i : forest.PathTo(index)) {
    path.push_back(BranchJson(forest, i));
  }
  return path;
}

}  // namespace

json NamespaceJson(const NamespaceCopy& ns) {
  return {{"number", ns.number.value()},
          {"extra_key", ns.key->extra_key.has_value() ? json(*ns.key->extra_key)
                                                      : json(nullptr)},
          {"is_salted", ns.key->cache_salt.has_value()},
          {"is_bigram", ns.key->bigram}};
}

json TreeJson(const Forest& forest, Forest::Index root, uint32_t limit,
              uint32_t min_pages) {
  json branches = json::array();
  for (const ShownBranch& shown : MakePicture(forest, root, limit, min_pages)) {
    json& out = branches.emplace_back(BranchJson(forest, shown.index));
    if (shown.merged_children == 0) continue;
    out["merged"] = TotalsJson(shown.merged);
    out["merged"]["children"] = shown.merged_children;
  }
  return {{"path", PathJson(forest, root)}, {"branches", std::move(branches)}};
}

json BranchJson(const Forest& forest, Forest::Index index, uint32_t first_child,
                uint32_t limit) {
  json children = json::array();
  const auto& all = forest[index].children;
  for (size_t i = first_child; i < all.size() && children.size() < limit; ++i) {
    children.push_back(BranchJson(forest, all[i]));
  }
  return {{"branch", BranchJson(forest, index)},
          {"path", PathJson(forest, index)},
          {"first_child", first_child},
          {"children", std::move(children)},
          {"total_children", all.size()}};
}

}  // namespace pando
