#ifndef PANDO_SERVICE_REQUEST_SIZE_H_
#define PANDO_SERVICE_REQUEST_SIZE_H_

#include "service/options/options.h"

namespace pando {

// The bytes of the largest request that is received: all tokens that a request
// may have, their page ids and the ids of pages to free, or all keys of blocks.
// A list that is a little longer is received, too, so that its error names the
// limit.
int MaxReceiveBytes(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_REQUEST_SIZE_H_
