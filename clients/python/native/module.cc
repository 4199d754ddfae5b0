// pando_kv._native: lanes, gauges and the codec of their messages for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/lane/answer_room.h"
#include "clients/lane/gauges.h"
#include "clients/lane/lane.h"
#include "clients/python/native/codec.h"
#include "clients/python/native/copies.h"
#include "clients/python/native/pending_call.h"
#include "clients/python/native/request_calls.h"
#include "clients/python/native/waiting.h"

namespace pando::python {
namespace {

namespace nb = nanobind;

Kind KindOf(const std::string& name) {
  static const std::vector<std::pair<std::string, Kind>> kinds = {
      {"bool", Kind::kBool},         {"int32", Kind::kInt32},
      {"uint32", Kind::kUint32},     {"uint64", Kind::kUint64},
      {"fixed64", Kind::kFixed64},   {"string", Kind::kString},
      {"bytes", Kind::kBytes},       {"message", Kind::kMessage},
      {"messages", Kind::kMessages}, {"uint32s", Kind::kUint32s},
      {"uint64s", Kind::kUint64s}};
  for (const auto& [known, kind] : kinds) {
    if (known == name) return kind;
  }
  throw nb::value_error(("unknown kind of field: " + name).c_str());
}

std::shared_ptr<Codec> MakeCodec(const nb::list& fields) {
  std::vector<Field> made;
  for (nb::handle item : fields) {
    const auto field = nb::cast<nb::tuple>(item);
    made.push_back(
        {.name = nb::cast<std::string>(field[0]),
         .number = nb::cast<uint32_t>(field[1]),
         .kind = KindOf(nb::cast<std::string>(field[2])),
         .has_presence = nb::cast<bool>(field[3]),
         .message = field[4].is_none()
                        ? nullptr
                        : nb::cast<std::shared_ptr<Codec>>(field[4])});
  }
  return std::make_shared<Codec>(std::move(made));
}

nb::bytes Encode(const Codec& codec, nb::handle values) {
  Encoding encoding(codec, values.ptr());
  nb::object bytes = nb::steal(PyBytes_FromStringAndSize(
      nullptr, static_cast<Py_ssize_t>(encoding.size())));
  if (!bytes.is_valid()) throw nb::python_error();
  encoding.Write(reinterpret_cast<std::byte*>(PyBytes_AsString(bytes.ptr())));
  return nb::cast<nb::bytes>(bytes);
}

// Returns the values as a numpy array of uint32, or None if Uint32List cannot
// take or write them.
nb::object AsUint32(nb::handle values) {
  const std::optional<Uint32List> list = Uint32List::Of(values);
  if (!list) return nb::none();
  const NewArray made = NewUint32Array(list->size());
  nb::object array = nb::steal(made.array);
  const bool is_written =
      list->Write(0, reinterpret_cast<std::byte*>(made.data));
  return is_written ? array : nb::none();
}

nb::object Decode(const Codec& codec, const nb::bytes& bytes) {
  return nb::steal(codec.Decode(
      {static_cast<const std::byte*>(bytes.data()), bytes.size()}));
}

class PyLane {
 public:
  PyLane(int memory, int doorbell) {
    std::string error;
    lane_ = lane::Lane::Map(UniqueFd(memory), UniqueFd(doorbell), error);
    if (lane_ == nullptr) throw std::runtime_error(error);
  }

  // Returns a call that is not submitted yet, or null if there is no room for
  // it.
  std::unique_ptr<PendingCall> Prepare(uint32_t method, const Codec& request,
                                       nb::handle values, size_t answer_bytes,
                                       std::shared_ptr<Codec> response) {
    Encoding encoding(request, values.ptr());
    std::optional<lane::Call> call = lane_->NewCall(
        static_cast<lane::Method>(method), encoding.size(), answer_bytes);
    if (!call) return nullptr;
    encoding.Write(call->request().data());
    return std::make_unique<PendingCall>(*std::move(call), std::move(response));
  }

  // Makes one call and returns its answer as PendingCall.wait does. If an error
  // ended the wait, it returns the PendingCall, which keeps the error.
  nb::object Call(uint32_t method, const Codec& request, nb::handle values,
                  size_t answer_bytes, std::shared_ptr<Codec> response,
                  double timeout) {
    std::unique_ptr<PendingCall> pending =
        Prepare(method, request, values, answer_bytes, std::move(response));
    if (pending == nullptr) return nb::none();
    pending->call().Submit();
    try {
      return pending->Wait(timeout);
    } catch (nb::python_error& error) {
      pending->Fail(error);
      return nb::cast(std::move(pending));
    }
  }

  // Publishes calls in this order, with one doorbell.
  void Submit(const nb::list& pending) {
    std::vector<lane::Call*> calls;
    for (nb::handle each : pending) {
      calls.push_back(&nb::cast<PendingCall&>(each).call());
    }
    lane_->Submit(calls);
  }

  const std::shared_ptr<lane::Lane>& lane() const { return lane_; }
  void Close() { lane_->Close(); }
  bool is_closed() const { return lane_->is_closed(); }
  uint32_t answers() const { return lane_->answers(); }
  void AwaitAnswers(uint32_t seen, double timeout) const {
    PyThreadState* const thread = PyEval_SaveThread();
    lane_->AwaitAnswers(
        seen,
        std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(timeout)));
    TakeGil(thread);
  }

 private:
  std::shared_ptr<lane::Lane> lane_;
};

std::unique_ptr<RequestCalls> NewRequestCalls(
    const PyLane& lane, nb::object sessions, nb::object session,
    nb::handle results, nb::object begun, Responses responses) {
  return std::make_unique<RequestCalls>(lane.lane(), std::move(sessions),
                                        std::move(session), results,
                                        std::move(begun), std::move(responses));
}

template <size_t>
using Argument = nb::handle;

// Defines the methods of an insert, which take each member of InsertArguments
// by itself; each may be None.
template <size_t... kEach>
void DefineInserts(nb::class_<RequestCalls>& calls,
                   std::index_sequence<kEach...>) {
  const auto any = [](size_t) { return nb::arg().none(); };
  calls.def(
      "insert",
      [](RequestCalls& self, double timeout, Argument<kEach>... each) {
        return self.Insert(timeout, {each...});
      },
      nb::arg(), any(kEach)...);
  calls.def(
      "begin_insert",
      [](RequestCalls& self, Argument<kEach>... each) {
        return self.BeginInsert({each...});
      },
      any(kEach)..., nb::keep_alive<0, 1>());
}

class PyGauges {
 public:
  explicit PyGauges(int memory) {
    std::string error;
    gauges_ = lane::MappedGauges::Map(UniqueFd(memory), error);
    if (gauges_ == nullptr) throw std::runtime_error(error);
  }

  // Returns (epoch, free, evictable, protected, reserved, quarantined,
  // capacity, draining, policy), all of one moment, or None if pandod was
  // killed while it wrote them.
  nb::object Read() const {
    const std::optional<lane::Gauges> read = gauges_->Read();
    if (!read) return nb::none();
    const std::string_view policy = lane::PolicyOf(*read);
    return nb::make_tuple(
        read->epoch, read->free, read->evictable, read->protected_pages,
        read->reserved, read->quarantined, read->capacity, read->draining != 0,
        nb::str(policy.data(), policy.size()));
  }

 private:
  std::shared_ptr<const lane::MappedGauges> gauges_;
};

using Numbers = nb::ndarray<const uint64_t, nb::numpy, nb::ndim<1>,
                            nb::c_contig, nb::device::cpu>;

CopyList ListOf(const Numbers& targets, const Numbers& sources,
                const Numbers& sizes) {
  if (targets.size() != sizes.size() || sources.size() != sizes.size()) {
    throw nb::value_error("targets, sources and sizes must be equally many");
  }
  return {.targets = {targets.data(), targets.size()},
          .sources = {sources.data(), sources.size()},
          .sizes = {sizes.data(), sizes.size()}};
}

void CopyOnHostInPython(const Numbers& targets, const Numbers& sources,
                        const Numbers& sizes) {
  const CopyList list = ListOf(targets, sources, sizes);
  PyThreadState* const thread = PyEval_SaveThread();
  CopyOnHost(list);
  TakeGil(thread);
}

void CopyOnGpu(CudaCopier& copier, const Numbers& targets,
               const Numbers& sources, const Numbers& sizes, bool to_device) {
  const CopyList list = ListOf(targets, sources, sizes);
  PyThreadState* const thread = PyEval_SaveThread();
  std::exception_ptr failure;
  try {
    copier.Copy(list, to_device ? CudaCopier::Direction::kToDevice
                                : CudaCopier::Direction::kToHost);
  } catch (...) {
    failure = std::current_exception();
  }
  TakeGil(thread);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace
}  // namespace pando::python

NB_MODULE(_native, m) {
  namespace nb = nanobind;
  using namespace pando::python;
  // Codecs live in Python modules, which are not destroyed at exit, so nanobind
  // would report leaks.
  nb::set_leak_warnings(false);
  m.doc() = "Lanes: calls to pandod over shared memory.";
  m.attr("SMALL_ANSWER_BYTES") = pando::lane::kSmallAnswerBytes;
  m.attr("PAGE_ANSWER_BYTES") = pando::lane::kPageAnswerBytes;
  m.attr("SCORE_ANSWER_BYTES") = pando::lane::kScoreAnswerBytes;
  nb::class_<Codec>(m, "Codec")
      .def(nb::new_(&MakeCodec), nb::arg("fields"))
      .def("encode", &Encode, nb::arg("values"))
      .def("decode", &Decode, nb::arg("data"));
  nb::class_<PendingCall>(m, "PendingCall")
      .def("wait", &PendingCall::Wait, nb::arg("timeout"))
      .def("ready", &PendingCall::IsReady, nb::arg("timeout"))
      .def("done", &PendingCall::IsDone)
      .def("wake_lane", &PendingCall::WakeLane)
      .def("take_error", &PendingCall::TakeError);
  nb::class_<PyLane>(m, "Lane")
      .def(nb::init<int, int>(), nb::arg("memory"), nb::arg("doorbell"))
      .def("call", &PyLane::Call, nb::arg("method"), nb::arg("request"),
           nb::arg("values"), nb::arg("answer_bytes"), nb::arg("response"),
           nb::arg("timeout"))
      .def("prepare", &PyLane::Prepare, nb::arg("method"), nb::arg("request"),
           nb::arg("values"), nb::arg("answer_bytes"), nb::arg("response"))
      .def("submit", &PyLane::Submit, nb::arg("calls"))
      .def("close", &PyLane::Close)
      .def_prop_ro("closed", &PyLane::is_closed)
      .def_prop_ro("answers", &PyLane::answers)
      .def("await_answers", &PyLane::AwaitAnswers, nb::arg("seen"),
           nb::arg("timeout"));
  // The arguments of these methods are positional, and may be None.
  const auto any = nb::arg().none();
  nb::class_<RequestCalls> calls(m, "RequestCalls");
  calls
      .def(nb::new_(&NewRequestCalls), nb::arg("lane"), nb::arg("sessions"),
           nb::arg("session"), nb::arg("results"), nb::arg("begun"),
           nb::arg("responses"))
      .def("match_prefix", &RequestCalls::MatchPrefix, nb::arg(), nb::arg(),
           any, any, any, any, any, any, any, any, any)
      .def("allocate_pages", &RequestCalls::AllocatePages, nb::arg(), any, any,
           any)
      .def("free_pages", &RequestCalls::FreePages, nb::arg(), any, any)
      .def("unlock", &RequestCalls::Unlock);
  DefineInserts(calls, std::make_index_sequence<15>());
  nb::class_<BegunInsert>(m, "BegunInsert")
      .def("result", &BegunInsert::Result, nb::arg("timeout"));
  nb::class_<PyGauges>(m, "Gauges")
      .def(nb::init<int>(), nb::arg("memory"))
      .def("read", &PyGauges::Read);
  m.def("as_uint32", &AsUint32, nb::arg("values").none());
  m.def("copy", &CopyOnHostInPython, nb::arg("targets"), nb::arg("sources"),
        nb::arg("sizes"));
  nb::class_<CudaCopier>(m, "CudaCopier")
      .def(nb::init<int>(), nb::arg("device"))
      .def("copy", &CopyOnGpu, nb::arg("targets"), nb::arg("sources"),
           nb::arg("sizes"), nb::arg("to_device"))
      .def("pin", &CudaCopier::Pin, nb::arg("address"), nb::arg("size"))
      .def("unpin", &CudaCopier::Unpin, nb::arg("address"))
      .def_prop_ro("is_batched", &CudaCopier::is_batched);
}
