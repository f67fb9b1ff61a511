#include "support/reference.h"

#include "support/catch.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/missing_kernels.h"
#include "support/rounding.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"

namespace norma::test {

namespace {

Tensor laid_out(const Tensor& tensor, Layout layout, bool may_expand) {
  if (!tensor.defined()) return {};
  const Tensor plain = tensor.detach();
  switch (layout) {
    case Layout::gaps:
      return noncontiguous(plain);
    case Layout::transposed:
      if (plain.dim() < 2) break;
      return plain.transpose(0, -1).contiguous().transpose(0, -1);
    case Layout::expanded:
      if (!may_expand || plain.dim() < 2 || plain.size(0) == 0) break;
      return plain.narrow(0, 0, 1).clone().expand(plain.shape());
    case Layout::misaligned: {
      const Tensor buffer =
          empty({plain.numel() + 1}, {.dtype = plain.dtype(), .device = plain.device()});
      const Tensor view = buffer.narrow(0, 1, plain.numel()).view(plain.shape());
      view.copy_(plain);
      return view;
    }
    case Layout::contiguous:
      break;
  }
  return plain.clone();
}

struct Outcome {
  TensorList outputs, gradients;
  TensorList results() const {
    TensorList all = outputs;
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }
};

Outcome run(const OpEntry& op, const OpFunction& function, const TensorList& inputs,
            const TensorList& cotangents, Layout layout = Layout::contiguous) {
  Outcome outcome;
  TensorList targets;
  for (const Tensor& input : inputs)
    if (op.differentiable && input.defined() && input.is_floating_point())
      targets.push_back(input.requires_grad_());
  outcome.outputs = function(inputs);
  TensorList roots;
  TensorList seeds;
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    const Tensor& output = outcome.outputs[i];
    if (!output.requires_grad()) continue;
    roots.push_back(output);
    seeds.push_back(laid_out(on_device(converted(cotangents[i], output.dtype()), output.device()),
                             layout, true));
  }
  if (!roots.empty())
    outcome.gradients = grad(roots, targets, {.grad_outputs = seeds, .allow_unused = true});
  return outcome;
}

}  // namespace

const char* layout_name(Layout layout) {
  constexpr const char* names[] = {"contiguous", "with gaps", "transposed", "expanded",
                                   "misaligned"};
  return names[static_cast<int>(layout)];
}

Reference::Reference(const OpEntry& op, const OpSample& sample, DType dtype, bool equal_rows)
    : op_(op), sample_(sample), dtype_(dtype) {
  TensorList exact;
  for (const Tensor& input : sample.inputs) {
    inputs_.push_back(converted(input, dtype));
    exact.push_back(converted(inputs_.back(), float64));
  }
  const OpFunction& definition = sample.composite ? sample.composite : sample.run;
  for (const Tensor& output : definition(exact)) {
    Tensor cotangent = converted(converted(random(output.shape(), 77), dtype), float64);
    if (equal_rows) cotangent = laid_out(cotangent, Layout::expanded, true).contiguous();
    cotangents_.push_back(cotangent);
  }
  const Outcome expected = run(op, definition, exact, cotangents_);
  outputs_ = expected.outputs.size();
  expected_ = expected.results();
  const auto count = static_cast<std::ptrdiff_t>(exact.size());
  exact.insert(exact.end(), cotangents_.begin(), cotangents_.end());
  sizes_ = sizes_of_terms(
      [&](const TensorList& in) {
        return run(op, definition, {in.begin(), in.begin() + count}, {in.begin() + count, in.end()})
            .results();
      },
      exact, expected_);
}

void Reference::check(const Device& device, Layout layout) const {
  INFO(device.str() << ", " << dtype_name(dtype_) << ", " << layout_name(layout));
  TensorList inputs;
  for (const Tensor& input : inputs_)
    inputs.push_back(laid_out(on_device(input, device), layout, inputs.empty()));
  Outcome outcome;
  if (!where_implemented(device,
                         [&] { outcome = run(op_, sample_.run, inputs, cotangents_, layout); }))
    return;
  const TensorList actual = outcome.results();
  REQUIRE(outcome.outputs.size() == outputs_);
  REQUIRE(actual.size() == expected_.size());
  TensorList all = sample_.inputs;
  all.insert(all.end(), expected_.begin(), expected_.end());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool is_output = i < outputs_;
    INFO((is_output ? "output " : "gradient ") << (is_output ? i : i - outputs_));
    REQUIRE(actual[i].defined());
    CHECK(within_rounding(actual[i], expected_[i], sizes_[i], longest_sum(expected_[i], all),
                          op_.stored));
    if (!is_output) CHECK(actual[i].dtype() == dtype_);
  }
}

}  // namespace norma::test
