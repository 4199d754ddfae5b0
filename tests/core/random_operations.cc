#include "tests/core/random_operations.h"

#include <algorithm>

namespace pando::program {

Operation RandomOperations::Next() {
  const uint32_t kind = Below(100);
  if (kind < 28) return AnyMatch();
  if (kind < 56) return AnyInsert();
  if (kind < 62) return Lock{Slot(), AnyPrompt()};
  if (kind < 76) return Unlock{Slot(), AnyLock(), Percent(5)};
  if (kind < 84) return Allocate{Slot(), Pages(8)};
  if (kind < 89) return Free{Slot(), Pages(6), AnyFault()};
  if (kind < 92) return Evict{Pages(10)};
  if (Percent(2)) return Flush{};
  return AnySessionEvent();
}

Operation RandomOperations::AnyMatch() {
  Match match;
  match.slot = Slot();
  match.prompt = AnyPrompt();
  const auto tokens =
      static_cast<uint32_t>(match.prompt.letters.size()) * page_tokens_;
  if (Percent(30)) match.max_tokens = static_cast<uint8_t>(Below(tokens + 2));
  match.lock = Percent(50);
  if (Percent(match.lock ? 60 : 3)) {
    match.reserve_tokens =
        static_cast<uint8_t>(std::min(255u, Below(tokens + 2 * page_tokens_)));
  }
  match.touch = !Percent(15);
  return match;
}

Operation RandomOperations::AnyInsert() {
  Insert insert;
  insert.slot = Slot();
  insert.prompt = AnyPrompt();
  if (Percent(55)) {
    insert.anchor = AnyLock();
    insert.lock_action = static_cast<LockAction>(Below(3));
    insert.names_namespace = Percent(15);
    if (Percent(50)) {
      insert.prompt_tokens = static_cast<uint8_t>(Below(256));
      if (Percent(60)) insert.prompt.letters.clear();  // a chunk of a prefill
    }
  } else if (Percent(3)) {
    insert.lock_action = LockAction::kUnlock;
  }
  insert.reuse_cached = Percent(50);
  insert.keep_duplicates = Percent(20);
  if (Percent(20)) insert.free_pages = Pages(4);
  insert.fault = AnyFault();
  return insert;
}

Operation RandomOperations::AnySessionEvent() {
  const uint8_t slot = Slot();
  switch (Below(16)) {
    case 0:
      return CloseSession{slot};
    case 1:
      return SuspendSession{slot, Pages(4)};
    case 2:
      return ResumeSession{slot};
    case 3:
      return ProcessGone{slot};
    case 4:
    case 5:
      return ExpireSessions{Pages(4), Pages(6)};
    case 6:
    case 7:
      return AttachSession{slot};
    default:
      return OpenSession{slot};
  }
}

// Mostly 'a', so that prompts share long prefixes.
Prompt RandomOperations::AnyPrompt() {
  Prompt prompt;
  prompt.ns = static_cast<uint8_t>(Percent(75) ? 0 : Below(kNamespaces));
  const uint32_t pages = Below(9);
  for (uint32_t i = 0; i < pages; ++i) {
    prompt.letters += Percent(65) ? 'a' : static_cast<char>('b' + Below(2));
  }
  prompt.tail = static_cast<uint8_t>(Below(page_tokens_));
  return prompt;
}

LockChoice RandomOperations::AnyLock() {
  return {Percent(90) ? LockChoice::Kind::kHeld : LockChoice::Kind::kSeen,
          static_cast<uint8_t>(Below(8))};
}

Fault RandomOperations::AnyFault() {
  return Percent(90) ? Fault::kNone : static_cast<Fault>(Below(kFaults));
}

}  // namespace pando::program
