// Compares the table of methods (base/methods.h) with the protocol.
#include "base/methods.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "lane/layout.h"
#include "pando/v1/data_path.pb.h"
#include "pando/v1/events.pb.h"
#include "pando/v1/session.pb.h"
#include "service/security/permissions.h"

namespace pando {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

void AddMethods(const FileDescriptor& file,
                std::map<std::string, const MethodDescriptor*>& methods) {
  for (int i = 0; i < file.service_count(); ++i) {
    const ServiceDescriptor& service = *file.service(i);
    for (int m = 0; m < service.method_count(); ++m) {
      methods[std::string(service.full_name()) + "/" +
              std::string(service.method(m)->name())] = service.method(m);
    }
  }
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddMethods(*file.dependency(i), methods);
  }
}

// Returns the methods of the protocol by their names, such as
// "pando.v1.PrefixCache/Lock".
std::map<std::string, const MethodDescriptor*> MethodsOfProtocol() {
  std::map<std::string, const MethodDescriptor*> methods;
  for (const Descriptor* message :
       {v1::BatchRequest::descriptor(), v1::WatchRequest::descriptor(),
        v1::EndSessionRequest::descriptor()}) {
    AddMethods(*message->file(), methods);
  }
  return methods;
}

TEST(MethodsTest, EachMethodOfTheProtocolHasOneRow) {
  std::multiset<std::string> rows;
#define PANDO_GRPC_METHOD(service, name, role, kind) \
  rows.insert("pando.v1." #service "/" #name);
#define PANDO_DATA_PATH_METHOD(number, field, service, name, role, kind) \
  PANDO_GRPC_METHOD(service, name, role, kind)
  PANDO_DATA_PATH_METHODS(PANDO_DATA_PATH_METHOD)
  PANDO_GRPC_METHODS(PANDO_GRPC_METHOD)
#undef PANDO_DATA_PATH_METHOD
#undef PANDO_GRPC_METHOD
  std::multiset<std::string> methods;
  for (const auto& [name, method] : MethodsOfProtocol()) methods.insert(name);
  EXPECT_EQ(rows, methods);
}

// Expects that a batch has the messages of the method `name` in its fields with
// this number, which are called `field`.
void ExpectBatched(const std::string& name, int number,
                   const std::string& field) {
  const MethodDescriptor* const method = MethodsOfProtocol().at(name);
  const FieldDescriptor* const request =
      v1::BatchedRequest::descriptor()->FindFieldByNumber(number);
  const FieldDescriptor* const response =
      v1::BatchedResponse::descriptor()->FindFieldByNumber(number);
  ASSERT_NE(request, nullptr) << name;
  ASSERT_NE(response, nullptr) << name;
  EXPECT_EQ(request->name(), field);
  EXPECT_EQ(response->name(), field);
  EXPECT_EQ(request->message_type(), method->input_type()) << name;
  EXPECT_EQ(response->message_type(), method->output_type()) << name;
}

TEST(MethodsTest, ABatchHasEachMethodOfTheDataPathInFieldsOfItsNumber) {
  int rows = 0;
#define PANDO_METHOD(number, field, service, name, role, kind)   \
  ExpectBatched("pando.v1." #service "/" #name, number, #field); \
  EXPECT_EQ(static_cast<int>(lane::Method::k##name), number);    \
  ++rows;
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
  EXPECT_EQ(v1::BatchedRequest::descriptor()->field_count(), rows);
  constexpr int kError = 1;
  EXPECT_EQ(v1::BatchedResponse::descriptor()->field_count(), rows + kError);
}

TEST(MethodsTest, AMethodThatIsNotInTheTableNeedsAnAdmin) {
  const Permission unknown = PermissionFor("pando.v1.PrefixCache", "Unheard");
  EXPECT_EQ(unknown.role, Role::kAdmin);
  EXPECT_EQ(unknown.kind, MethodKind::kSpansNamespaces);
}

}  // namespace
}  // namespace pando
