#include "core/sessions/session_recovery.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "core/nodes/slab.h"

namespace pando {

std::vector<const Session*> SessionRecovery::Run() {
  FindSessions();
  FindLocks();
  FindNodes();
  FindPrompts();
  return Reopen();
}

void SessionRecovery::LoseAll() {
  has_other_locks_ = true;
  tree_->TakeEarlierPrompts();
  Reopen();
}

std::vector<const Session*> SessionRecovery::Reopen() {
  std::vector<const Session*> open;
  std::array<PageOwner*, kMaxLedgerSessions + 1> owners{};
  for (uint32_t cell = 1; cell <= kMaxLedgerSessions; ++cell) {
    if (!found_[cell].has_value()) {
      ledger_->session(cell).state = SessionState::kNone;
      continue;
    }
    Open(cell, *found_[cell]);
    open.push_back(open_[cell]);
    owners[cell] = &open_[cell]->reserved;
  }
  pool_->TakeReserved(owners);
  TakeLocks();
  return open;
}

void SessionRecovery::FindSessions() {
  absl::flat_hash_set<uint64_t> ids;
  absl::flat_hash_set<uint32_t> numbers;
  for (uint32_t cell = 1; cell <= kMaxLedgerSessions; ++cell) {
    const SessionFacts& facts = ledger_->session(cell);
    if (facts.state == SessionState::kNone) continue;
    std::optional<std::vector<KeptAnswer>> answers;
    if (IsPlausible(facts) && ids.insert(facts.id).second &&
        numbers.insert(facts.number).second) {
      answers = AnswersOf(cell);
    }
    if (answers.has_value()) {
      found_[cell] = Found{.locks = {}, .answers = *std::move(answers)};
    } else {
      // A lock that a call was changing may not be in the ledger.
      has_other_locks_ = true;
    }
  }
}

bool SessionRecovery::IsPlausible(const SessionFacts& facts) const {
  return facts.state == SessionState::kWhole && facts.id != 0 &&
         facts.number != 0 &&
         facts.number <= ledger_->counts().sessions_opened &&
         facts.is_incomplete == 0 && facts.answers_to_come == 0 &&
         facts.writer_count <= facts.writers.size() && facts.answer_part <= 1;
}

std::optional<std::vector<KeptAnswer>> SessionRecovery::AnswersOf(
    uint32_t cell) const {
  const SessionFacts& facts = ledger_->session(cell);
  std::vector<KeptAnswer> answers;
  for (uint32_t part : {1 - facts.answer_part, facts.answer_part}) {
    if (facts.answer_bytes[part] > kAnswerPartBytes) return std::nullopt;
    std::span<const std::byte> bytes =
        ledger_->answers(cell, part).first(facts.answer_bytes[part]);
    while (!bytes.empty()) {
      std::optional<KeptAnswer> answer = TakeAnswer(bytes);
      if (!answer.has_value()) return std::nullopt;
      answers.push_back(*std::move(answer));
    }
  }
  // An id may be used again once its first answer is forgotten.
  absl::flat_hash_set<RequestId> ids;
  std::ranges::reverse(answers);
  std::erase_if(answers, [&](const KeptAnswer& answer) {
    return ids.size() == Answers::kMaxAnswers || !ids.insert(answer.id).second;
  });
  std::ranges::reverse(answers);
  return answers;
}

void SessionRecovery::FindLocks() {
  const auto locks = ledger_->locks().first(ledger_->counts().lock_cells);
  for (size_t cell = 0; cell < locks.size(); ++cell) {
    LockFacts& facts = locks[cell];
    if (facts.id == 0) continue;
    const bool is_known = facts.session <= kMaxLedgerSessions &&
                          found_[facts.session].has_value();
    if (!is_known || Slab<LockRecord>::IndexIn(facts.id) != cell ||
        !sessions_->CanRestore(LockId(facts.id))) {
      if (is_known) found_[facts.session].reset();
      has_other_locks_ = true;
    } else if (facts.is_ending == 0) {
      found_[facts.session]->locks.push_back({&facts});
    }
  }
}

void SessionRecovery::FindNodes() {
  std::vector<PageId> pages;
  for (const std::optional<Found>& found : found_) {
    if (!found.has_value()) continue;
    for (const FoundLock& lock : found->locks) {
      const PageId page = lock.facts->last_page;
      pages.push_back(page.value() < pool_->capacity() ? page : kPaddingPage);
    }
  }
  const std::vector<Node*> nodes = tree_->NodesEndingWith(pages);
  auto next = nodes.begin();
  for (std::optional<Found>& found : found_) {
    if (!found.has_value()) continue;
    for (FoundLock& lock : found->locks) {
      Node* const node = *next++;
      lock.node =
          lock.facts->last_page == kPaddingPage ? RootOf(*lock.facts) : node;
    }
    if (std::ranges::any_of(found->locks, [](const FoundLock& lock) {
          return lock.node == nullptr ||
                 lock.node->ns->ledger_cell != lock.facts->namespace_cell;
        })) {
      has_other_locks_ = true;
      found.reset();
    }
  }
}

Node* SessionRecovery::RootOf(const LockFacts& facts) const {
  const std::optional<NamespaceKey> key =
      ledger_->NamespaceIn(facts.namespace_cell);
  if (!key.has_value()) return nullptr;
  const Namespace* const ns = tree_->FindNamespace(*key);
  return ns == nullptr ? nullptr : ns->root;
}

void SessionRecovery::FindPrompts() {
  const RadixTree::Prompts prompts = tree_->TakeEarlierPrompts();
  for (std::optional<Found>& found : found_) {
    if (!found.has_value()) continue;
    for (FoundLock& lock : found->locks) {
      const LockFacts& facts = *lock.facts;
      if (facts.held_tokens == 0) continue;
      const auto prompt = prompts.find(facts.prompt);
      if (prompt == prompts.end() ||
          facts.held_tokens != prompt->second->token_count() ||
          facts.prompt_begin > facts.held_tokens) {
        has_other_locks_ = true;
        found.reset();
        break;
      }
      lock.prompt = {.tokens = prompt->second, .begin = facts.prompt_begin};
    }
  }
}

void SessionRecovery::Open(uint32_t cell, Found& found) {
  Session& session =
      sessions_->Restore(static_cast<uint8_t>(cell), ledger_->session(cell));
  for (KeptAnswer& kept : found.answers) {
    sessions_->RestoreAnswer(session, kept.id, std::move(kept.answer));
  }
  open_[cell] = &session;
}

void SessionRecovery::TakeLocks() {
  std::vector<SessionTable::KeptLock> locks;
  for (uint32_t cell = 1; cell <= kMaxLedgerSessions; ++cell) {
    if (open_[cell] == nullptr) continue;
    for (FoundLock& lock : found_[cell]->locks) {
      tree_->Lock(*lock.node);
      locks.push_back({.id = LockId(lock.facts->id),
                       .session = open_[cell],
                       .node = lock.node,
                       .prompt = std::move(lock.prompt),
                       .held_tokens = lock.facts->held_tokens,
                       .taken_at = absl::FromUnixNanos(lock.facts->taken_at)});
    }
  }
  std::ranges::sort(locks, {}, [](const SessionTable::KeptLock& lock) {
    return std::pair(lock.taken_at, lock.id);
  });
  sessions_->RestoreLocks(locks);
  if (!has_other_locks_) ForgetEarlierLocked();
  DisownOtherLocks();
}

void SessionRecovery::DisownOtherLocks() {
  const auto locks = ledger_->locks().first(ledger_->counts().lock_cells);
  for (LockFacts& lock : locks) {
    if (lock.session > kMaxLedgerSessions || open_[lock.session] == nullptr) {
      lock.session = 0;
    }
  }
}

void SessionRecovery::ForgetEarlierLocked() {
  for (const auto& [node, pages] : tree_->TakeEarlierLocked()) {
    node->segment.NoteUnlocked(pages);
  }
}

}  // namespace pando
