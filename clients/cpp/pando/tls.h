// The certificates that a client over TCP shows and trusts.
#ifndef PANDO_TLS_H_
#define PANDO_TLS_H_

#include <string>

namespace pando {
inline namespace client {

// The certificates of a client over TCP, as paths of PEM files, which are read
// when the client is made. The server's certificate must be signed by `ca` and
// name the host of the address.
struct TlsFiles {
  std::string ca;
  std::string certificate;  // the client's own, with its chain
  std::string key;
  // The name that the server's certificate must have; if it is empty, that is
  // the host of the address. It is for addresses that are numbers.
  std::string server_name = {};
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_TLS_H_
