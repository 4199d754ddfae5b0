#include "core/sessions/session_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/ledger.h"
#include "core/nodes/slab.h"
#include "core/requests/answer_bytes.h"
#include "core/requests/namespace.h"
#include "core/sessions/session_table.h"

namespace pando {

SessionLedger::SessionLedger(PageLedger* ledger) : ledger_(ledger) {
  if (ledger == nullptr) return;
  for (uint32_t cell = kMaxLedgerSessions; cell > 0; --cell) {
    free_cells_.push_back(static_cast<uint8_t>(cell));
  }
}

SessionFacts* SessionLedger::FactsOf(const Session& session) const {
  const uint8_t cell = session.reserved.ledger_cell;
  return cell == 0 ? nullptr : &ledger_->session(cell);
}

void SessionLedger::Open(Session& session) {
  if (ledger_ == nullptr) return;
  ledger_->counts().sessions_opened = session.number.value();
  if (session.is_internal || free_cells_.empty()) return;
  session.reserved.ledger_cell = free_cells_.back();
  free_cells_.pop_back();
  SessionFacts& facts = *FactsOf(session);
  facts.state = SessionState::kNone;
  StoresBefore();
  facts = SessionFacts();
  facts.number = session.number.value();
  facts.id = session.id.value();
  facts.opened_at = absl::ToUnixNanos(session.opened_at);
  facts.client_name =
      LedgerText::Of(session.client_name.substr(0, LedgerText::kMaxBytes));
  StoresBefore();
  facts.state = SessionState::kWhole;
}

void SessionLedger::Restore(Session& session, uint8_t cell) {
  session.reserved.ledger_cell = cell;
  std::erase(free_cells_, cell);
}

bool SessionLedger::BeginChange(const Session& session) const {
  SessionFacts* const facts = FactsOf(session);
  if (facts == nullptr || facts->state != SessionState::kWhole) return false;
  facts->state = SessionState::kChanging;
  StoresBefore();
  return true;
}

void SessionLedger::EndChange(const Session& session) const {
  StoresBefore();
  FactsOf(session)->state = SessionState::kWhole;
}

void SessionLedger::End(const Session& session) const {
  SessionFacts* const facts = FactsOf(session);
  if (facts == nullptr) return;
  facts->state = SessionState::kNone;
  StoresBefore();
}

void SessionLedger::FreeCell(const Session& session) {
  const uint8_t cell = session.reserved.ledger_cell;
  if (cell != 0) free_cells_.push_back(cell);
}

void SessionLedger::NoteOwner(const Session& session,
                              const std::string& owner) const {
  SessionFacts* const facts = FactsOf(session);
  if (facts == nullptr) return;
  if (owner.size() > LedgerText::kMaxBytes) {
    facts->is_incomplete = 1;
  } else {
    facts->owner = LedgerText::Of(owner);
  }
}

void SessionLedger::NoteWriters(const Session& session) const {
  SessionFacts* const facts = FactsOf(session);
  if (facts == nullptr) return;
  const std::vector<WriterId>& living = session.writers.living();
  facts->has_mapped = session.writers.has_mapped() ? 1 : 0;
  facts->has_unwatched_writer = session.writers.has_unwatched() ? 1 : 0;
  if (living.size() > SessionFacts::kMaxWriters) facts->is_incomplete = 1;
  const size_t count = std::min(living.size(), facts->writers.size());
  for (size_t i = 0; i < count; ++i) facts->writers[i] = living[i].value();
  facts->writer_count = static_cast<uint32_t>(count);
}

void SessionLedger::NoteAnswer(const Session& session, RequestId id,
                               const Answer& answer) const {
  SessionFacts* const facts = FactsOf(session);
  if (facts == nullptr) return;
  const auto bytes = static_cast<uint32_t>(EncodedBytes(answer));
  if (bytes > kAnswerPartBytes) {
    facts->answers_to_come = Answers::kMaxAnswers;
    return;
  }
  if (facts->answers_to_come > 0) --facts->answers_to_come;
  uint32_t& part = facts->answer_part;
  if (facts->answer_count[part] == Answers::kMaxAnswers ||
      facts->answer_bytes[part] + bytes > kAnswerPartBytes) {
    part = 1 - part;
    facts->answer_bytes[part] = 0;
    facts->answer_count[part] = 0;
  }
  const auto out = ledger_->answers(session.reserved.ledger_cell, part);
  Encode(id, answer, out.subspan(facts->answer_bytes[part], bytes));
  facts->answer_bytes[part] += bytes;
  ++facts->answer_count[part];
}

void SessionLedger::NoteLock(const LockRecord& lock) const {
  if (ledger_ == nullptr) return;
  const uint32_t cell = Slab<LockRecord>::IndexOf(lock);
  if (cell >= ledger_->locks().size()) {
    ledger_->counts().has_more_locks = 1;
    SessionFacts* const facts = FactsOf(*lock.session);
    if (facts != nullptr) facts->is_incomplete = 1;
    return;
  }
  uint32_t& cells = ledger_->counts().lock_cells;
  cells = std::max(cells, cell + 1);
  LockFacts& facts = ledger_->locks()[cell];
  facts.id = 0;
  StoresBefore();
  facts.session = lock.session->reserved.ledger_cell;
  facts.is_ending = lock.is_ending ? 1 : 0;
  facts.namespace_cell = lock.node->ns->ledger_cell;
  facts.last_page =
      lock.node->is_root() ? kPaddingPage : lock.node->pages().back();
  facts.prompt = lock.prompt.tokens ? lock.prompt.tokens->ledger_place() : 0;
  facts.prompt_begin = lock.prompt.begin;
  facts.held_tokens = lock.held_tokens;
  facts.taken_at = absl::ToUnixNanos(lock.taken_at);
  StoresBefore();
  facts.id = SessionTable::IdOf(lock).value();
}

void SessionLedger::NoteEnding(const LockRecord& lock) const {
  const uint32_t cell = Slab<LockRecord>::IndexOf(lock);
  if (ledger_ == nullptr || cell >= ledger_->locks().size()) return;
  ledger_->locks()[cell].is_ending = 1;
}

void SessionLedger::RemoveLock(const LockRecord& lock) const {
  const uint32_t cell = Slab<LockRecord>::IndexOf(lock);
  if (ledger_ == nullptr || cell >= ledger_->locks().size()) return;
  ledger_->locks()[cell].id = 0;
}

void SessionLedger::RemoveLocksBut(
    absl::FunctionRef<bool(uint32_t cell)> is_used) const {
  if (ledger_ == nullptr) return;
  for (uint32_t cell = 0; cell < ledger_->counts().lock_cells; ++cell) {
    if (!is_used(cell)) ledger_->locks()[cell].id = 0;
  }
  ledger_->counts().has_more_locks = 0;
}

}  // namespace pando
