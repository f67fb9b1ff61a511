#pragma once

namespace imdb {

/// Makes requests for more memory than this machine has left fail at once, with an error that
/// reaches the user. Linux would grant them, and kill some process when the memory is used. Does
/// nothing where the system does not tell, or a lower limit (ulimit -d) is set.
void limit_memory();

}  // namespace imdb
