// Holds a session until its input ends. Tests in tests/e2e run this program.
//
//   session_holder ADDRESS NAME
#include <cstdio>

#include "pando/client.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto client =
      pando::Client::Connect({.address = argv[1], .name = argv[2]});
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  while (std::getchar() != EOF) {
  }
  return 0;
}
