#ifndef PANDO_SERVICE_HTTP_HTTP_MESSAGE_H_
#define PANDO_SERVICE_HTTP_HTTP_MESSAGE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pando {

// A request for the console.
struct HttpRequest {
  std::string method;
  std::string path;
  std::string query = {};  // the part after "?"
  std::string body = {};
};

// A reply to it. `status` is the HTTP status; `headers` are further headers.
struct HttpReply {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Decodes the field `name` of an HTML form or of a query. Returns none if it is
// missing.
std::optional<std::string> FormField(std::string_view form,
                                     const std::string& name);

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_HTTP_MESSAGE_H_
