// The sample of the data set that travels inside the program.
#pragma once

#include <string_view>

namespace imdb {

/// The bytes of `sample/sample.tar.gz` (1,000 training and 1,000 test reviews), as linked into the
/// binary: available from any working directory. Feed them to `read_dataset_memory`.
std::string_view sample_archive();

}  // namespace imdb
