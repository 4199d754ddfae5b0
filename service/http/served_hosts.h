#ifndef PANDO_SERVICE_HTTP_SERVED_HOSTS_H_
#define PANDO_SERVICE_HTTP_SERVED_HOSTS_H_

#include <string>
#include <string_view>
#include <vector>

namespace pando {

// The host names that the console answers to: all IP addresses, localhost, the
// host of its own address and the configured names. They are a defence against
// DNS rebinding: a browser that a foreign page has directed here sends the name
// of that page. Immutable.
class ServedHosts {
 public:
  // `address` is the host:port that the server listens at; `names` are further
  // names.
  ServedHosts(const std::string& address, std::vector<std::string> names);

  // Returns whether the value of a Host header, with or without a port, names
  // one of the hosts.
  bool Include(std::string_view host) const;
  // Returns the same for the value of an Origin header, which names the page
  // that sends a request.
  bool IncludeOrigin(std::string_view origin) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_SERVED_HOSTS_H_
