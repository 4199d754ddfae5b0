#include "service/console/picture.h"

#include <queue>
#include <utility>

namespace pando {
namespace {

// A candidate for the picture: the largest child of a shown branch that is not
// shown yet. Children are in order, the largest first, so no other child of
// that branch can come before it.
struct Candidate {
  size_t parent;  // in the picture
  uint32_t child;
  Forest::Index index;
};

}  // namespace

std::vector<ShownBranch> MakePicture(const Forest& forest, Forest::Index root,
                                     uint32_t limit, uint32_t min_pages) {
  const auto comes_later = [&](const Candidate& a, const Candidate& b) {
    const uint32_t pages_a = forest[a.index].below.pages;
    const uint32_t pages_b = forest[b.index].below.pages;
    return pages_a != pages_b ? pages_a < pages_b : a.index > b.index;
  };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(comes_later)>
      next(comes_later);
  std::vector<ShownBranch> shown;
  const auto push_child = [&](size_t parent, uint32_t child) {
    const auto& children = forest[shown[parent].index].children;
    if (child < children.size()) next.push({parent, child, children[child]});
  };
  const auto show = [&](Forest::Index index) {
    shown.push_back({.index = index});
    push_child(shown.size() - 1, 0);
  };

  show(root);
  while (!next.empty() && shown.size() < limit &&
         forest[next.top().index].below.pages >= min_pages) {
    const Candidate candidate = next.top();
    next.pop();
    show(candidate.index);
    push_child(candidate.parent, candidate.child + 1);
  }
  for (; !next.empty(); next.pop()) {
    ShownBranch& parent = shown[next.top().parent];
    const auto& children = forest[parent.index].children;
    for (size_t i = next.top().child; i < children.size(); ++i) {
      ++parent.merged_children;
      parent.merged.Add(forest[children[i]].below);
    }
  }
  return shown;
}

}  // namespace pando
