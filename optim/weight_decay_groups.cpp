#include "norma/optim/weight_decay_groups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>

namespace norma::optim {

namespace {

constexpr const char* where = "weight_decay_groups";

bool decays_by_kind(nn::ParameterKind kind, const WeightDecayOptions& options) {
  switch (kind) {
    case nn::ParameterKind::matrix:
      return true;
    case nn::ParameterKind::embedding:
      return options.decay_embeddings;
    case nn::ParameterKind::bias:
    case nn::ParameterKind::norm:
    case nn::ParameterKind::scalar:
    case nn::ParameterKind::sphere:
      return false;
  }
  throw ValueError(where, fmt::format("a parameter must be of a known kind; got number {}",
                                      static_cast<int>(kind)));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_names(const std::vector<nn::NamedParameter>& parameters,
                 const std::vector<std::string>& names) {
  for (const std::string& name : names)
    check(std::any_of(parameters.begin(), parameters.end(),
                      [&](const nn::NamedParameter& parameter) { return parameter.name == name; }),
          where, "decay and no_decay must name parameters of the module; got \"{}\"", name);
}

/// Two tensors on the same memory would be updated twice.
void check_disjoint(const std::vector<nn::NamedParameter>& parameters) {
  struct Range {
    const char* begin;
    const char* end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (const nn::NamedParameter& parameter : parameters) {
    const auto* begin = static_cast<const char*>(parameter.tensor.raw_data());
    if (parameter.tensor.requires_grad() && parameter.tensor.numel() > 0)
      ranges.push_back({begin, begin + parameter.tensor.nbytes(), &parameter.name});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::less<>()(a.begin, b.begin); });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    check(!std::less<>()(ranges[i].begin, ranges[i - 1].end), where,
          "parameters must not share memory, or they would be updated twice; got \"{}\" and "
          "\"{}\"; tie "
          "weights by assigning the tensor itself",
          *ranges[i - 1].name, *ranges[i].name);
}

/// "1,234,567".
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t position = digits.size(); position > 3;) {
    position -= 3;
    digits.insert(position, 1, ',');
  }
  return digits;
}

}  // namespace

WeightDecayGroups weight_decay_groups(const nn::Module& module, double weight_decay,
                                      const WeightDecayOptions& options) {
  check(weight_decay >= 0, where, "weight_decay must be at least 0; got {}", weight_decay);
  const std::vector<nn::NamedParameter> parameters = module.named_parameters();
  check_names(parameters, options.decay);
  check_names(parameters, options.no_decay);

  WeightDecayGroups result;
  ParamGroup decay{.weight_decay = weight_decay};
  ParamGroup no_decay{.weight_decay = 0.0};
  for (const auto& [name, tensor, kind] : parameters) {
    if (!tensor.requires_grad()) {
      result.frozen.push_back(name);
      continue;
    }
    const bool forced = contains(options.decay, name);
    const bool exempt = contains(options.no_decay, name);
    check(!forced || !exempt, where,
          "a parameter must be in one group; got \"{}\" in decay and no_decay", name);
    const bool decays = forced || (!exempt && decays_by_kind(kind, options));
    (decays ? decay : no_decay).params.push_back(tensor);
    result.entries.push_back({name, kind, tensor.numel(), decays});
  }
  check_disjoint(parameters);
  result.groups = {std::move(decay), std::move(no_decay)};
  return result;
}

std::string WeightDecayGroups::explain() const {
  struct Row {
    std::int64_t tensors = 0;
    std::int64_t values = 0;
  };
  std::string text;
  for (const bool decays : {true, false}) {
    std::map<nn::ParameterKind, Row> rows;
    Row total;
    for (const Entry& entry : entries) {
      if (entry.decays != decays) continue;
      for (Row* row : {&rows[entry.kind], &total}) {
        ++row->tensors;
        row->values += entry.numel;
      }
    }
    text += fmt::format("weight decay {}: {} values in {} parameters\n",
                        groups[decays ? 0 : 1].weight_decay.value(), with_commas(total.values),
                        total.tensors);
    for (const auto& [kind, row] : rows)
      text += fmt::format("  {:<10} {:>12} in {:>3}\n", nn::to_string(kind),
                          with_commas(row.values), row.tensors);
  }
  if (!frozen.empty())
    text += fmt::format("frozen: {} parameters ({})\n", frozen.size(), fmt::join(frozen, ", "));
  return text;
}

std::ostream& operator<<(std::ostream& stream, const WeightDecayGroups& groups) {
  return stream << groups.explain();
}

}  // namespace norma::optim
