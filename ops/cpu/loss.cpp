#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/row.h"
#include "norma/ops/cpu/vec_math.h"

namespace norma::cpu_kernels {

namespace {

constexpr std::int64_t cost = 4;  // an element with its exponential, in units of a copy

/// Sum of the class weights; the number of classes without weights.
template <class T, class C = accumulate_t<T>>
C total_weight(const T* weight, std::int64_t classes) {
  if (weight == nullptr) return static_cast<C>(classes);
  return row_sum<C>(classes, [weight](std::int64_t c) { return static_cast<C>(weight[c]); });
}

void cross_entropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                   std::int64_t ignore_index, double label_smoothing, const Tensor& loss,
                   const Tensor& logsumexp) {
  const std::int64_t classes = logits.size(1);
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = logits.data<T>();
    const std::int64_t* const pt = target.data<std::int64_t>();
    const T* const pw = weight.defined() ? weight.data<T>() : nullptr;
    C* const ploss = loss.data<C>();
    C* const plse = logsumexp.data<C>();
    const C certain = static_cast<C>(1.0 - label_smoothing);
    const C share =
        static_cast<C>(label_smoothing / static_cast<double>(std::max<std::int64_t>(classes, 1)));
    const C weights = total_weight(pw, classes);
    parallel_for(logits.size(0), cost * classes, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const x = px + row * classes;
        if (pt[row] == ignore_index) {
          ploss[row] = plse[row] = C(0);
          continue;
        }
        const C max = row_max<C>(classes, [x](std::int64_t c) { return static_cast<C>(x[c]); });
        const C sum = row_sum<C>(classes, [x, max](std::int64_t c) {
          return VecMath::exp_nonpositive(static_cast<C>(x[c]) - max);
        });
        const C log_sum = VecMath::log(sum);
        // Distances to the log-sum-exp are taken from the maximum: the difference of close large
        // numbers is exact.
        const C nll = log_sum - (static_cast<C>(x[pt[row]]) - max);
        C value = certain * nll * (pw != nullptr ? static_cast<C>(pw[pt[row]]) : C(1));
        if (share > C(0)) {
          const C spread = row_sum<C>(classes, [x, pw, max](std::int64_t c) {
            const C factor = pw != nullptr ? static_cast<C>(pw[c]) : C(1);
            return factor * (static_cast<C>(x[c]) - max);
          });
          value += share * (weights * log_sum - spread);
        }
        ploss[row] = value;
        plse[row] = max + log_sum;
      }
    });
  });
}

void cross_entropy_backward(const Tensor& logits, const Tensor& target, const Tensor& weight,
                            std::int64_t ignore_index, double label_smoothing,
                            const Tensor& logsumexp, const Tensor& dloss, const Tensor& dlogits) {
  const std::int64_t classes = logits.size(1);
  visit_floating(logits.dtype(), "cross_entropy_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = logits.data<T>();
    const std::int64_t* const pt = target.data<std::int64_t>();
    const T* const pw = weight.defined() ? weight.data<T>() : nullptr;
    const C* const plse = logsumexp.data<C>();
    const C* const pdloss = dloss.data<C>();
    T* const pdx = dlogits.data<T>();
    const C certain = static_cast<C>(1.0 - label_smoothing);
    const C share =
        static_cast<C>(label_smoothing / static_cast<double>(std::max<std::int64_t>(classes, 1)));
    const C weights = total_weight(pw, classes);
    parallel_for(logits.size(0), cost * classes, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const x = px + row * classes;
        T* const dx = pdx + row * classes;
        const std::int64_t t = pt[row];
        if (t == ignore_index) {
          for (std::int64_t c = 0; c < classes; ++c) dx[c] = static_cast<T>(C(0));
          continue;
        }
        const C lse = plse[row];
        const C direct = pdloss[row] * certain * (pw != nullptr ? static_cast<C>(pw[t]) : C(1));
        const C smooth = pdloss[row] * share;
        const C scale = direct + smooth * weights;
        const auto softmax = [&](std::int64_t c) {
          return scale * VecMath::exp_nonpositive(static_cast<C>(x[c]) - lse);
        };
        const C hit = softmax(t) - direct - smooth * (pw != nullptr ? static_cast<C>(pw[t]) : C(1));
        if (pw != nullptr) {
#pragma omp simd
          for (std::int64_t c = 0; c < classes; ++c)
            dx[c] = static_cast<T>(softmax(c) - smooth * static_cast<C>(pw[c]));
        } else {
#pragma omp simd
          for (std::int64_t c = 0; c < classes; ++c) dx[c] = static_cast<T>(softmax(c) - smooth);
        }
        dx[t] = static_cast<T>(hit);
      }
    });
  });
}

}  // namespace

void add_loss_kernels(Backend& table) {
  table.cross_entropy = cross_entropy;
  table.cross_entropy_backward = cross_entropy_backward;
}

}  // namespace norma::cpu_kernels
