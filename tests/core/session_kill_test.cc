// Kills a process with sessions at random moments, and checks that the workers
// of the next process on the ledger go on as if nothing had happened.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operators/earlier_pages.h"
#include "core/operators/session_ends.h"
#include "core/prefix_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/ledger_memory.h"
#include "tests/core/shared_prompts.h"

namespace pando {
namespace {

constexpr uint32_t kPageTokens = kSharedPromptPageTokens;
constexpr uint32_t kPages = 400;
constexpr uint32_t kPrompts = 60;
constexpr uint32_t kPromptPages = 10;
constexpr uint32_t kPromptTokens = kPromptPages * kPageTokens;
constexpr uint32_t kWorkers = 4;
constexpr uint32_t kMaxRequests = 6;
constexpr uint32_t kMaxLoose = 8;
constexpr int kKills = 150;

const PrefixCache::Options kOptions{.page_tokens = kPageTokens,
                                    .capacity_pages = kPages};

// A request that a worker serves.
struct Request {
  uint32_t prompt;
  uint64_t lock;
  uint32_t done;  // pages of the prompt that are cached
  uint32_t reserved;
  std::array<PageId, kPromptPages> pages;  // reserved for the rest
};

enum class CallKind { kNone, kAdmit, kChunk, kFinish, kDrop, kReserve, kFree };

struct Call {
  CallKind kind = CallKind::kNone;
  uint64_t id = 0;
  uint32_t request = 0;  // the index of a request
  uint32_t prompt = 0;
};

// The knowledge of a worker.
struct Knowledge {
  uint64_t session;
  uint64_t last_id;
  Call under_way;
  uint32_t request_count;
  std::array<Request, kMaxRequests> requests;
  uint32_t loose;  // pages that it reserved without a prompt
  std::array<PageId, kMaxLoose> loose_pages;
};

// The memory of a worker. It survives the process, so it changes at once.
struct Worker {
  std::array<Knowledge, 2> versions;
  std::atomic<uint32_t> current;

  const Knowledge& now() const { return versions[current]; }
  void Set(const Knowledge& next) {
    versions[1 - current] = next;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    current = 1 - current;
  }
};

struct Shared {
  std::array<Worker, kWorkers> workers;
  std::array<uint64_t, kPages> bytes;  // what is written to the pages
  std::atomic<uint64_t> calls;
};

// One process on the ledger, with the workers that it serves.
class Life {
 public:
  Life(Shared* shared, std::span<std::byte> ledger)
      : shared_(shared),
        cache_(LedgerMemory::With(kOptions, ledger, /*keeps_sessions=*/true)) {
    const SessionId reserved(1);
    const SessionId locked(2);
    cache_.OpenSession(reserved, "reserved", /*is_internal=*/true);
    cache_.OpenSession(locked, "locked", /*is_internal=*/true);
    cache_.Run(EarlierPages(reserved, locked));
    cache_.CloseSession(reserved);
    cache_.CloseSession(locked);
    cache_.Run(SessionEnds());
    PageLedger::Complete(ledger);
    for (Worker& worker : shared_->workers) GoOn(worker);
  }

  uint32_t lost_sessions() const { return lost_; }

  [[noreturn]] void Work(uint64_t seed) {
    std::minstd_rand random(static_cast<uint32_t>(seed) | 1);
    while (failure_.empty()) {
      ++shared_->calls;
      Worker& worker = shared_->workers[random() % kWorkers];
      Begin(worker, random);
      Carry(worker);
    }
    std::cerr << failure_ << "\n";
    _exit(1);
  }

  // Returns the first difference between what the workers know and the cache;
  // empty if there is none. It ends all requests.
  std::string Check() {
    if (!failure_.empty()) return failure_;
    uint32_t reserved = 0;
    for (Worker& worker : shared_->workers) {
      const Knowledge& now = worker.now();
      reserved += now.loose;
      for (uint32_t i = 0; i < now.request_count; ++i) {
        reserved += now.requests[i].reserved;
      }
      const std::string wrong = CheckSession(now);
      if (!wrong.empty()) return wrong;
    }
    if (cache_.Stats().pages.reserved != reserved) {
      return absl::StrCat(cache_.Stats().pages.reserved,
                          " pages are reserved, but workers know of ",
                          reserved);
    }
    for (Worker& worker : shared_->workers) {
      while (worker.now().request_count > 0) {
        Note(worker, {.kind = CallKind::kFinish});
        Carry(worker);
      }
      if (!failure_.empty()) return failure_;
    }
    const std::vector<std::string> violations = cache_.CheckInvariants();
    if (!violations.empty()) return violations[0];
    if (cache_.Stats().pages.protected_ > 0) return "a lock is left";
    return CheckBytes();
  }

 private:
  // Repeats the call of the worker that was not answered; or opens a new
  // session, if the old one is lost.
  void GoOn(Worker& worker) {
    const SessionId session(worker.now().session);
    if (session != SessionId() && cache_.CheckSession(session).ok()) {
      return Carry(worker);
    }
    if (session != SessionId()) ++lost_;
    const SessionId opened(++shared_->calls + 1'000);
    cache_.OpenSession(opened, std::to_string(opened.value()));
    worker.Set({.session = opened.value(),
                .last_id = 0,
                .under_way = {},
                .request_count = 0,
                .requests = {},
                .loose = 0,
                .loose_pages = {}});
  }

  std::string CheckSession(const Knowledge& known) {
    for (const SessionInfo& info : cache_.ListSessions(100).sessions) {
      if (info.client_name != std::to_string(known.session)) continue;
      uint32_t reserved = known.loose;
      for (uint32_t i = 0; i < known.request_count; ++i) {
        reserved += known.requests[i].reserved;
      }
      if (info.locks == known.request_count &&
          info.reserved_pages == reserved) {
        return "";
      }
    }
    return "a session holds something else than its worker knows of";
  }

  std::string CheckBytes() {
    for (uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
      const std::vector<Token> tokens = SharedPrompt(prompt, kPromptPages);
      const auto match =
          cache_.Match({.session = {}, .ns = {}, .tokens = tokens});
      for (uint32_t i = 0; i < match->pages.size(); ++i) {
        if (shared_->bytes[match->pages[i].value()] !=
            ContentOfPage(prompt, i + 1)) {
          return "a page has the bytes of another prefix";
        }
      }
    }
    return "";
  }

  static void Begin(Worker& worker, std::minstd_rand& random) {
    const Knowledge& now = worker.now();
    const auto request =
        static_cast<uint32_t>(random() % (now.request_count + 1));
    const auto prompt = static_cast<uint32_t>(random() % kPrompts);
    CallKind kind = CallKind::kAdmit;
    if (random() % 4 == 0) {
      kind = now.loose > 0 ? CallKind::kFree : CallKind::kReserve;
    } else if (request < now.request_count) {
      constexpr std::array kKinds = {CallKind::kChunk, CallKind::kFinish,
                                     CallKind::kDrop};
      kind = kKinds[random() % kKinds.size()];
    } else if (now.request_count == kMaxRequests) {
      return;
    }
    Note(worker, {.kind = kind, .id = 0, .request = request, .prompt = prompt});
  }

  // The worker is about to make this call.
  static void Note(Worker& worker, Call call) {
    Knowledge next = worker.now();
    call.id = ++next.last_id;
    next.under_way = call;
    worker.Set(next);
  }

  // Makes the call under way, if there is one, and notes its answer.
  void Carry(Worker& worker) {
    Knowledge next = worker.now();
    const Call call = std::exchange(next.under_way, {});
    switch (call.kind) {
      case CallKind::kNone:
        return;
      case CallKind::kAdmit:
        Admit(next, call);
        break;
      case CallKind::kChunk:
      case CallKind::kFinish:
        Insert(next, call);
        break;
      case CallKind::kDrop:
        Drop(next, call);
        break;
      case CallKind::kReserve:
        Reserve(next, call);
        break;
      case CallKind::kFree:
        Expect(cache_.Free(SessionId(next.session),
                           std::span(next.loose_pages).first(next.loose),
                           RequestId(call.id)));
        next.loose = 0;
        break;
    }
    worker.Set(next);
  }

  void Admit(Knowledge& next, const Call& call) {
    const std::vector<Token> tokens = SharedPrompt(call.prompt, kPromptPages);
    const auto match = cache_.Match({.session = SessionId(next.session),
                                     .ns = {},
                                     .tokens = tokens,
                                     .lock = true,
                                     .reserve_tokens = kPromptTokens,
                                     .request_id = RequestId(call.id)});
    Expect(match.status());
    if (!match.ok()) return;
    Request request{.prompt = call.prompt,
                    .lock = match->lock.value(),
                    .done = static_cast<uint32_t>(match->pages.size()),
                    .reserved = static_cast<uint32_t>(match->reserved.size()),
                    .pages = {}};
    std::ranges::copy(match->reserved, request.pages.begin());
    for (uint32_t i = 0; i < request.reserved; ++i) {
      shared_->bytes[request.pages[i].value()] =
          ContentOfPage(call.prompt, request.done + i + 1);
    }
    next.requests[next.request_count++] = request;
  }

  // A chunk publishes some pages of the prompt that the lock holds; the end of
  // the request publishes the rest.
  void Insert(Knowledge& next, const Call& call) {
    Request& request = next.requests[call.request];
    const bool is_chunk = call.kind == CallKind::kChunk;
    const uint32_t pages = is_chunk ? request.reserved / 2 : request.reserved;
    const auto inserted = cache_.Insert(
        {.session = SessionId(next.session),
         .ns = {},
         .tokens = {},
         .pages = std::span(request.pages).first(pages),
         .anchor = LockId(request.lock),
         .lock_action = is_chunk ? LockAction::kRelock : LockAction::kUnlock,
         .prompt_tokens = pages * kPageTokens,
         .request_id = RequestId(call.id)});
    Expect(inserted.status());
    if (!is_chunk) return Remove(next, call.request);
    std::shift_left(request.pages.begin(), request.pages.end(), pages);
    request.reserved -= pages;
    request.done += pages;
  }

  void Drop(Knowledge& next, const Call& call) {
    Request& request = next.requests[call.request];
    if (request.reserved > 0) {  // one page after the other
      const PageId page = request.pages[--request.reserved];
      Expect(
          cache_.Free(SessionId(next.session), {&page, 1}, RequestId(call.id)));
      return;
    }
    const LockId lock(request.lock);
    Expect(
        cache_.Unlock(SessionId(next.session), {&lock, 1}, RequestId(call.id)));
    Remove(next, call.request);
  }

  void Reserve(Knowledge& next, const Call& call) {
    const auto answer = cache_.Allocate({.session = SessionId(next.session),
                                         .ns = {},
                                         .pages = kMaxLoose,
                                         .request_id = RequestId(call.id)});
    Expect(answer.status());
    if (!answer.ok()) return;
    std::ranges::copy(answer->pages, next.loose_pages.begin());
    next.loose = kMaxLoose;
  }

  static void Remove(Knowledge& next, uint32_t request) {
    next.requests[request] = next.requests[--next.request_count];
  }

  void Expect(const absl::Status& status) {
    if (failure_.empty() && !status.ok()) failure_ = status.ToString();
  }

  Shared* const shared_;
  PrefixCache cache_;
  uint32_t lost_ = 0;
  std::string failure_;
};

TEST(SessionKillTest, WorkersOfAKilledProcessGoOnInTheNextOne) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  LedgerMemory ledger(kOptions);
  const auto map = [] {
    return new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared();
  };
  Shared* const shared = map();
  Shared* const copy = map();
  uint32_t lost = 0;
  for (int kill_count = 0; kill_count < kKills; ++kill_count) {
    const uint64_t goal = shared->calls + 10 + random() % 200;
    const uint64_t pause = random() % 2'000;
    const uint64_t work = random();
    const pid_t child = fork();
    if (child == 0) Life(shared, ledger.memory()).Work(work);
    ASSERT_GT(child, 0);
    while (shared->calls < goal) {
      ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it ended by itself";
      sched_yield();
    }
    for (std::atomic<uint64_t> spins = 0; spins < pause; ++spins) {
    }
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    // The check works on copies, so that the next child goes on where the
    // killed one was.
    memcpy(static_cast<void*>(copy), static_cast<const void*>(shared),
           sizeof(Shared));
    Life next(copy, ledger.Copy());
    // Only the session whose call was under way may be lost.
    ASSERT_LE(next.lost_sessions(), 1u) << "kill " << kill_count;
    lost += next.lost_sessions();
    ASSERT_EQ(next.Check(), "") << "kill " << kill_count;
  }
  EXPECT_LT(lost, kKills) << "no session ever went on in the middle of a call";
}

}  // namespace
}  // namespace pando
