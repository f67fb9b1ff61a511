#include "norma/core/function.h"

#include "norma/core/engine.h"
#include "norma/core/factory.h"
#include "norma/core/required_ops.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace norma {

namespace {

std::int64_t find_same(const TensorList& list, const Tensor& tensor) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (tensor.defined() && list[i].is_same(tensor)) return static_cast<std::int64_t>(i);
  return -1;
}

/// The checks for an input that `name` changed in place.
void check_dirty(const std::string& name, const Tensor& tensor, bool recorded) {
  check<ValueError>(tensor.defined(), name.c_str(),
                    "the tensor that changes must be defined; got an empty Tensor handle, as "
                    ".grad() is before the first backward");
  if (!GradMode::is_enabled()) return;
  check<AutogradError>(
      !(tensor.is_leaf() && tensor.requires_grad()), name.c_str(),
      "a leaf that requires grad must not change in place while recording; wrap the change in "
      "NoGradGuard, or use the out-of-place operation");
  const TensorImpl& impl = *tensor.impl();
  check<AutogradError>(
      !impl.is_graph_view && !(impl.is_view && (recorded || impl.base_has_history)), name.c_str(),
      "a view must not change in place while recording, because the history of its base would miss "
      "it; use the out-of-place operation, or clone() the view first");
  check<AutogradError>(
      impl.storage->graph_views.load() == 0 && !(recorded && impl.storage->plain_views.load() > 0),
      name.c_str(),
      "a tensor with views must not change in place while recording, because their history would "
      "miss it; use the out-of-place operation, or clone() before taking the views");
}

/// A tensor that changed in place keeps the gradient of what it is now, which is output `output_nr`
/// of `node`, and no longer that of what it was.
void move_retained(const Tensor& tensor, Node& node, std::size_t output_nr) {
  const std::shared_ptr<Node> former = tensor.grad_fn();
  if (!former || tensor.output_nr() >= former->retained.size()) return;
  std::weak_ptr<TensorImpl>& entry = former->retained[tensor.output_nr()];
  if (entry.lock() != tensor.impl()) return;
  node.retained.resize(output_nr + 1);
  node.retained[output_nr] = std::exchange(entry, {});
}

}  // namespace

// -- Context ------------------------------------------------------------------------------------

TensorList Context::saved_tensors() const {
  TensorList tensors;
  tensors.reserve(saved_.size());
  for (std::size_t i = 0; i < saved_.size(); ++i) tensors.push_back(saved_tensor(i));
  return tensors;
}

Tensor Context::saved_tensor(std::size_t index) const {
  FunctionRecorder::check_not_released(*this);
  check<AutogradError>(index < saved_.size(), name_.c_str(),
                       "saved tensor index must be below the {} tensors that forward saved; got {}",
                       saved_.size(), index);
  return saved_[index].unpack(node_.lock(), index);
}

bool Context::needs_input_grad(std::size_t index) const {
  if (const auto node = node_.lock(); node && detail::current_node() == node.get())
    return detail::current_node_needs(index);
  return index < needs_input_grad_.size() && needs_input_grad_[index];
}

const std::any* Context::find(const char* key) const {
  const std::string_view wanted = key;
  for (auto it = values_.rbegin(); it != values_.rend(); ++it)
    if (wanted == it->first) return &it->second;
  return nullptr;
}

// -- FunctionRecorder -----------------------------------------------------------------------------

std::string FunctionRecorder::demangle(const char* type_name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type_name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : type_name;
}

bool FunctionRecorder::should_record(const TensorList& inputs) {
  return GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(),
                                               [](const Tensor& t) { return t.requires_grad(); });
}

void FunctionRecorder::begin(Context& ctx, std::string name, const TensorList& inputs, bool record,
                             bool given_infinity) {
  ctx.name_ = std::move(name);
  ctx.given_infinity_ = given_infinity;
  ctx.recording_ = record;
  ctx.needs_input_grad_.reserve(inputs.size());
  for (const Tensor& input : inputs)
    ctx.needs_input_grad_.push_back(record && input.requires_grad());
}

void FunctionRecorder::finish(Context& ctx, const std::shared_ptr<Node>& node,
                              const TensorList& inputs, TensorList& outputs) {
  const char* name = ctx.name_.c_str();
  // Decide what each saved tensor is before outputs change identity.
  const TensorList forward_outputs = outputs;
  for (Tensor& dirty : ctx.dirty_) {
    check<AutogradError>(find_same(inputs, dirty) >= 0, name,
                         "mark_dirty takes inputs; got a tensor that is none of them");
    check_dirty(ctx.name_, dirty, node != nullptr);
    dirty.storage()->bump_version();
  }
  for (Tensor& output : outputs) {
    check<AutogradError>(output.defined(), name,
                         "forward must return defined tensors; got an undefined one");
    // Returning an input itself would tie the result's history to the input's handle.
    if (find_same(inputs, output) >= 0 && find_same(ctx.dirty_, output) < 0)
      output = detail::make_view(output, output.shape(), output.strides(), output.storage_offset());
  }
  if (AnomalyMode::is_enabled())
    detail::check_anomaly(ctx.name_, "forward", outputs, inputs, ctx.given_infinity_);
  if (!node) return;

  ctx.node_ = node;
  node->edges.reserve(inputs.size());
  for (const Tensor& input : inputs) node->edges.push_back(gradient_edge(input));
  node->move_to_end();
  // Inputs are saved with the history they had before any in-place change, so before outputs are
  // connected.
  ctx.saved_.reserve(ctx.to_save_.size());
  for (const Tensor& tensor : ctx.to_save_) {
    std::int64_t output_nr = find_same(forward_outputs, tensor);
    if (output_nr >= 0 && find_same(inputs, tensor) >= 0 && find_same(ctx.dirty_, tensor) < 0)
      output_nr = -1;
    ctx.saved_.emplace_back(tensor, output_nr);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor& output = outputs[i];
    node->outputs.push_back({output.shape(), output.dtype(), output.device()});
    const bool differentiable =
        output.is_floating_point() && find_same(ctx.non_differentiable_, forward_outputs[i]) < 0;
    if (!differentiable) continue;
    AutogradMeta& meta = output.impl()->meta();
    move_retained(output, *node, i);
    meta.grad_fn = node;
    meta.output_nr = static_cast<std::uint32_t>(i);
    if (!output.impl()->is_graph_view && find_same(ctx.dirty_, output) < 0 &&
        std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
          return input.defined() && input.storage() == output.storage();
        })) {
      output.impl()->is_graph_view = true;
      output.impl()->counted.count_in(&output.storage()->graph_views);
    }
  }
  ctx.to_save_.clear();
  ctx.dirty_.clear();
  ctx.non_differentiable_.clear();
}

void FunctionRecorder::check_in_place(const char* operation, const Tensor& tensor,
                                      const TensorList& inputs) {
  check_dirty(operation, tensor, should_record(inputs));
}

TensorList FunctionRecorder::materialize(const Context& ctx, const Node& node, TensorList grads) {
  if (!ctx.materialize_) return grads;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() || !is_floating_point(node.outputs[i].dtype)) continue;
    grads[i] = zeros(node.outputs[i].shape,
                     {.dtype = node.outputs[i].dtype, .device = node.outputs[i].device});
  }
  return grads;
}

void FunctionRecorder::check_not_released(const Context& ctx) {
  check<AutogradError>(
      !ctx.released_, ctx.name_.c_str(),
      "a graph can be run backward once; its saved values are released; pass "
      "{{.retain_graph = true}} to the first backward, or compute the result again");
}

void FunctionRecorder::release(Context& ctx) {
  if (ctx.saved_.empty()) return;  // nothing to lose: such a node can run again, as in PyTorch
  ctx.saved_.clear();
  ctx.values_.clear();
  ctx.released_ = true;
}

TensorList FunctionRecorder::select_tensor_grads(const Context& ctx, TensorList grads,
                                                 const std::vector<bool>& argument_is_tensor,
                                                 std::size_t tensor_count) {
  if (grads.size() == tensor_count) return grads;
  check<AutogradError>(grads.size() == argument_is_tensor.size(), ctx.name_.c_str(),
                       "backward must return one gradient per tensor argument ({}), or one per "
                       "argument ({}); got {}",
                       tensor_count, argument_is_tensor.size(), grads.size());
  TensorList selected;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (argument_is_tensor[i]) {
      selected.push_back(std::move(grads[i]));
    } else {
      check<AutogradError>(
          !grads[i].defined(), ctx.name_.c_str(),
          "backward must return undefined for argument {}, which is no tensor; got a gradient", i);
    }
  }
  return selected;
}

}  // namespace norma
