#ifndef PANDO_SERVICE_HANDLERS_DATA_PATH_H_
#define PANDO_SERVICE_HANDLERS_DATA_PATH_H_

#include <string_view>

#include "base/methods.h"
#include "lane/layout.h"
#include "pando/v1/data_path.pb.h"
#include "service/calls/method.h"

namespace pando {

// The methods that an engine calls for each request. Besides gRPC, lanes and
// batches offer them. The services that carry them out fill them in
// (AddMethodsTo). There is one member for each method, for example
// `match_prefix`, a MethodPointer<v1::MatchPrefixRequest,
// v1::MatchPrefixResponse>.
struct DataPath {
#define PANDO_METHOD(number, field, service, name, role, kind) \
  MethodPointer<v1::name##Request, v1::name##Response> field;
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD

  // Calls visit(number, method) for each method.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
#define PANDO_METHOD(number, field, service, name, role, kind) \
  visit(lane::Method::k##name, field);
    PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
  }
};

// Fills in the methods of the generated service `Generated`, for example
// v1::PrefixCache. Each method gets the member function of the same name of
// `handlers`, which outlives `data_path`.
template <typename Generated, typename Handlers>
void AddDataPathMethods(Handlers* handlers, DataPath& data_path) {
  constexpr std::string_view kService = Generated::service_full_name();
#define PANDO_METHOD(number, field, service, name, role, kind)          \
  if constexpr (kService == "pando.v1." #service) {                     \
    data_path.field = MakeMethod<Generated>(handlers, &Handlers::name); \
  }
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
}

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_DATA_PATH_H_
