#include "tests/core/random_operations.h"

#include <random>

namespace pando::program {

Choices ChoicesOf(uint64_t seed) {
  return [random = std::mt19937_64(seed)](uint32_t limit) mutable {
    return static_cast<uint32_t>(random() % limit);
  };
}

Operation RandomOperations::Next() {
  const uint32_t kind = Below(100);
  if (kind < 28) return AnyMatch();
  if (kind < 54) return AnyInsert();
  if (kind < 60) return Lock{Slot(), AnyPrompt(), AnyHandle(), AnyRequestId()};
  if (kind < 73) {
    return Unlock{Slot(), AnyLock(), Percent(5), AnyRequestId()};
  }
  if (kind < 80) return AnyAllocate();
  if (kind < 85) return Free{Slot(), Pages(6), AnyFault(), AnyRequestId()};
  if (kind < 92) return AnyOperatorsCall();
  return AnySessionEvent();
}

Operation RandomOperations::AnyMatch() {
  Match match;
  match.slot = Slot();
  match.prompt = AnyPrompt();
  match.max_tokens = AnyMaxTokens(match.prompt);
  match.lock = Percent(50);
  if (Percent(match.lock ? 60 : 3)) {
    const auto tokens =
        static_cast<uint32_t>(match.prompt.letters.size()) * page_tokens_;
    match.reserve_tokens =
        static_cast<uint16_t>(Below(tokens + 2 * page_tokens_));
  }
  match.touch = !Percent(15);
  match.wait = Percent(match.lock ? 40 : 1);
  match.after = AnyHandle();
  if (match.lock || Percent(1)) match.request_id = AnyRequestId();
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
      insert.prompt_tokens = static_cast<uint16_t>(Below(1024));
      if (Percent(60)) insert.prompt.letters.clear();  // a chunk of a prefill
    }
    if (Percent(3)) insert.after = AnyHandle();
  } else {
    insert.after = AnyHandle();
    if (Percent(3)) insert.lock_action = LockAction::kUnlock;
  }
  insert.reuse_cached = Percent(50);
  insert.keep_duplicates = Percent(20);
  if (Percent(20)) insert.free_pages = Pages(4);
  insert.fault = AnyFault();
  if (Percent(30)) {
    insert.priority = static_cast<int8_t>(static_cast<int>(Below(5)) - 2);
  }
  if (Percent(30)) {
    insert.output_tokens = static_cast<uint16_t>(Below(1024));
  }
  if (Percent(25)) {
    insert.expected_reuse = static_cast<ExpectedReuse>(Below(3));
    if (insert.expected_reuse != ExpectedReuse::kEnded || Percent(3)) {
      insert.retain_seconds = Pages(8);
    }
  }
  insert.request_id = AnyRequestId();
  return insert;
}

Operation RandomOperations::AnyAllocate() {
  Allocate allocate;
  allocate.slot = Slot();
  allocate.pages = Pages(8);
  if (Percent(40)) {
    allocate.pages = Pages(40);
    allocate.min_pages = Pages(4);
  }
  allocate.ns = AnyNamespace();
  allocate.request_id = AnyRequestId();
  return allocate;
}

Operation RandomOperations::AnyOperatorsCall() {
  const uint32_t kind = Below(100);
  if (kind < 35) return Evict{Pages(10)};
  if (kind < 50) return EvictToWatermark{};
  if (kind < 65) {
    const Prompt prompt = AnyPrompt();
    return Score{prompt, AnyMaxTokens(prompt), AnyHandle()};
  }
  if (kind < 80) return CancelWait{Pages(4)};
  if (kind < 92) return SetPolicy{static_cast<EvictionPolicyKind>(Below(8))};
  if (kind < 98) return FlushNamespace{AnyNamespace()};
  return Flush{};
}

Operation RandomOperations::AnySessionEvent() {
  const uint8_t slot = Slot();
  switch (Below(17)) {
    case 0:
      return CloseSession{slot};
    case 1:
      return SuspendSession{slot, Pages(4)};
    case 2:
      return ResumeSession{slot};
    case 3:
      return WriterGone{AnyWriter()};
    case 4:
    case 5:
      return ExpireSessions{Pages(4), Pages(6)};
    case 6:
    case 7:
      return AttachSession{slot, Percent(80) ? AnyWriter() : uint8_t{0}};
    case 8:
      return FreeQuarantine{slot};
    default:
      return OpenSession{slot};
  }
}

// There are few writers, so that sessions share them.
uint8_t RandomOperations::AnyWriter() {
  return static_cast<uint8_t>(1 + Below(6));
}

// Most letters are 'a', so that prompts share long prefixes.
Prompt RandomOperations::AnyPrompt() {
  Prompt prompt;
  prompt.ns = AnyNamespace();
  const uint32_t pages = Below(9);
  for (uint32_t i = 0; i < pages; ++i) {
    prompt.letters += Percent(65) ? 'a' : static_cast<char>('b' + Below(2));
  }
  prompt.tail = static_cast<uint8_t>(Below(page_tokens_));
  return prompt;
}

// Most prompts are in the program's main namespace.
uint8_t RandomOperations::AnyNamespace() {
  return Percent(75) ? main_namespace_
                     : static_cast<uint8_t>(Below(kNamespaces));
}

std::optional<uint16_t> RandomOperations::AnyMaxTokens(const Prompt& prompt) {
  if (!Percent(30)) return std::nullopt;
  const size_t tokens = prompt.letters.size() * page_tokens_;
  return static_cast<uint16_t>(Below(static_cast<uint32_t>(tokens) + 2));
}

HandleChoice RandomOperations::AnyHandle() {
  if (!Percent(20)) return {};
  HandleChoice after{.is_used = true, .index = Pages(16)};
  if (Percent(15)) {
    after.forgery = static_cast<HandleChoice::Forgery>(Below(kForgeries));
  }
  return after;
}

uint8_t RandomOperations::AnyRequestId() { return 0; }

LockChoice RandomOperations::AnyLock() {
  return {Percent(90) ? LockChoice::Kind::kHeld : LockChoice::Kind::kSeen,
          static_cast<uint8_t>(Below(8))};
}

Fault RandomOperations::AnyFault() {
  return Percent(90) ? Fault::kNone : static_cast<Fault>(Below(kFaults));
}

}  // namespace pando::program
