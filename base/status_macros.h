#ifndef PANDO_BASE_STATUS_MACROS_H_
#define PANDO_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Macros for functions that return absl::Status or absl::StatusOr and pass
// errors on to their caller:
//
//   RETURN_IF_ERROR(CheckName(name));
//   ASSIGN_OR_RETURN(const Session session, FindSession(id));
//   ASSIGN_OR_RETURN(result.pages, CountPages(session));

// Returns the status that `expression` gives, unless that is OK.
#define RETURN_IF_ERROR(...)                                             \
  do {                                                                   \
    if (absl::Status pando_status = (__VA_ARGS__); !pando_status.ok()) { \
      return pando_status;                                               \
    }                                                                    \
  } while (false)

// Declares or assigns `target` from the value of a StatusOr, or returns its
// error. It expands to several statements, so do not use it as the only
// statement after an `if`.
#define ASSIGN_OR_RETURN(target, ...) \
  PANDO_ASSIGN_OR_RETURN(PANDO_JOIN(pando_or_, __LINE__), target, __VA_ARGS__)

#define PANDO_ASSIGN_OR_RETURN(result, target, ...)    \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  target = *std::move(result)

#define PANDO_JOIN(a, b) PANDO_JOIN_EXPANDED(a, b)
#define PANDO_JOIN_EXPANDED(a, b) a##b

#endif  // PANDO_BASE_STATUS_MACROS_H_
