// What core asks of ops (core/required_ops.h), through the backend and the public operations.
#include "norma/core/required_ops.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

namespace norma::detail {

namespace {

/// `tensor` itself where it is contiguous, else a copy; off the tape.
Tensor packed(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  const Tensor out = empty_like(tensor);
  backend(tensor).copy(out, tensor);
  return out;
}

void copy_across_devices(const Tensor& out, const Tensor& source) {
  // The wire carries one dtype without gaps: convert and pack before it, unpack behind it.
  Tensor sent = source;
  if (sent.dtype() != out.dtype()) {
    sent = empty(source.shape(), {.dtype = out.dtype(), .device = source.device()});
    backend(source).copy(sent, source);
  }
  sent = packed(sent);
  const Tensor received = out.is_contiguous() ? out : empty_like(out);
  if (source.device().is_cpu()) {
    backend(out).copy_from_cpu(received, sent);
  } else if (out.device().is_cpu()) {
    backend(source).copy_to_cpu(received, sent);
  } else {
    const Tensor host = empty(out.shape(), {.dtype = out.dtype()});
    backend(source).copy_to_cpu(host, sent);
    backend(out).copy_from_cpu(received, host);
  }
  if (!received.is_same(out)) backend(out).copy(out, received);
}

/// 32-bit words that an operation takes from the stream for each element.
std::int64_t random_words(const Tensor& out) { return out.dtype() == float64 ? 2 : 1; }

/// Runs `kernel` on a contiguous tensor that stands for `out`.
template <class Write>
void write_packed(const Tensor& out, const Write& write) {
  if (out.is_contiguous()) {
    write(out);
    return;
  }
  const Tensor contiguous_out = empty_like(out);
  write(contiguous_out);
  backend(out).copy(out, contiguous_out);
}

}  // namespace

void fill(const Tensor& out, double value) {
  if (out.numel() == 0) return;
  write_packed(out, [&](const Tensor& target) { backend(out).fill(target, value); });
}

void copy(const Tensor& out, const Tensor& source) {
  if (out.numel() == 0) return;
  if (out.device() == source.device())
    backend(out).copy(out, source);
  else
    copy_across_devices(out, source);
}

void accumulate(const Tensor& out, const Tensor& other) {
  backend(out).add_scaled(out, other, 1.0);
}

void fill_uniform(const Tensor& out, double low, double high) {
  const PhiloxState state =
      default_generator(out.device()).reserve(out.numel() * random_words(out));
  write_packed(out, [&](const Tensor& to) { backend(out).uniform(to, state, low, high); });
}

void fill_normal(const Tensor& out, double mean, double std) {
  const PhiloxState state =
      default_generator(out.device()).reserve(out.numel() * random_words(out));
  write_packed(out, [&](const Tensor& to) { backend(out).normal(to, state, mean, std); });
}

void fill_randint(const Tensor& out, std::int64_t low, std::int64_t high) {
  const PhiloxState state = default_generator(out.device()).reserve(out.numel() * 2);
  write_packed(out, [&](const Tensor& to) { backend(out).randint(to, state, low, high); });
}

bool all_finite(const Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
  return backend(tensor).all_finite(packed(tensor));
}

bool any_nan(const Tensor& tensor) {
  const NoGradGuard no_grad;
  const DetectAnomalyGuard off(false);
  return norma::any(isnan(tensor)).item<bool>();
}

Tensor add(const Tensor& a, const Tensor& b) { return norma::add(a, b); }

Tensor sum_to_size(const Tensor& tensor, const Shape& shape) {
  return norma::sum_to_size(tensor, shape);
}

Tensor cast(const Tensor& tensor, DType dtype) { return norma::to(tensor, dtype); }

Tensor alias(const Tensor& tensor) { return norma::alias(tensor); }

}  // namespace norma::detail
