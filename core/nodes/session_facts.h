#ifndef PANDO_CORE_NODES_SESSION_FACTS_H_
#define PANDO_CORE_NODES_SESSION_FACTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/ledger.h"

namespace pando {

// The facts of sessions that the ledger of pages has. Plain data.
// core/sessions/session_ledger.h writes them.

// The most sessions that the ledger can have, and the most locks.
inline constexpr uint32_t kMaxLedgerSessions = 255;
inline constexpr uint32_t kMaxLedgerLocks = 131'072;
// The ledger has the last answers of a session in two parts: one is filled
// while the other has those before. A part has room for all answers that
// Answers keeps. Bytes that are never touched cost nothing.
inline constexpr size_t kAnswerPartBytes = 5u << 18;

// Whether the facts of a session can be taken over.
enum class SessionState : uint32_t {
  kNone,      // there is no session, or it has ended
  kWhole,     // yes
  kChanging,  // no: a call is changing them
};

struct SessionFacts {
  static constexpr size_t kMaxWriters = 16;

  SessionState state;
  uint32_t number;
  uint64_t id;
  int64_t opened_at;  // nanoseconds of the cache's time
  // It holds something that the ledger cannot have.
  uint8_t is_incomplete;
  uint8_t has_unwatched_writer;
  uint8_t has_mapped;
  uint32_t writer_count;
  std::array<uint64_t, kMaxWriters> writers;
  LedgerText client_name;
  LedgerText owner;  // names the credential of the worker; empty: none
  // The bytes in use of each part of the answers, how many answers these are,
  // and which part is being filled.
  std::array<uint32_t, 2> answer_bytes;
  std::array<uint32_t, 2> answer_count;
  uint32_t answer_part;
  // The ledger lacks an answer that was too large, and so many answers must
  // follow until it is not asked for any more.
  uint32_t answers_to_come;
};

// A lock, in the cell with the index that its id names.
struct LockFacts {
  uint64_t id;         // 0: there is none
  uint32_t session;    // PageOwner::ledger_cell
  uint32_t is_ending;  // its release has begun
  uint32_t namespace_cell;
  PageId last_page;  // of the locked prefix; page 0: the prefix is empty
  uint64_t prompt;   // Segment::ledger_place; 0: it holds none
  uint32_t prompt_begin;
  uint32_t held_tokens;  // not 0: there is or will be a prompt
  int64_t taken_at;      // nanoseconds of the cache's time
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_SESSION_FACTS_H_
