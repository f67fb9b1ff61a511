// The CUDA kernels of optimizers against the CPU's.
#include "cuda/kernel_cases.h"

#include <optional>

namespace norma::test {
namespace {

/// Tensors of all sizes around a chunk, and more of them than one launch takes.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> result = {0, 1, 31, 257, 2047, 2048, 2049, 5000};
  result.resize(60, 3);
  return result;
}

/// A tensor of each size in `dtype`, or in all floating-point types in turn.
TensorList tensors(std::optional<DType> dtype, std::uint64_t seed, const Device& device,
                   bool accumulate = false, double low = -1.0) {
  TensorList list;
  for (const std::int64_t size : sizes()) {
    const DType own = dtype ? *dtype : floating_dtypes[list.size() % floating_dtypes.size()];
    const Tensor rounded = values({size}, own, seed + list.size(), low, 1.0);
    list.push_back(placed(accumulate ? rounded.to(accumulate_of(own)) : rounded, device, 1));
  }
  return list;
}

struct Parameters {
  TensorList params, masters, grads;
  Parameters(std::optional<DType> dtype, const Device& device)
      : params(tensors(dtype, 1, device)), grads(tensors(dtype, 1000, device)) {
    for (const Tensor& param : params)
      masters.push_back(param.dtype() == accumulate_of(param.dtype())
                            ? param
                            : param.to(accumulate_of(param.dtype())));
  }
};

template <class... Lists>
TensorList joined(const Lists&... lists) {
  TensorList all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

/// The same lists on both devices; each tensor by the rounding of its own dtype.
template <class Run>
void check_lists(const Run& run) {
  const TensorList expected = run(cpu), actual = run(cuda(0));
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("tensor " << i << " " << dtype_name(expected[i].dtype()));
    CHECK(allclose(actual[i], expected[i], tolerance_of(expected[i].dtype(), 1)));
  }
}

/// Each type alone, and all of them in one list.
const std::vector<std::optional<DType>> dtypes = {float32, float64, float16, bfloat16,
                                                  std::nullopt};

/// Without a scale, and with one of either type.
Tensor scale_of(int kind, const Device& device) {
  if (kind == 0) return {};
  return full({}, 0.25, {.dtype = kind == 1 ? float32 : float64, .device = device});
}

}  // namespace

TEST_CASE("CUDA: AdamW steps agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const auto& dtype : dtypes)
    for (const int scale : {0, 1, 2})
      for (const std::int64_t step : {1, 10}) {
        INFO((dtype ? dtype_name(*dtype) : "all dtypes")
             << ", scale " << scale << ", step " << step);
        check_lists([&](const Device& device) {
          const Parameters p(dtype, device);
          const TensorList exp_avg = tensors(dtype, 2000, device, true),
                           exp_avg_sq = tensors(dtype, 3000, device, true, 0.01);
          backend(device).adamw(p.params, p.masters, p.grads, exp_avg, exp_avg_sq,
                                scale_of(scale, device),
                                AdamWParams{.lr = 0.01,
                                            .beta1 = 0.9,
                                            .beta2 = 0.99,
                                            .eps = 1e-8,
                                            .weight_decay = 0.1,
                                            .step = step,
                                            .maximize = step == 10});
          return joined(p.params, p.masters, exp_avg, exp_avg_sq);
        });
      }
}

TEST_CASE("CUDA: SGD steps agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const auto& dtype : dtypes)
    for (const int scale : {0, 1, 2})
      for (const bool momentum : {false, true})
        for (const bool first : {false, true})
          for (const bool nesterov : {false, true}) {
            if (!momentum && (first || nesterov)) continue;  // options of the momentum
            INFO((dtype ? dtype_name(*dtype) : "all dtypes")
                 << ", scale " << scale << (momentum ? ", momentum" : "")
                 << (first ? ", first" : "") << (nesterov ? ", nesterov" : ""));
            check_lists([&](const Device& device) {
              const Parameters p(dtype, device);
              const TensorList buffers =
                  momentum ? tensors(dtype, 2000, device, true) : TensorList();
              backend(device).sgd(p.params, p.masters, p.grads, buffers, scale_of(scale, device),
                                  SgdParams{.lr = 0.1,
                                            .momentum = momentum ? 0.9 : 0.0,
                                            .dampening = nesterov ? 0.0 : 0.3,
                                            .weight_decay = 0.01,
                                            .nesterov = nesterov,
                                            .maximize = scale == 2,
                                            .first_step = first});
              return joined(p.params, p.masters, buffers);
            });
          }
}

TEST_CASE("CUDA: the norm of all gradients agrees with the CPU and repeats bit for bit") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const auto& dtype : dtypes)
    for (const DType result : {float32, float64}) {
      INFO((dtype ? dtype_name(*dtype) : "all dtypes"));
      const auto run = [&](const Device& device) {
        const Tensor out = output({}, result, device);
        backend(device).global_norm(tensors(dtype, 1, device), out);
        return TensorList{out};
      };
      check_devices(run, result, [](std::size_t) { return 12000; });  // all elements
      check_repeats(run);
    }
  const Tensor nothing = output({}, float32, cuda(0));
  backend(nothing).global_norm(TensorList(), nothing);
  CHECK(nothing.item<float>() == 0.0F);
  const Tensor huge = full({3}, 1e30, {.device = cuda(0)});
  backend(nothing).global_norm(TensorList{huge}, nothing);
  CHECK(allclose(nothing, std::vector<double>{1.7320508e30}, {1e-6, 0.0}));
}

TEST_CASE("CUDA: gradients are clipped as on the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const auto& dtype : dtypes)
    for (const double norm : {0.5, 2.0, 8.0, std::numeric_limits<double>::quiet_NaN()})
      for (const DType type : {float32, float64})
        check_lists([&](const Device& device) {
          const TensorList list = tensors(dtype, 1, device);
          backend(device).clip_scale(list, full({}, norm, {.dtype = type, .device = device}), 2.0);
          return list;
        });
}

TEST_CASE("CUDA: averages of weights agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const auto& dtype : dtypes)
    check_lists([&](const Device& device) {
      const TensorList averages = tensors(dtype, 2000, device, true);
      backend(device).ema(averages, tensors(dtype, 1, device), 0.9);
      return averages;
    });
}

}  // namespace norma::test
