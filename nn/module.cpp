#include "norma/nn/module.h"

#include "norma/core/function.h"
#include "norma/core/tensor_impl.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace norma::nn {

Module::Module() = default;
Module::~Module() = default;

// -- registration -----------------------------------------------------------------------

void Module::check_name(const std::string& name, const char* operation) const {
  check<ValueError>(!name.empty() && name.find('.') == std::string::npos, operation,
                    "a name must be non-empty and without dots; got \"{}\"; dots join the names of "
                    "nested modules",
                    name);
  const auto taken = [&](const auto& entries) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto& entry) { return entry.name == name; });
  };
  check<ValueError>(
      !taken(parameters_) && !taken(buffers_) && !taken(children_), operation,
      "names must be unique within a module; got \"{}\" twice in {}; register it once", name,
      type_name());
}

void Module::register_parameter(const std::string& name, Tensor& tensor, ParameterKind kind) {
  check_name(name, "register_parameter");
  check<ValueError>(tensor.defined(), "register_parameter",
                    "a parameter must be a defined tensor; got none for \"{}\"; leave out an "
                    "optional parameter that is not there",
                    name);
  check<DTypeError>(tensor.is_floating_point(), "register_parameter",
                    "a parameter must be floating-point; got {} for \"{}\"; register_buffer takes "
                    "any dtype",
                    tensor.dtype(), name);
  check<ValueError>(tensor.is_leaf(), "register_parameter",
                    "a parameter must be a leaf; got the result of an operation for \"{}\"; "
                    "detach() it first",
                    name);
  tensor.requires_grad_(true);
  parameters_.push_back({name, &tensor, kind});
}

void Module::set_parameter_kind(const std::string& name, ParameterKind kind) {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& entry) { return entry.name == name; });
  check<ValueError>(found != parameters_.end(), "set_parameter_kind",
                    "name must be that of a parameter of this module; got \"{}\"", name);
  found->kind = kind;
}

void Module::register_buffer(const std::string& name, Tensor& tensor, bool persistent) {
  check_name(name, "register_buffer");
  check<ValueError>(tensor.defined(), "register_buffer",
                    "a buffer must be a defined tensor; got none for \"{}\"", name);
  buffers_.push_back({name, &tensor, persistent});
}

void Module::register_module(const std::string& name, Module& child) {
  check_name(name, "register_module");
  const std::vector<Module*> below = child.modules();
  check<ValueError>(std::find(below.begin(), below.end(), this) == below.end(), "register_module",
                    "a module must not contain itself; got \"{}\" in {}", name, type_name());
  children_.push_back({name, &child});
}

// -- the registry -----------------------------------------------------------------------

template <class F>
void Module::walk(const std::string& prefix, const F& f) const {
  f(prefix, *this);
  for (const Child& child : children_) child.module->walk(prefix + child.name + ".", f);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> result;
  std::unordered_set<const TensorImpl*> seen;
  walk("", [&](const std::string& prefix, const Module& module) {
    for (const Parameter& entry : module.parameters_)
      if (entry.tensor->defined() && seen.insert(entry.tensor->impl().get()).second)
        result.push_back({prefix + entry.name, *entry.tensor, entry.kind});
  });
  return result;
}

TensorList Module::parameters() const {
  TensorList result;
  for (NamedParameter& entry : named_parameters()) result.push_back(std::move(entry.tensor));
  return result;
}

std::vector<NamedBuffer> Module::named_buffers() const {
  std::vector<NamedBuffer> result;
  std::unordered_set<const TensorImpl*> seen;
  walk("", [&](const std::string& prefix, const Module& module) {
    for (const Buffer& entry : module.buffers_)
      if (entry.tensor->defined() && seen.insert(entry.tensor->impl().get()).second)
        result.push_back({prefix + entry.name, *entry.tensor, entry.persistent});
  });
  return result;
}

TensorList Module::buffers() const {
  TensorList result;
  for (NamedBuffer& entry : named_buffers()) result.push_back(std::move(entry.tensor));
  return result;
}

std::vector<NamedModule> Module::named_children() const {
  std::vector<NamedModule> result;
  for (const Child& child : children_) result.push_back({child.name, child.module});
  return result;
}

std::vector<Module*> Module::children() const {
  std::vector<Module*> result;
  for (const Child& child : children_) result.push_back(child.module);
  return result;
}

std::vector<NamedModule> Module::named_modules() {
  std::vector<NamedModule> result;
  std::unordered_set<const Module*> seen;
  walk("", [&](const std::string& prefix, const Module& module) {
    if (seen.insert(&module).second)
      result.push_back(
          {prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1), const_cast<Module*>(&module)});
  });
  return result;
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> result;
  for (const NamedModule& entry : named_modules()) result.push_back(entry.module);
  return result;
}

std::int64_t Module::num_parameters(bool trainable_only) const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters())
    if (!trainable_only || parameter.requires_grad()) count += parameter.numel();
  return count;
}

// -- state ------------------------------------------------------------------------------

StateDict Module::state_dict() const {
  StateDict state;
  walk("", [&](const std::string& prefix, const Module& module) {
    for (const Parameter& entry : module.parameters_)
      if (entry.tensor->defined()) state.insert(prefix + entry.name, entry.tensor->detach());
    for (const Buffer& entry : module.buffers_)
      if (entry.persistent && entry.tensor->defined())
        state.insert(prefix + entry.name, entry.tensor->detach());
  });
  return state;
}

LoadReport Module::load_state_dict(const StateDict& state, bool strict) {
  LoadReport report;
  std::string problems;
  std::vector<std::pair<Tensor, Tensor>> copies;
  const StateDict own = state_dict();
  std::unordered_map<std::string_view, const Tensor*> given;
  for (const auto& [name, tensor] : state) given.emplace(name, &tensor);
  for (const auto& [name, target] : own) {
    const auto it = given.find(name);
    if (it == given.end()) {
      report.missing.push_back(name);
      continue;
    }
    const Tensor& source = *it->second;
    if (!source.defined() || source.shape() != target.shape())
      problems +=
          fmt::format("\n  shape of \"{}\": {} in the dictionary, {} in the module", name,
                      source.defined() ? source.shape().str() : "undefined", target.shape());
    else
      copies.emplace_back(target, source);
    given.erase(it);
  }
  for (const auto& [name, tensor] : state)
    if (given.contains(name)) report.unexpected.push_back(name);

  if (strict && !report.missing.empty())
    problems += fmt::format("\n  missing: {}", fmt::join(report.missing, ", "));
  if (strict && !report.unexpected.empty())
    problems += fmt::format("\n  unexpected: {}", fmt::join(report.unexpected, ", "));
  check<ValueError>(
      problems.empty(), "load_state_dict",
      "names and shapes must be those of {}; got{}\nnothing was loaded; strict = false "
      "allows missing and unexpected names, shapes must always fit",
      type_name(), problems);

  NoGradGuard no_grad;
  for (const auto& [target, source] : copies) target.copy_(source);
  return report;
}

// -- modes and conversions --------------------------------------------------------------

Module& Module::train(bool mode) {
  for (Module* module : modules()) module->training_ = mode;
  return *this;
}

namespace {

/// Gives `tensor`, a leaf, other data, dtype and device. Every handle sees it, as after `param.data
/// = ...` in PyTorch.
void set_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl& target = *tensor.impl();
  const TensorImpl& source = *data.impl();
  target.shape = source.shape;
  target.strides = source.strides;
  target.offset = source.offset;
  target.numel = source.numel;
  target.dtype = source.dtype;
  target.contiguous = source.contiguous;
  target.counted.count_in(nullptr);  // the new data are nobody's view
  target.is_view = false;
  target.base_has_history = false;
  target.storage = source.storage;
  // The accumulator of a graph that is still alive expects gradients of the old kind: start a new
  // one.
  if (target.autograd) target.autograd->grad_accumulator.reset();
}

}  // namespace

void Module::convert(const std::function<Tensor(const Tensor&)>& f) {
  NoGradGuard no_grad;
  // Convert everything before changing anything, so that a failure leaves the module whole.
  std::vector<std::pair<Tensor, Tensor>> changes;
  const auto add = [&](const Tensor& tensor) {
    const Tensor converted = f(tensor.detach());
    if (converted.dtype() != tensor.dtype() || converted.device() != tensor.device())
      changes.emplace_back(tensor, converted);
  };
  for (const Tensor& parameter : parameters()) {
    add(parameter);
    if (parameter.grad().defined()) add(parameter.grad());
  }
  for (const Tensor& buffer : buffers()) add(buffer);
  for (const auto& [tensor, data] : changes) set_data(tensor, data);
}

Module& Module::to(DType dtype) {
  check<DTypeError>(is_floating_point(dtype), "Module::to",
                    "a module must be converted to a floating-point dtype; got {}", dtype);
  convert(
      [&](const Tensor& tensor) { return tensor.is_floating_point() ? tensor.to(dtype) : tensor; });
  return *this;
}

Module& Module::to(const Device& device) {
  convert([&](const Tensor& tensor) { return tensor.to(device); });
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& f) {
  for (const Child& child : children_) child.module->apply(f);
  f(*this);
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& parameter : parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (set_to_none)
      parameter.set_grad({});
    else
      gradient.detach().zero_();
  }
}

Module& Module::requires_grad_(bool requires_grad) {
  for (const Tensor& parameter : parameters()) parameter.requires_grad_(requires_grad);
  return *this;
}

// -- text -------------------------------------------------------------------------------

std::string Module::type_name() const {
  std::string name = FunctionRecorder::demangle(typeid(*this).name());
  const std::size_t scope = name.substr(0, name.find('<')).rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

namespace {

std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string Module::str() const {
  const std::string extra = extra_repr();
  if (children_.empty()) return type_name() + "(" + extra + ")";
  std::string result = type_name() + "(";
  if (!extra.empty()) result += "\n  " + indented(extra);
  for (std::size_t i = 0; i < children_.size();) {
    const std::string text = children_[i].module->str();
    // As PyTorch's ModuleList: a run of equal layers takes one entry.
    std::size_t end = i + 1;
    while (end < children_.size() && is_number(children_[i].name) &&
           is_number(children_[end].name) && children_[end].module->str() == text)
      ++end;
    if (end - i > 1)
      result += fmt::format("\n  ({}-{}): {} x {}", children_[i].name, children_[end - 1].name,
                            end - i, indented(text));
    else
      result += fmt::format("\n  ({}): {}", children_[i].name, indented(text));
    i = end;
  }
  return result + "\n)";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  return stream << module.str();
}

std::string_view to_string(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::matrix:
      return "matrix";
    case ParameterKind::bias:
      return "bias";
    case ParameterKind::norm:
      return "norm";
    case ParameterKind::embedding:
      return "embedding";
    case ParameterKind::sphere:
      return "sphere";
    case ParameterKind::scalar:
      break;
  }
  return "scalar";
}

}  // namespace norma::nn
