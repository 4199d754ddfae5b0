#include "tests/core/operations.h"

namespace pando::program {
namespace {

// The session slot, printed before each operation of a session.
struct Slot {
  uint8_t number;
};
std::ostream& operator<<(std::ostream& out, Slot slot) {
  return out << 's' << int{slot.number} << ' ';
}

std::ostream& operator<<(std::ostream& out, const Prompt& prompt) {
  out << 'n' << int{prompt.ns} << " \"" << prompt.letters << '"';
  if (prompt.tail > 0) out << '+' << int{prompt.tail};
  return out;
}

std::ostream& operator<<(std::ostream& out, const LockChoice& lock) {
  switch (lock.kind) {
    case LockChoice::Kind::kNone:
      return out << "no lock";
    case LockChoice::Kind::kHeld:
      return out << "lock held:" << int{lock.index};
    case LockChoice::Kind::kSeen:
      return out << "lock seen:" << int{lock.index};
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const HandleChoice& after) {
  static constexpr const char* kNames[kForgeries] = {
      "",         " one page less",   " one page more", " not aligned",
      " unknown", " other namespace", " not continuous"};
  if (!after.is_used) return out;
  return out << " after " << int{after.index}
             << kNames[static_cast<size_t>(after.forgery)];
}

// The request id, printed for calls that can be repeated.
struct Request {
  uint8_t id;
};
std::ostream& operator<<(std::ostream& out, Request request) {
  if (request.id > 0) out << " request " << int{request.id};
  return out;
}

std::ostream& operator<<(std::ostream& out, LockAction action) {
  switch (action) {
    case LockAction::kKeep:
      return out << " keep";
    case LockAction::kRelock:
      return out << " relock";
    case LockAction::kUnlock:
      return out << " unlock";
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return out;
    case Fault::kPadding:
      return out << " !padding";
    case Fault::kOutOfRange:
      return out << " !out-of-range";
    case Fault::kListedTwice:
      return out << " !listed-twice";
    case Fault::kSomeoneElses:
      return out << " !someone-elses";
    case Fault::kMissing:
      return out << " !missing";
  }
  return out;
}

struct Printer {
  std::ostream& out;

  void operator()(const Match& match) const {
    out << Slot{match.slot} << "match " << match.prompt;
    if (match.max_tokens) out << " max " << int{*match.max_tokens};
    if (match.reserve_tokens > 0) {
      out << " reserve " << int{match.reserve_tokens};
    }
    if (match.lock) out << " lock";
    if (!match.touch) out << " no-touch";
    if (match.wait) out << " wait";
    out << match.after << Request{match.request_id};
  }
  void operator()(const Score& score) const {
    out << "score " << score.prompt;
    if (score.max_tokens) out << " max " << int{*score.max_tokens};
    out << score.after;
  }
  void operator()(const CancelWait& cancel) const {
    out << "cancel-wait " << int{cancel.index};
  }
  void operator()(const Insert& insert) const {
    out << Slot{insert.slot} << "insert " << insert.prompt << ' '
        << insert.anchor << insert.lock_action;
    if (!insert.names_namespace) out << " no-namespace";
    if (insert.reuse_cached) out << " reuse-cached";
    if (insert.keep_duplicates) out << " keep-duplicates";
    if (insert.free_pages > 0) out << " free " << int{insert.free_pages};
    if (insert.prompt_tokens > 0) {
      out << " prompt-tokens " << int{insert.prompt_tokens};
    }
    if (insert.priority != 0) out << " priority " << int{insert.priority};
    if (insert.output_tokens) out << " output-tokens " << *insert.output_tokens;
    if (insert.expected_reuse == ExpectedReuse::kEnded) out << " ended";
    if (insert.expected_reuse == ExpectedReuse::kSoon) out << " soon";
    if (insert.retain_seconds > 0) {
      out << " retain " << int{insert.retain_seconds};
    }
    out << insert.fault << insert.after << Request{insert.request_id};
  }
  void operator()(const Lock& lock) const {
    out << Slot{lock.slot} << "lock " << lock.prompt << lock.after
        << Request{lock.request_id};
  }
  void operator()(const Unlock& unlock) const {
    out << Slot{unlock.slot} << "unlock " << unlock.lock;
    if (unlock.twice) out << " twice";
    out << Request{unlock.request_id};
  }
  void operator()(const Allocate& allocate) const {
    out << Slot{allocate.slot} << "allocate " << int{allocate.pages};
    if (allocate.min_pages.has_value()) {
      out << " at least " << int{*allocate.min_pages};
    }
    out << " n" << int{allocate.ns} << Request{allocate.request_id};
  }
  void operator()(const Free& free) const {
    out << Slot{free.slot} << "free " << int{free.pages} << free.fault
        << Request{free.request_id};
  }
  void operator()(const Evict& evict) const {
    out << "evict " << int{evict.pages};
  }
  void operator()(const EvictToWatermark&) const { out << "watermark"; }
  void operator()(const Flush&) const { out << "flush"; }
  void operator()(const FlushNamespace& flush) const {
    out << "flush n" << int{flush.ns};
  }
  void operator()(const SetPolicy& set) const {
    out << "policy " << EvictionPolicyName(set.policy);
  }
  void operator()(const OpenSession& open) const {
    out << Slot{open.slot} << "open";
  }
  void operator()(const AttachSession& attach) const {
    out << Slot{attach.slot} << "attach writer " << int{attach.writer};
  }
  void operator()(const CloseSession& close) const {
    out << Slot{close.slot} << "close";
  }
  void operator()(const SuspendSession& suspend) const {
    out << Slot{suspend.slot} << "suspend " << int{suspend.grace_seconds}
        << " s";
  }
  void operator()(const ResumeSession& resume) const {
    out << Slot{resume.slot} << "resume";
  }
  void operator()(const WriterGone& end) const {
    out << "writer " << int{end.writer} << " gone";
  }
  void operator()(const FreeQuarantine& free) const {
    out << Slot{free.slot} << "free-quarantine";
  }
  void operator()(const ExpireSessions& expire) const {
    out << "expire after " << int{expire.passed_seconds} << " s, quarantine "
        << int{expire.quarantine_seconds} << " s";
  }
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  std::visit(Printer{out}, operation);
  return out;
}

}  // namespace pando::program
