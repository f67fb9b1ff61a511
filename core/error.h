// Errors: every failure that a caller can cause or meet is a norma::Error.
//
// The text has one form: `[operation] what must hold; got what came; what to do`.
// Library code never aborts, prints or exits.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace norma {

/// Base of all errors that norma throws. `operation()` is the name in the brackets.
class Error : public std::runtime_error {
 public:
  Error(const std::string& operation, const std::string& message)
      : std::runtime_error("[" + operation + "] " + message), operation_(operation) {}
  const std::string& operation() const { return operation_; }

 private:
  std::string operation_;
};

/// Shapes that do not fit the operation or each other.
struct ShapeError : Error {
  using Error::Error;
};
/// A dtype the operation does not take, or dtypes that do not go together.
struct DTypeError : Error {
  using Error::Error;
};
/// Tensors on different devices, or a device that is not there.
struct DeviceError : Error {
  using Error::Error;
};
/// An index, dimension or token id out of range.
struct IndexError : Error {
  using Error::Error;
};
/// An argument with a value outside of its domain.
struct ValueError : Error {
  using Error::Error;
};
/// Misuse of the tape: second backward, changed saved value, non-scalar root, missing derivative.
struct AutogradError : Error {
  using Error::Error;
};
/// A file that is missing, damaged, or cannot be written.
struct FileError : Error {
  using Error::Error;
};
/// Something the device or this build does not provide.
struct NotImplementedError : Error {
  using Error::Error;
};
/// Memory that the device cannot give.
struct OutOfMemoryError : Error {
  using Error::Error;
};

/// Throws `E` with the formatted message unless `condition` holds. Formats only on failure.
///
///     check<ShapeError>(x.dim() == 2, "linear", "input must be 2-D; got {}", x.shape());
template <class E = ValueError, class... Args>
void check(bool condition, const char* operation, fmt::format_string<Args...> format,
           Args&&... args) {
  if (!condition) [[unlikely]]
    throw E(operation, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace norma
