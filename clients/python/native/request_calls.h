#ifndef PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_CALLS_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_CALLS_H_

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "clients/lane/lane.h"
#include "clients/python/native/arguments.h"
#include "clients/python/native/codec.h"
#include "clients/python/native/request_writer.h"
#include "clients/python/native/results.h"

namespace pando::python {

// The codecs of the methods' responses, by the numbers of the methods.
using Responses = std::map<uint32_t, std::shared_ptr<Codec>>;

// The arguments of pando_kv.Client.insert, in its order.
struct InsertArguments {
  nanobind::handle tokens;
  nanobind::handle page_ids;
  nanobind::handle name_space;
  nanobind::handle after;
  nanobind::handle lock;
  nanobind::handle relock;
  nanobind::handle unlock;
  nanobind::handle keep_duplicates;
  nanobind::handle free_page_ids;
  nanobind::handle generation;
  nanobind::handle prompt_tokens;
  nanobind::handle priority;
  nanobind::handle output_tokens;
  nanobind::handle expected_reuse;
  nanobind::handle retain_seconds;
};

// The calls that an engine makes for each request, on the lane of one session:
// each from Python's arguments to Python's result in one step, with no objects
// in between. They do what the calls of _prefix_calls and _pool_calls do where
// all goes well, and give
//   the result; or
//   None, when nothing was sent: there is no room on the lane or no lane, or an
//     argument is not plain. Python code makes the call then; or
//   a Begun, when the call was sent and has no result: Python code goes on with
//     it, by the request id in there, and with what Lane.call gives in place of
//     a result.
// The session is that of the lane. Used with the GIL held, by any thread; it is
// released while a call waits.
class RequestCalls {
 public:
  // `results` is the module pando_kv.results, and `begun` the type Begun.
  // `responses` must have all methods that are called here.
  RequestCalls(std::shared_ptr<lane::Lane> lane, nanobind::object sessions,
               nanobind::object session, nanobind::handle results,
               nanobind::object begun, Responses responses);

  // The arguments are those of pando_kv.Client. `timeout` is in seconds.
  // `make_lock` makes the client's object for a lock.
  nanobind::object MatchPrefix(
      double timeout, nanobind::handle make_lock, nanobind::handle tokens,
      nanobind::handle name_space, nanobind::handle after,
      nanobind::handle max_tokens, nanobind::handle lock,
      nanobind::handle reserve_tokens, nanobind::handle touch,
      nanobind::handle pending_wait, nanobind::handle load);
  nanobind::object Insert(double timeout, const InsertArguments& arguments);
  // As Insert, but does not wait: returns a BegunInsert, or None.
  nanobind::object BeginInsert(const InsertArguments& arguments);
  nanobind::object AllocatePages(double timeout, nanobind::handle pages,
                                 nanobind::handle at_least,
                                 nanobind::handle name_space);
  // The result of these two is True.
  nanobind::object FreePages(double timeout, nanobind::handle page_ids,
                             nanobind::handle generation);
  // REQUIRES: the locks are claimed, and are of `session`.
  nanobind::object Unlock(double timeout, nanobind::handle session,
                          const nanobind::list& locks);

 private:
  friend class BegunInsert;

  // An insert that can be sent, and what is needed for its result.
  struct ReadyInsert {
    lane::Call call;
    uint64_t request_id = 0;
    nanobind::object lock;  // that moves; null if none does
    size_t tokens = 0;      // by which it moves
    Place place;
    std::vector<std::byte> own;  // the page ids that are sent
  };

  // Claims the lock, if there is one. Returns none if nothing may be sent.
  std::optional<ReadyInsert> PrepareInsert(const InsertArguments& arguments);
  // Waits for the answer of an insert that was submitted, and returns what
  // Insert returns.
  nanobind::object FinishInsert(ReadyInsert& insert, double timeout) const;
  // Returns whether the session of the lane is the present session of the
  // client.
  bool IsCurrent() const;
  // Returns whether the caller's page ids, which have this generation, are of
  // the session.
  bool IsOfSession(nanobind::handle generation) const;
  uint64_t NextRequestId() const;
  // Writes the handle `after`: see WriteAfter.
  Place PlaceOf(RequestWriter& request, uint32_t field, nanobind::handle after,
                size_t tokens) const;
  // Writes the request to a new call. Returns none if the request is not plain,
  // or if there is no room for it.
  std::optional<lane::Call> NewCall(lane::Method method,
                                    const RequestWriter& request,
                                    size_t answer_bytes) const;
  // Submits a call and waits; `parse` makes the result of a FlatMessage.
  template <typename Parse>
  nanobind::object Make(lane::Method method, lane::Call call,
                        uint64_t request_id, double timeout,
                        const Parse& parse) const {
    call.Submit();
    return Finish(method, call, request_id, timeout, parse);
  }
  // Waits for the answer of a call that was submitted.
  template <typename Parse>
  nanobind::object Finish(lane::Method method, lane::Call& call,
                          uint64_t request_id, double timeout,
                          const Parse& parse) const;
  // Makes a Begun, which holds `answer`.
  nanobind::object Begun(uint64_t request_id, nanobind::handle answer) const;
  // Tells the client how many pages no session holds.
  void SetRoom(uint32_t free, uint32_t evictable) const;

  const std::shared_ptr<lane::Lane> lane_;
  const nanobind::object sessions_;
  const nanobind::object session_;
  const nanobind::object begun_;
  const nanobind::object request_ids_;
  const nanobind::object generation_;
  const Responses responses_;
  const Results results_;
  const uint64_t session_id_;
  const uint64_t epoch_;
  const size_t page_tokens_;
};

// An insert that is under way. Used with the GIL held, by one thread at a time.
class BegunInsert {
 public:
  // REQUIRES: `calls` outlives this object, and has submitted the call.
  BegunInsert(const RequestCalls* calls, RequestCalls::ReadyInsert insert)
      : calls_(calls), insert_(std::move(insert)) {}

  // Waits and returns what RequestCalls::Insert returns. To be called once.
  nanobind::object Result(double timeout) {
    if (std::exchange(is_over_, true)) {
      throw std::logic_error("the result was taken already");
    }
    return calls_->FinishInsert(insert_, timeout);
  }

 private:
  const RequestCalls* const calls_;
  RequestCalls::ReadyInsert insert_;
  bool is_over_ = false;
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_REQUEST_CALLS_H_
