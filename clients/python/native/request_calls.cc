#include "clients/python/native/request_calls.h"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "clients/lane/answer_room.h"
#include "clients/python/native/arguments.h"
#include "clients/python/native/pending_call.h"
#include "clients/python/native/waiting.h"

namespace pando::python {
namespace {

namespace nb = nanobind;
using Bytes = std::span<const std::byte>;
using lane::kPageAnswerBytes;
using lane::kSmallAnswerBytes;
using lane::Method;

// The wire values of LockAction.
constexpr uint64_t kRelock = 1;
constexpr uint64_t kUnlock = 2;
constexpr double kMaxMilliseconds = std::numeric_limits<uint32_t>::max();

// Calls a method of a lock. Returns whether it neither raised nor returned
// False. If not, Python code calls it again and raises. An interrupt comes only
// once, so it is passed on.
bool Agrees(nb::handle lock, const char* method, nb::handle sessions) {
  try {
    return !lock.attr(method)(sessions).is(nb::handle(Py_False));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return false;
  }
}

nb::object True() { return nb::borrow(Py_True); }

}  // namespace

RequestCalls::RequestCalls(std::shared_ptr<lane::Lane> lane,
                           nb::object sessions, nb::object session,
                           nb::handle results, nb::object begun,
                           Responses responses)
    : lane_(std::move(lane)),
      sessions_(std::move(sessions)),
      session_(std::move(session)),
      begun_(std::move(begun)),
      request_ids_(session_.attr("_request_ids")),
      generation_(session_.attr("generation")),
      responses_(std::move(responses)),
      results_(results),
      session_id_(nb::cast<uint64_t>(session_.attr("session_id"))),
      epoch_(nb::cast<uint64_t>(session_.attr("epoch"))),
      page_tokens_(nb::cast<size_t>(
          session_.attr("pool").attr("layout").attr("page_tokens"))) {}

template <typename Parse>
nb::object RequestCalls::Finish(Method method, lane::Call& call,
                                uint64_t request_id, double timeout,
                                const Parse& parse) const {
  try {
    if (!AwaitOutcome(call, timeout)) {
      PyErr_SetNone(PyExc_TimeoutError);
      throw nb::python_error();
    }
    if (call.Poll() != lane::Call::Outcome::kAnswered) {
      return Begun(request_id, nb::none());
    }
    const Bytes lent = call.answer();
    const std::vector<std::byte> answer(lent.begin(), lent.end());
    if (!call.HasIntactAnswer()) return Begun(request_id, nb::none());
    if (call.code() == 0) return parse(FlatMessage(answer));
    return Begun(request_id, nb::bytes(answer.data(), answer.size()));
  } catch (nb::python_error& error) {
    auto pending = std::make_unique<PendingCall>(
        std::move(call), responses_.at(static_cast<uint32_t>(method)));
    pending->Fail(error);
    return Begun(request_id, nb::cast(std::move(pending)));
  }
}

nb::object RequestCalls::MatchPrefix(double timeout, nb::handle make_lock,
                                     nb::handle tokens, nb::handle name_space,
                                     nb::handle after, nb::handle max_tokens,
                                     nb::handle lock, nb::handle reserve_tokens,
                                     nb::handle touch, nb::handle pending_wait,
                                     nb::handle load) {
  const std::optional<Uint32List> prompt = Uint32List::Of(tokens);
  const std::optional<double> wait = SecondsOf(pending_wait);
  if (!IsCurrent() || !prompt || !wait) return nb::none();
  RequestWriter request;
  request.Fixed64(1, session_id_);
  WriteNamespace(request, 2, name_space, results_.namespace_type());
  request.OptionalUint32(4, max_tokens);
  const bool locks = request.Bool(5, lock);
  const size_t reserved = request.Uint32(6, reserve_tokens);
  request.OptionalBool(7, touch);
  const Place place = PlaceOf(request, 8, after, prompt->size());
  if (*wait > 0) {
    // It is never 0: otherwise the answer would say that the call did not wait,
    // not that the wait is over.
    const double ms = std::min(*wait * 1000, kMaxMilliseconds);
    request.Number(9, static_cast<uint64_t>(std::max(std::ceil(ms), 1.0)));
  }
  const uint64_t request_id = locks ? NextRequestId() : 0;
  request.Fixed64(10, request_id);
  WriteEnum(request, 11, load);
  request.List(3, *prompt, place.token);

  const size_t sent = prompt->size() - place.token;
  const size_t pages = (sent + reserved) / page_tokens_ + 2;
  std::optional<lane::Call> call =
      NewCall(Method::kMatchPrefix, request,
              kSmallAnswerBytes + kPageAnswerBytes * pages);
  if (!call) return nb::none();
  return Make(Method::kMatchPrefix, *std::move(call), request_id,
              timeout + *wait, [&](const FlatMessage& answer) {
                const uint32_t matched = answer.number32(1);
                const uint64_t lock_id = answer.number(3);
                nb::object handle = results_.Handle(answer.message(5));
                SetRoom(answer.number32(7), answer.number32(8));
                nb::object taken = lock_id == 0 ? nb::none()
                                                : make_lock(session_, lock_id,
                                                            matched, handle);
                // With max_tokens the match may end before the handle does.
                const size_t first_page =
                    std::min<size_t>(place.page, matched / page_tokens_);
                return results_.Match(answer, std::move(taken), first_page,
                                      std::move(handle), generation_);
              });
}

std::optional<RequestCalls::ReadyInsert> RequestCalls::PrepareInsert(
    const InsertArguments& arguments) {
  const bool has_lock = !arguments.lock.is_none();
  const std::optional<Uint32List> added = Uint32List::Of(arguments.tokens);
  const std::optional<Uint32List> pages = Uint32List::Of(arguments.page_ids);
  const std::optional<Uint32List> freed =
      Uint32List::Of(arguments.free_page_ids);
  if (!IsCurrent() || !IsOfSession(arguments.generation) || !added || !pages ||
      !freed || (has_lock && !arguments.after.is_none())) {
    return std::nullopt;
  }
  RequestWriter request;
  request.Fixed64(1, session_id_);
  WriteNamespace(request, 2, arguments.name_space, results_.namespace_type());
  if (has_lock) {
    const auto lock_id = NumberOf(arguments.lock, names().lock_id);
    if (!lock_id) return std::nullopt;
    request.Fixed64(5, *lock_id);
  }
  const bool relocks = IsTrue(request, arguments.relock);
  const bool unlocks = IsTrue(request, arguments.unlock);
  if (relocks && unlocks) return std::nullopt;
  request.Number(6, relocks ? kRelock : unlocks ? kUnlock : 0);
  request.Bool(7, arguments.keep_duplicates);
  request.Uint32(9, arguments.prompt_tokens);
  const Place place = PlaceOf(request, 10, arguments.after, added->size());
  request.Int32(11, arguments.priority);
  const uint64_t request_id = NextRequestId();
  request.Fixed64(12, request_id);
  request.OptionalUint32(13, arguments.output_tokens);
  WriteEnum(request, 14, arguments.expected_reuse);
  request.Uint32(15, arguments.retain_seconds);
  request.List(3, *added, place.token);
  request.List(8, *freed, 0);
  const size_t first_page = std::min(place.page, pages->size());
  request.List(4, *pages, first_page);

  std::optional<lane::Call> call =
      NewCall(Method::kInsert, request,
              kSmallAnswerBytes + kPageAnswerBytes * pages->size());
  if (!call) return std::nullopt;
  // The pages lie at the end of the request.
  const size_t sent = (pages->size() - first_page) * kPageAnswerBytes;
  const Bytes written = Bytes(call->request()).last(sent);
  std::vector<std::byte> own(written.begin(), written.end());
  if (has_lock) {
    const bool is_in_doubt = !AttributeOf(arguments.lock, names().is_in_doubt)
                                  .is(nb::handle(Py_False));
    // The lock is claimed last, when only the sending can still fail.
    if ((is_in_doubt && pages->size() > 0) ||
        !Agrees(arguments.lock, unlocks ? "claim" : "require_held",
                sessions_)) {
      return std::nullopt;
    }
  }
  return ReadyInsert{
      .call = *std::move(call),
      .request_id = request_id,
      .lock = relocks && has_lock ? nb::borrow(arguments.lock) : nb::object(),
      .tokens = pages->size() * page_tokens_,
      .place = place,
      .own = std::move(own)};
}

nb::object RequestCalls::FinishInsert(ReadyInsert& insert,
                                      double timeout) const {
  return Finish(Method::kInsert, insert.call, insert.request_id, timeout,
                [&](const FlatMessage& answer) {
                  nb::object handle = results_.Handle(answer.message(4));
                  if (insert.lock.is_valid()) {
                    insert.lock.attr("move")(insert.tokens, handle);
                  }
                  if (IsCurrent())
                    SetRoom(answer.number32(5), answer.number32(6));
                  return results_.Insert(answer, insert.place.token,
                                         insert.place.page, insert.own,
                                         std::move(handle));
                });
}

nb::object RequestCalls::Insert(double timeout,
                                const InsertArguments& arguments) {
  std::optional<ReadyInsert> ready = PrepareInsert(arguments);
  if (!ready) return nb::none();
  ready->call.Submit();
  return FinishInsert(*ready, timeout);
}

nb::object RequestCalls::BeginInsert(const InsertArguments& arguments) {
  std::optional<ReadyInsert> ready = PrepareInsert(arguments);
  if (!ready) return nb::none();
  ready->call.Submit();
  return nb::cast(std::make_unique<BegunInsert>(this, *std::move(ready)));
}

nb::object RequestCalls::AllocatePages(double timeout, nb::handle pages,
                                       nb::handle at_least,
                                       nb::handle name_space) {
  if (!IsCurrent()) return nb::none();
  RequestWriter request;
  request.Fixed64(1, session_id_);
  const size_t wanted = request.Uint32(2, pages);
  WriteNamespace(request, 3, name_space, results_.namespace_type());
  const uint64_t request_id = NextRequestId();
  request.Fixed64(4, request_id);
  request.OptionalUint32(5, at_least);
  std::optional<lane::Call> call =
      NewCall(Method::kAllocatePages, request,
              kSmallAnswerBytes + kPageAnswerBytes * wanted);
  if (!call) return nb::none();
  return Make(Method::kAllocatePages, *std::move(call), request_id, timeout,
              [&](const FlatMessage& answer) {
                SetRoom(answer.number32(2), answer.number32(3));
                return answer.NewArray(1);
              });
}

nb::object RequestCalls::FreePages(double timeout, nb::handle page_ids,
                                   nb::handle generation) {
  const std::optional<Uint32List> pages = Uint32List::Of(page_ids);
  if (!IsCurrent() || !IsOfSession(generation) || !pages) return nb::none();
  RequestWriter request;
  request.Fixed64(1, session_id_);
  const uint64_t request_id = NextRequestId();
  request.Fixed64(3, request_id);
  request.List(2, *pages, 0);
  std::optional<lane::Call> call =
      NewCall(Method::kFreePages, request, kSmallAnswerBytes);
  if (!call) return nb::none();
  return Make(Method::kFreePages, *std::move(call), request_id, timeout,
              [](const FlatMessage&) { return True(); });
}

nb::object RequestCalls::Unlock(double timeout, nb::handle session,
                                const nb::list& locks) {
  if (!IsCurrent() || !session.is(session_)) return nb::none();
  RequestWriter request;
  request.Fixed64(1, session_id_);
  std::vector<uint64_t> ids;
  for (nb::handle lock : locks) {
    const auto lock_id = NumberOf(lock, names().lock_id);
    if (!lock_id) return nb::none();
    ids.push_back(*lock_id);
  }
  request.Fixed64s(2, ids);
  const uint64_t request_id = NextRequestId();
  request.Fixed64(3, request_id);
  std::optional<lane::Call> call =
      NewCall(Method::kUnlock, request, kSmallAnswerBytes);
  if (!call) return nb::none();
  return Make(Method::kUnlock, *std::move(call), request_id, timeout,
              [](const FlatMessage&) { return True(); });
}

bool RequestCalls::IsCurrent() const {
  return AttributeOf(sessions_, names().session).is(session_);
}

bool RequestCalls::IsOfSession(nb::handle generation) const {
  if (generation.is_none()) return true;
  const auto number =
      PlainNumber(generation, std::numeric_limits<uint64_t>::max());
  return number && *number == nb::cast<uint64_t>(generation_);
}

uint64_t RequestCalls::NextRequestId() const {
  const nb::object id = nb::steal(PyIter_Next(request_ids_.ptr()));
  if (!id.is_valid()) throw nb::python_error();
  return nb::cast<uint64_t>(id);
}

Place RequestCalls::PlaceOf(RequestWriter& request, uint32_t field,
                            nb::handle after, size_t tokens) const {
  return WriteAfter(request, field, after, results_.handle_type(), epoch_,
                    tokens, page_tokens_);
}

std::optional<lane::Call> RequestCalls::NewCall(Method method,
                                                const RequestWriter& request,
                                                size_t answer_bytes) const {
  if (!request.is_plain()) return std::nullopt;
  std::optional<lane::Call> call =
      lane_->NewCall(method, request.size(), answer_bytes);
  if (call && !request.Write(call->request().data())) return std::nullopt;
  return call;
}

nb::object RequestCalls::Begun(uint64_t request_id, nb::handle answer) const {
  return begun_(session_, request_id, answer);
}

void RequestCalls::SetRoom(uint32_t free, uint32_t evictable) const {
  const nb::object room = results_.Room(free, evictable);
  if (PyObject_SetAttr(sessions_.ptr(), names().room.ptr(), room.ptr()) != 0) {
    throw nb::python_error();
  }
}

}  // namespace pando::python
