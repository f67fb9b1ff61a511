// A failure of a run that was set up well: the loss became NaN, say. Exit code 3.
#pragma once

#include "norma/core/error.h"

namespace imdb {

struct RunError : norma::Error {
  using norma::Error::Error;
};

}  // namespace imdb
