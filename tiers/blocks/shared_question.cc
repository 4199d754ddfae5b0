#include "tiers/blocks/shared_question.h"

#include <algorithm>

#include "tiers/blocks/wanted_blocks.h"

namespace pando {
namespace {

constexpr size_t kMostQuestions = 4'096;
constexpr size_t kMostOfSession = 256;
constexpr size_t kFirstAsked = 64;
constexpr size_t kMostAsked = 512;

}  // namespace

SharedQuestion::Id SharedQuestion::IdOf(const KnownKind& kind,
                                        std::string_view keys) {
  const size_t count = keys.size() / kind.kind.key_bytes;
  return {{kind.NameOf(kind.KeyOf(keys, 0)),
           kind.NameOf(kind.KeyOf(keys, count - 1))},
          count};
}

BlockKeys SharedQuestion::row() const {
  return {.kind = kind->kind.number,
          .keys = keys,
          .before = before,
          .shape = shape,
          .window = window};
}

void SharedQuestion::Begin() {
  begin = 0;
  end = asked.size();
  most = kFirstAsked;
  if (IsRow(shape)) most = std::clamp<size_t>(window, kFirstAsked, kMostAsked);
  kept.resize(answers.size());
}

std::span<const uint32_t> SharedQuestion::Next() const {
  const auto rest = std::span(asked).subspan(begin, end - begin);
  const size_t count = std::min(most, rest.size());
  return IsRow(shape) ? rest.last(count) : rest.first(count);
}

void SharedQuestion::Take(const std::vector<bool>& present) {
  const std::span<const uint32_t> some = Next();
  bool are_all_there = true;
  for (size_t i = 0; i < some.size(); ++i) {
    kept[some[i]] = present[i];
    if (present[i]) continue;
    are_all_there = false;
    absent.push_back(NameAt(some[i]));
  }
  if (IsRow(shape)) {
    end -= some.size();
  } else {
    begin += some.size();
  }
  most = std::min(2 * most, kMostAsked);
  const bool is_decided = IsRow(shape)
                              ? !WantedBlocks(row(), answers, kept).empty()
                              : shape == BlockShape::kPrefix && !are_all_there;
  if (is_decided) end = begin;
}

bool QuestionQueue::IsFullFor(SessionId session) const {
  const auto of_session = by_session_.find(session);
  return ids_.size() >= kMostQuestions ||
         (of_session != by_session_.end() &&
          of_session->second.size() >= kMostOfSession);
}

void QuestionQueue::Add(SharedQuestion question) {
  question.Begin();
  ids_.insert(question.id());
  by_session_[question.asked_by].push_back(std::move(question));
}

SharedQuestion QuestionQueue::Take() {
  auto next = by_session_.upper_bound(last_);
  if (next == by_session_.end()) next = by_session_.begin();
  last_ = next->first;
  SharedQuestion question = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) by_session_.erase(next);
  return question;
}

void QuestionQueue::PutBack(SharedQuestion question) {
  by_session_[question.asked_by].push_front(std::move(question));
}

std::deque<SharedQuestion> QuestionQueue::TakeAll(SessionId session) {
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return {};
  std::deque<SharedQuestion> all = std::move(found->second);
  by_session_.erase(found);
  for (const SharedQuestion& question : all) ids_.erase(question.id());
  return all;
}

}  // namespace pando
