#include "service/http/http_message.h"

#include <civetweb.h>

#include <cstddef>

namespace pando {

std::optional<std::string> FormField(std::string_view form,
                                     const std::string& name) {
  // The decoded text is never longer than the form; civetweb adds a zero.
  std::string value(form.size() + 1, '\0');
  const int size = mg_get_var(form.data(), form.size(), name.c_str(),
                              value.data(), value.size());
  if (size < 0) return std::nullopt;
  value.resize(static_cast<size_t>(size));
  return value;
}

}  // namespace pando
