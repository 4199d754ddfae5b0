#ifndef PANDO_SERVICE_REQUEST_SIZE_H_
#define PANDO_SERVICE_REQUEST_SIZE_H_

#include "service/options/options.h"

namespace pando {

// Returns the bytes of the largest request that pandod receives. It has room
// for all tokens that a request may have, their page ids and the ids of pages
// to free, or for all keys of blocks. There is some room for more, so that a
// list that is a little too long is received, and its error can name the limit.
int MaxReceiveBytes(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_REQUEST_SIZE_H_
