// Backend: the table of kernels that a device must provide. This is the one place that lists them.
//
// The front door of an operation (ops/*.cpp) validates, allocates the outputs and makes inputs
// contiguous; a kernel assumes all that and only computes. Where a slot says "strided", any strides
// come (0 for broadcast dimensions). Statistics and sums are float32 inside for float32 and 16-bit
// types, float64 for float64 ("accumulate type"). Results do not depend on the number of threads
// except through the matrix product library. An undefined tensor stands for an absent option; an
// undefined output means that nobody wants it.
#pragma once

#include "norma/core/random.h"
#include "norma/core/tensor.h"
#include "norma/ops/norm_params.h"
#include "norma/ops/op_codes.h"

#include <type_traits>

namespace norma {

/// One slot of the table. Calling an empty slot throws NotImplementedError with its name.
template <class Signature>
class Kernel;
template <class Result, class... Args>
class Kernel<Result(Args...)> {
 public:
  explicit Kernel(const char* name) : name_(name) {}
  Kernel& operator=(Result (*function)(Args...)) {
    function_ = function;
    return *this;
  }
  explicit operator bool() const { return function_ != nullptr; }
  template <class... Given>
  Result operator()(Given&&... args) const {
    check<NotImplementedError>(
        function_ != nullptr, name_,
        "the device must provide this kernel; got a backend without it; move the "
        "tensors with .to(cpu)");
    return function_(std::forward<Given>(args)...);
  }

 private:
  const char* name_;
  Result (*function_)(Args...) = nullptr;
};

/// Attention of query [B, Hq, Lq, D] over key and value [B, Hkv, Lk, D], Hq a multiple of Hkv.
struct AttentionParams {
  double scale = 1.0;
  double softcap = 0.0;     ///< cap * tanh(score / cap) before the mask; 0: off
  double dropout_p = 0.0;   ///< on the probabilities
  bool causal = false;      ///< query i sees keys j <= i
  PhiloxState philox = {};  ///< word ((b * Hq + h) * Lq + i) * Lk + j decides element (i, j)
};

struct AdamWParams {
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;  ///< counts from 1
  bool maximize;
};
struct SgdParams {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first_step;  ///< momentum buffers are still empty
};

struct Backend {
  using T = const Tensor&;
  using List = const TensorList&;
  using I = std::int64_t;
  // clang-format off

  // -- memory and random numbers (core/required_ops.h) -----------------------------------------------
  Kernel<void(T out, double value)> fill{"fill"};
  /// Strided, converts dtypes; both on this device.
  Kernel<void(T out, T source)> copy{"copy"};
  /// This device from and to the CPU; contiguous, one dtype. The CPU itself has none.
  Kernel<void(T out, T source)> copy_from_cpu{"copy_from_cpu"};
  Kernel<void(T out, T source)> copy_to_cpu{"copy_to_cpu"};
  Kernel<void(T out, PhiloxState state, double low, double high)> uniform{"uniform"};
  Kernel<void(T out, PhiloxState state, double mean, double std)> normal{"normal"};
  Kernel<void(T out, PhiloxState state, I low, I high)> randint{"randint"};
  Kernel<bool(T x)> all_finite{"all_finite"};

  // -- elementwise ------------------------------------------------------------------------------------
  Kernel<void(UnaryOp op, T x, T out)> unary{"unary"};
  /// dx = dy * f'(x), from x and y = f(x); an op uses whichever it needs (both are always defined).
  Kernel<void(UnaryOp op, T x, T y, T dy, T dx)> unary_backward{"unary_backward"};
  /// a, b strided, of one dtype, expanded to out's shape; out is bool for comparisons and logic.
  Kernel<void(BinaryOp op, T a, T b, T out)> binary{"binary"};
  /// out = x op scalar, or scalar op x when `reversed`.
  Kernel<void(BinaryOp op, T x, double scalar, bool reversed, T out)> binary_scalar{"binary_scalar"};
  Kernel<void(T x, double min, double max, T out)> clamp{"clamp"};
  /// Strided; condition bool.
  Kernel<void(T condition, T a, T b, T out)> where{"where"};
  /// out += alpha * x.
  Kernel<void(T out, T x, double alpha)> add_scaled{"add_scaled"};
  /// out = silu(gate) * up, and its gradients.
  Kernel<void(T gate, T up, T out)> swiglu{"swiglu"};
  Kernel<void(T gate, T up, T dy, T dgate, T dup)> swiglu_backward{"swiglu_backward"};
  /// out = x / (1 - p) where uniform(word i of state) >= p, else 0. Its own backward.
  Kernel<void(T x, double p, PhiloxState state, T out)> dropout{"dropout"};

  // -- reductions of x seen as [outer, reduced, inner] ---------------------------------------------------
  Kernel<void(ReduceOp op, T x, I outer, I reduced, I inner, T out)> reduce{"reduce"};
  /// First index of the largest or smallest value; out int64.
  Kernel<void(bool largest, T x, I outer, I reduced, I inner, T out)> argreduce{"argreduce"};
  Kernel<void(T x, I outer, I length, I inner, bool reverse, T out)> cumsum{"cumsum"};
  /// Mean and biased variance, two passes; accumulate type.
  Kernel<void(T x, I outer, I reduced, I inner, T mean, T variance)> mean_variance{"mean_variance"};

  // -- matrix products ----------------------------------------------------------------------------------
  /// c = alpha * op(a) op(b) + beta * c for row-major [batch, rows, columns]; a batch of 1 is shared. Columns have
  /// stride 1; rows (by at least their length) and matrices may lie apart. Floating-point and integer types.
  Kernel<void(bool transpose_a, bool transpose_b, double alpha, T a, T b, double beta, T c)> gemm{"gemm"};
  /// y[M, N] = activation(x[M, K] w[N, K]^T + bias[N]); `pre` [M, N] receives the value before it.
  Kernel<void(T x, T weight, T bias, Activation activation, T pre, T out)> linear{"linear"};
  /// dx, dweight, dbias from dy; `pre` as kept by the forward, undefined without activation.
  Kernel<void(T x, T weight, T pre, Activation activation, T dy, T dx, T dweight, T dbias)> linear_backward{"linear_backward"};

  // -- attention: keeps only out and the log-sum-exp [B, Hq, Lq] (accumulate type) --------------------------
  /// q, k, v, out, dout, dq, dk, dv: strided with stride 1 in the last dimension (heads split from a projection come
  /// uncopied); v and out may have another head width than q and k. logsumexp contiguous.
  /// `mask`: added to the scores, strided, expanded to [B, Hq, Lq, Lk], dtype of q; `key_padding_mask`
  /// [B, Lk] bool, true = ignore this key. Each may be undefined. A row that sees no key gives zeros.
  Kernel<void(T q, T k, T v, T mask, T key_padding_mask, const AttentionParams& params, T out, T logsumexp)> attention{"attention"};
  Kernel<void(T q, T k, T v, T mask, T key_padding_mask, const AttentionParams& params, T out, T logsumexp, T dout, T dq, T dk, T dv)> attention_backward{"attention_backward"};

  // -- rows: x [rows, width] ------------------------------------------------------------------------------
  Kernel<void(T x, bool log, T out)> softmax{"softmax"};
  Kernel<void(T y, T dy, bool log, T dx)> softmax_backward{"softmax_backward"};
  /// loss and log-sum-exp [rows] (accumulate type) of logits [rows, classes]; target [rows] int64;
  /// weight [classes] or undefined; rows with target == ignore_index give 0.
  Kernel<void(T logits, T target, T weight, I ignore_index, double label_smoothing, T loss, T logsumexp)> cross_entropy{"cross_entropy"};
  /// dlogits = dloss[row] * d loss[row] / d logits.
  Kernel<void(T logits, T target, T weight, I ignore_index, double label_smoothing, T logsumexp, T dloss, T dlogits)> cross_entropy_backward{"cross_entropy_backward"};

  // -- norms: x [rows, width]; mean, rstd [rows] (accumulate type) ----------------------------------------------
  /// The row norms (ops/norm_params.h says which). `residual` is undefined, or of x's shape: then `sum` gets what is
  /// normalized. mean [rows]: of centred norms; of compressed ones the sum of x; else undefined. rstd [rows]: 1 / D.
  Kernel<void(T x, T residual, T weight, T bias, const RowNormParams& p, T out, T sum, T mean, T rstd)> row_norm{"row_norm"};
  /// x: what was normalized (`sum` where there was a residual); dsum: gradient of `sum`, or undefined. All but x, rstd, dy
  /// may be undefined. dweight and dbias are summed in the accumulate type in a fixed order; zeros without rows.
  Kernel<void(T x, T weight, T mean, T rstd, T dy, T dsum, const RowNormParams& p, T dx, T dresidual, T dweight, T dbias)> row_norm_backward{"row_norm_backward"};
  /// Two gains on one normalized row (parallel blocks): out1 = h * weight1 + bias1, out2 = h * weight2 + bias2; all
  /// [width]. Of p: centred, divisor, eps_rule, eps, weight_offset.
  Kernel<void(T x, T weight1, T bias1, T weight2, T bias2, const RowNormParams& p, T out1, T out2, T mean, T rstd)> dual_norm{"dual_norm"};
  Kernel<void(T x, T weight1, T weight2, T mean, T rstd, T dy1, T dy2, const RowNormParams& p, T dx, T dweight1, T dbias1, T dweight2, T dbias2)> dual_norm_backward{"dual_norm_backward"};
  /// PolyNorm: w0 n(x^3) + w1 n(x^2) + w2 n(x) + bias with n(u) = u / sqrt(mean(u^2) + eps); weight [3], bias [1];
  /// rstd [rows, 3] in the order of the weights.
  Kernel<void(T x, T weight, T bias, double eps, T out, T rstd)> poly_norm{"poly_norm"};
  Kernel<void(T x, T weight, T rstd, T dy, T dx, T dweight, T dbias)> poly_norm_backward{"poly_norm_backward"};

  // -- element-wise norms: x [rows, width] ------------------------------------------------------------------------
  /// out = curve(alpha x + shift) * weight + bias; alpha, shift [1] or undefined (1 and 0); weight, bias [C] with C a
  /// divisor of the width: element i takes column i / (width / C).
  Kernel<void(Squash curve, T x, T alpha, T shift, T weight, T bias, T out)> squash{"squash"};
  Kernel<void(Squash curve, T x, T alpha, T shift, T weight, T dy, T dx, T dalpha, T dshift, T dweight, T dbias)> squash_backward{"squash_backward"};
  /// out = cap * tanh(x / cap), and its gradient dy (1 - (y / cap)^2) from y.
  Kernel<void(T x, double cap, T out)> softcap{"softcap"};
  Kernel<void(T y, double cap, T dy, T dx)> softcap_backward{"softcap_backward"};

  // -- column norms: x [outer, channels, inner]; per-channel tensors [channels] in the accumulate type; mask [outer, inner]
  // bool, true = this position is left out of the statistics, or undefined ------------------------------------------------
  /// count [1]: positions that are not masked. mean and biased variance over them, two passes; with an undefined mean
  /// the variance gets the mean square. No positions: zeros.
  Kernel<void(T x, T mask, T mean, T variance, T count)> column_statistics{"column_statistics"};
  /// sum_dy = sum of dy, sum_dy_d = sum of dy (x - mean), over all positions (mean undefined: 0), fixed order.
  Kernel<void(T x, T mean, T dy, T sum_dy, T sum_dy_d)> column_sums{"column_sums"};
  /// out = [a dy +] k (b (x - mean) + c), k = 0 where masked, else 1; dy and a both defined or both not; mean may be undefined.
  Kernel<void(T x, T mask, T mean, T dy, T a, T b, T c, T out)> column_affine{"column_affine"};

  // -- indices: int64, validated ----------------------------------------------------------------------------
  /// Smallest and largest value of a non-empty index tensor: one pass validates it.
  Kernel<void(T index, I* low, I* high)> index_range{"index_range"};
  /// out[n] = table[index[n]] for rows of table.size(1).
  Kernel<void(T table, T index, T out)> embedding{"embedding"};
  /// dtable = sum of dy rows by index in a fixed order; rows of padding_idx (-1: none) are left out.
  Kernel<void(T dy, T index, I padding_idx, T dtable)> embedding_backward{"embedding_backward"};
  /// out[o, i, n] = x[o, index[o, i, n], n] over [outer, length, inner].
  Kernel<void(T x, T index, I outer, I inner, T out)> gather{"gather"};
  /// out[o, index[o, i, n], n] = (or +=) source[o, i, n], in the order of i.
  Kernel<void(T source, T index, I outer, I inner, bool add, T out)> scatter{"scatter"};

  // -- rotary positions: x, out [batch, heads, length, width], strided with stride 1 in the last dimension; cos, sin
  // [length, rotary / 2] contiguous, in the accumulate type ------------------------------------------------
  /// Rotates the pairs (i, i + rotary/2), or (2i, 2i + 1) when interleaved; `inverse` is the backward.
  Kernel<void(T x, T cos, T sin, bool interleaved, bool inverse, T out)> rope{"rope"};

  // -- optimizers: parallel lists; masters are copies of the parameters in the accumulate type, or the parameters themselves --
  /// Averages in the accumulate type. `grad_scale`: undefined, or a float32 or float64 scalar on this device that
  /// multiplies every gradient.
  Kernel<void(List params, List masters, List grads, List exp_avg, List exp_avg_sq, T grad_scale, const AdamWParams& p)> adamw{"adamw"};
  /// `momentum_buffers` in the accumulate type; an empty list without momentum.
  Kernel<void(List params, List masters, List grads, List momentum_buffers, T grad_scale, const SgdParams& p)> sgd{"sgd"};
  /// out (float32 or float64 scalar) = sqrt of the sum of squares over all tensors, in a fixed order.
  Kernel<void(List tensors, T out)> global_norm{"global_norm"};
  /// Every tensor times min(1, max_norm / (norm + 1e-6)); norm (float32 or float64) is read on the device.
  Kernel<void(List tensors, T norm, double max_norm)> clip_scale{"clip_scale"};
  /// averages (accumulate type) = decay * averages + (1 - decay) * params.
  Kernel<void(List averages, List params, double decay)> ema{"ema"};
  // clang-format on
};

/// The kernels of `device`; throws DeviceError where this build or machine has none.
const Backend& backend(const Device& device);
inline const Backend& backend(const Tensor& tensor) { return backend(tensor.device()); }
/// Registers the table of a device type (a backend does so when it starts). cpu: null is its own.
void set_backend(DeviceType type, const Backend* backend);
/// The table of the CPU (ops/cpu/backend.cpp).
const Backend& cpu_backend();

}  // namespace norma
