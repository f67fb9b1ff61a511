// Operations that a device has no kernel for: docs/support.md names them.
#pragma once

#include "norma/core/device.h"

#include <functional>

namespace norma::test {

/// Runs `check`; false where cuda has no kernel for it yet: then the program says so on stderr at
/// its end. On the CPU that stays an error.
bool where_implemented(const Device& device, const std::function<void()>& check);

}  // namespace norma::test
