#include "core/requests/answers.h"

#include <utility>

namespace pando {
namespace {

struct PageIdsOf {
  size_t operator()(const MatchResult& result) const {
    return result.pages.size() + result.reserved.size();
  }
  size_t operator()(const InsertResult& result) const {
    return result.canonical_pages.size();
  }
  size_t operator()(const LockResult&) const { return 0; }
  size_t operator()(const AllocateResult& result) const {
    return result.pages.size();
  }
  size_t operator()(const Unlocked&) const { return 0; }
  size_t operator()(const Freed&) const { return 0; }
};

}  // namespace

void Answers::Add(RequestId id, Answer answer) {
  page_ids_ += std::visit(PageIdsOf(), answer);
  answers_.emplace(id, std::make_unique<const Answer>(std::move(answer)));
  oldest_first_.push_back(id);
  while (oldest_first_.size() > kMaxAnswers ||
         (page_ids_ > kMaxPageIds && oldest_first_.size() > 1)) {
    const auto oldest = answers_.find(oldest_first_.front());
    oldest_first_.pop_front();
    page_ids_ -= std::visit(PageIdsOf(), *oldest->second);
    answers_.erase(oldest);
  }
}

}  // namespace pando
