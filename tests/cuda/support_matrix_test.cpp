// docs/support.md: which operation runs where. Found by running every row of the op table on the
// CPU and on a cuda(0) that has CUDA kernels alone, without the CPU's that stand in for missing
// ones in the emulator.
#include "cuda/device_cases.h"
#include "norma/core/autograd.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/op_table.h"
#include "support/sanitizers.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace norma::test {
namespace {

constexpr DType dtypes[] = {float32, float64, float16, bfloat16};
constexpr const char* short_names[] = {"f32", "f64", "f16", "bf16"};

enum Step { forward, backward, second_order, step_count };

/// What an operation can do on a device: the dtypes that every sample ran in, and the kernels that
/// others lacked.
struct Cell {
  std::set<DType> runs, fails;
  std::set<std::string> missing;
  std::string text(const OpEntry& op) const {
    std::string list;
    for (std::size_t i = 0; i < std::size(dtypes); ++i)
      if (runs.count(dtypes[i]) != 0 && fails.count(dtypes[i]) == 0)
        list += (list.empty() ? "" : " ") + std::string(short_names[i]);
    if (runs.size() == op.dtypes.size() && fails.empty() && op.dtypes.size() == std::size(dtypes))
      list = "all";
    if (missing.empty()) return list;
    std::string names;
    for (const std::string& name : missing) names += (names.empty() ? "`" : ", `") + name + "`";
    return list.empty() ? "needs " + names : list + "; else needs " + names;
  }
};

/// Derivatives of everything that has some, by `targets`; they can be differentiated again where
/// `create_graph`.
TensorList gradients(const TensorList& of, TensorList targets, bool create_graph) {
  TensorList roots, seeds;
  for (const Tensor& tensor : of) {
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    roots.push_back(tensor);
    seeds.push_back(random(tensor.shape(), 5).to(tensor.dtype()).to(tensor.device()));
    if (create_graph) targets.push_back(seeds.back().requires_grad_());
  }
  if (roots.empty()) return {};
  if (create_graph) targets.resize(targets.size() - seeds.size());
  return grad(roots, targets,
              {.grad_outputs = seeds, .create_graph = create_graph, .allow_unused = true});
}

void run(const OpEntry& op, const OpSample& sample, const Device& device, DType dtype, Step step) {
  TensorList inputs, targets;
  for (const Tensor& input : sample.inputs) {
    inputs.push_back(on_device(converted(input, dtype), device));
    if (step != forward && input.defined() && input.is_floating_point())
      targets.push_back(inputs.back().requires_grad_());
  }
  const TensorList outputs = sample.run(inputs);
  if (step == forward || !op.differentiable) return;
  const TensorList first = gradients(outputs, targets, step == second_order);
  if (step == second_order) gradients(first, targets, false);
}

/// The name in "[name] the device must provide this kernel".
std::string kernel_of(const NotImplementedError& error) {
  const std::string text = error.what();
  const std::size_t end = text.find(']');
  return text.starts_with("[") && end != std::string::npos ? text.substr(1, end - 1) : text;
}

using Row = std::map<std::pair<DeviceType, Step>, Cell>;

void fill(Row& row, const OpEntry& op, const Device& device) {
  for (const Step step : {forward, backward, second_order}) {
    if (step != forward && !op.differentiable) continue;
    if (step == second_order && !op.second_order) continue;
    Cell& cell = row[{device.type, step}];
    for (const DType dtype : op.dtypes) {
      int samples = 0;
      for (const OpSample& sample : op.samples) {
        // float32 has every sample, for each may take another kernel; the others have a few.
        if ((sample.large && !op.samples.front().large) || (dtype != float32 && ++samples > 2))
          continue;
        try {
          run(op, sample, device, dtype, step);
          cell.runs.insert(dtype);
        } catch (const NotImplementedError& error) {
          cell.fails.insert(dtype);
          cell.missing.insert(kernel_of(error));
        }
      }
    }
  }
}

std::string matrix() {
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  std::map<std::string, const OpEntry*> entries;
  for (const OpEntry& op : op_table()) {
    if (entries.emplace(op.name, &op).second) order.push_back(op.name);
    fill(rows[op.name], op, cpu);
    const OwnKernelsGuard guard;
    fill(rows[op.name], op, cuda(0));
  }
  std::ostringstream out;
  out << "# What runs where\n\n"
         "Written by the tests (`make support-matrix`), which run every row of the op table: do "
         "not "
         "edit. *all* is float32,\nfloat64, float16 and bfloat16. Second order is `grad(…, "
         "{.create_graph = true})` of the gradient. Where a device lacks a\nkernel the cell names "
         "it, and the operation throws `NotImplementedError` with that name.\n\n"
         "| Operation | CPU forward | CPU backward | CPU second order | CUDA forward | CUDA "
         "backward | CUDA second order |\n|---|---|---|---|---|---|---|\n";
  std::string notes;
  for (const std::string& name : order) {
    const OpEntry& op = *entries[name];
    out << "| " << name;
    for (const DeviceType device : {DeviceType::cpu, DeviceType::cuda})
      for (const Step step : {forward, backward, second_order}) {
        const bool none = step != forward && !op.differentiable;
        const bool once = step == second_order && op.differentiable && !op.second_order;
        out << " | "
            << (none   ? "not differentiable"
                : once ? "no (1)"
                       : rows[name][{device, step}].text(op));
      }
    out << " |\n";
    if (op.differentiable && !op.second_order)
      notes += "- " + name + ": " + op.no_second_order_because + "\n";
  }
  out << "\n(1) Why there is no second order:\n\n" << notes;
  return out.str();
}

}  // namespace

TEST_CASE("the support matrix in docs is what the tests find") {
  if (!has_device()) return;
  // Under sanitizers it takes too long, and the kernels' own tests make the same launches.
  if (sanitized || std::getenv("NORMA_TEST_OPS") != nullptr) {
    WARN("skipped: CUDA's matrix needs all operations, and a build without sanitizers");
    return;
  }
  const std::string path = std::string(NORMA_TEST_DATA) + "/../../docs/support.md";
  const std::string found = matrix();
  // Every operation runs on the CPU, forward and backward, in every dtype of its row.
  if (std::getenv("NORMA_WRITE_SUPPORT_MATRIX") != nullptr) std::ofstream(path) << found;
  std::ostringstream committed;
  committed << std::ifstream(path).rdbuf();
  INFO("`make support-matrix` writes docs/support.md anew");
  CHECK(committed.str() == found);
}

}  // namespace norma::test
