// Names of enum values, for configuration files, command lines and messages.
#pragma once

#include "norma/core/error.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace norma::nn {

/// The values of enum E with their names; each enum of nn specialises it beside its declaration.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::type;
  EnumNames<E>::values;
};

/// "rms_norm" for NormKind::rms_norm.
template <NamedEnum E>
std::string_view to_string(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (candidate == value) return name;
  return "invalid";
}

/// All names, comma-separated: "none, layer_norm, rms_norm".
template <NamedEnum E>
std::string enum_choices() {
  std::string text;
  for (const auto& [value, name] : EnumNames<E>::values)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// The value called `name`; throws ValueError that lists the names there are.
template <NamedEnum E>
E parse(std::string_view name) {
  for (const auto& [value, candidate] : EnumNames<E>::values)
    if (candidate == name) return value;
  throw ValueError(EnumNames<E>::type,
                   fmt::format("must be one of {}; got \"{}\"", enum_choices<E>(), name));
}

}  // namespace norma::nn
