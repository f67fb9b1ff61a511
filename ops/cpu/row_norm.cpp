// Norms whose statistics are those of a row: one forward and one backward serve the whole family of
// RowNormParams. A new member is a new value of the parameters, not a new kernel.
#include "norma/ops/cpu/dropout_row.h"
#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/norm_row.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/stream.h"

#include <vector>

namespace norma::cpu_kernels {

namespace {

/// Gain and shift of one row: element i has those of column i / segment. Null: 1 and 0.
template <class C>
struct RowGain {
  const C* gain;
  const C* shift;
  std::int64_t segment;
};

/// scale * (weight_offset + weight) and scale * bias for all rows, in the accumulate type.
template <class T>
class GainTable {
 public:
  using C = accumulate_t<T>;

  /// `shape_of`: the tensor whose rows and columns count; undefined for one row of one column.
  GainTable(const Tensor& weight, const Tensor& bias, const Tensor& shape_of, std::int64_t width,
            const RowNormParams& p)
      : repeat_(p.weight_repeat) {
    if (shape_of.defined()) {
      rows_ = shape_of.size(0);
      columns_ = shape_of.size(1);
    }
    segment_ = width / std::max<std::int64_t>(columns_, 1);
    const C scale = static_cast<C>(p.scale);
    const C offset = static_cast<C>(p.weight_offset);
    if (weight.defined() || p.scale != 1.0)
      gain_ = fill(
          gains_, weight, offset == C(0) && scale == C(1),
          [=](C w) { return scale * (offset + w); }, scale);
    if (bias.defined())
      shift_ = fill(
          shifts_, bias, scale == C(1), [=](C b) { return scale * b; }, C(0));
  }

  RowGain<C> row(std::int64_t row) const {
    const std::int64_t first = rows_ == 1 ? 0 : row / repeat_ % rows_ * columns_;
    return {gain_ != nullptr ? gain_ + first : nullptr,
            shift_ != nullptr ? shift_ + first : nullptr, segment_};
  }
  /// Rows and columns of weight and bias.
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t segment() const { return segment_; }

 private:
  /// f of every element of `source`, or `absent` everywhere.
  template <class F>
  const C* fill(std::vector<C>& storage, const Tensor& source, bool as_it_is, const F& f,
                C absent) {
    if constexpr (std::is_same_v<T, C>)
      if (as_it_is && source.defined()) return source.data<T>();
    storage.assign(static_cast<std::size_t>(rows_ * columns_), absent);
    if (source.defined()) {
      const T* const values = source.data<T>();
      for (std::size_t i = 0; i < storage.size(); ++i) storage[i] = f(static_cast<C>(values[i]));
    }
    return storage.data();
  }

  std::int64_t repeat_;
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
  std::int64_t segment_ = 1;
  std::vector<C> gains_;
  std::vector<C> shifts_;
  const C* gain_ = nullptr;
  const C* shift_ = nullptr;
};

// What becomes of h before gain and shift.
struct AsItIs {
  template <class C>
  C operator()(C h) const {
    return h;
  }
};
/// Llama's order of casts.
template <class T>
struct Rounded {
  template <class C>
  C operator()(C h) const {
    return static_cast<C>(static_cast<T>(h));
  }
};
/// AdaNorm.
template <class C>
struct Sloped {
  C slope;
  C operator()(C h) const { return h * (C(1) - slope * h); }
};

/// out = post((x - mean) * rstd) * gain + shift for `count` rows, one behind the other, that share
/// gain and shift. Out of line: among its callers' loops GCC runs out of registers.
template <bool centred, int count, class C, class T, class Post>
[[gnu::noinline]] void store_rows(const T* x, T* out, std::int64_t width,
                                  const RowStatistics<C>* statistics, const RowGain<C>& gain,
                                  const Post& post) {
  C centre[count], rstd[count], rest[count];
  for (int k = 0; k < count; ++k) {
    centre[k] = statistics[k].mean;
    rstd[k] = statistics[k].rstd;
    rest[k] = statistics[k].rest * rstd[k];
  }
  const C* const pg = gain.gain;
  const C* const ps = gain.shift;
  const auto loop = [=](std::int64_t begin, std::int64_t end, const auto& affine) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i)
      for (int k = 0; k < count; ++k) {
        const C v = static_cast<C>(x[k * width + i]);
        // In two steps: x - centre is exact, or nearly, where the mean is large beside the spread.
        const C h = centred ? (v - centre[k]) * rstd[k] - rest[k] : v * rstd[k];
        out[k * width + i] = static_cast<T>(affine(post(h), i));
      }
  };
  if (gain.segment == 1 || (pg == nullptr && ps == nullptr)) {
    if (pg != nullptr && ps != nullptr)
      loop(0, width, [=](C h, std::int64_t i) { return h * pg[i] + ps[i]; });
    else if (pg != nullptr)
      loop(0, width, [=](C h, std::int64_t i) { return h * pg[i]; });
    else if (ps != nullptr)
      loop(0, width, [=](C h, std::int64_t i) { return h + ps[i]; });
    else
      loop(0, width, [](C h, std::int64_t) { return h; });
    return;
  }
  for (std::int64_t column = 0; column * gain.segment < width; ++column) {
    const C g = pg != nullptr ? pg[column] : C(1);
    const C s = ps != nullptr ? ps[column] : C(0);
    loop(column * gain.segment, (column + 1) * gain.segment,
         [=](C h, std::int64_t) { return h * g + s; });
  }
}

/// sum = alpha * residual + dropout(x) for one row.
template <class T>
void add_residual(const T* x, const T* residual, std::int64_t first, std::int64_t width,
                  const RowNormParams& p, T* sum) {
  using C = accumulate_t<T>;
  const C alpha = static_cast<C>(p.alpha);
  if (p.dropout_p == 0.0) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      sum[i] = static_cast<T>(alpha * static_cast<C>(residual[i]) + static_cast<C>(x[i]));
    return;
  }
  const C keep_scale = p.dropout_p < 1.0 ? static_cast<C>(1.0 / (1.0 - p.dropout_p)) : C(0);
  for_each_kept(p.philox, p.dropout_p, first, width, [=](std::int64_t i, bool kept) {
    const C value = kept ? static_cast<C>(x[i]) * keep_scale : C(0);
    sum[i] = static_cast<T>(alpha * static_cast<C>(residual[i]) + value);
  });
}

template <class T>
void forward(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
             const RowNormParams& p, const Tensor& out, const Tensor& sum, const Tensor& mean,
             const Tensor& rstd) {
  using C = accumulate_t<T>;
  const std::int64_t width = x.size(1);
  const GainTable<T> gains(weight, bias, weight.defined() ? weight : bias, width, p);
  const RowKind kind = row_kind(p);
  const T* const px = x.data<T>();
  const T* const presidual = data_or_null<T>(residual);
  T* const po = out.data<T>();
  T* const psum = data_or_null<T>(sum);
  C* const pmean = data_or_null<C>(mean);
  C* const prstd = data_or_null<C>(rstd);
  const std::int64_t at_once = rows_at_once(width);
  parallel_for(x.size(0), 2 * width, [=, &gains, &p](std::int64_t begin, std::int64_t end) {
    std::vector<T> scratch(static_cast<std::size_t>(at_once * width));
    const RowStream<T> stream(po, width, x.numel(), scratch.data());
    for (std::int64_t first = begin; first < end; first += at_once) {
      const std::int64_t count = std::min(at_once, end - first);
      if (presidual != nullptr)
        for (std::int64_t at = first * width; at < (first + count) * width; at += width)
          add_residual(px + at, presidual + at, at, width, p, psum + at);
      const T* const rows = (presidual != nullptr ? psum : px) + first * width;
      RowStatistics<C> statistics[max_rows_at_once];
      statistics_of_rows(
          kind, [=](std::int64_t k) { return rows + k * width; }, count, width, p, statistics);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t row = first + k;
        RowStatistics<C>& s = statistics[k];
        if (pmean != nullptr) pmean[row] = s.mean + s.rest;
        if (prstd != nullptr) prstd[row] = s.rstd;
        if (kind == RowKind::compressed) s.mean = C(0);  // the sum: nothing to subtract
      }
      T* const target = stream.target(first);
      const auto store = [&]<int together>(std::int64_t k) {
        const RowStatistics<C>* const s = statistics + k;
        const T* const rx = rows + k * width;
        T* const ro = target + k * width;
        const RowGain<C> gain = gains.row(first + k);
        if (p.round_normalized)
          store_rows<true, together>(rx, ro, width, s, gain, Rounded<T>{});
        else if (p.detached_slope != 0.0)
          store_rows<true, together>(rx, ro, width, s, gain,
                                     Sloped<C>{static_cast<C>(p.detached_slope)});
        else if (p.centred)
          store_rows<true, together>(rx, ro, width, s, gain, AsItIs{});
        else
          store_rows<false, together>(rx, ro, width, s, gain, AsItIs{});
      };
      std::int64_t k = 0;
      if (gains.rows() == 1)
        for (; k + 2 <= count; k += 2) store.template operator()<2>(k);
      for (; k < count; ++k) store.template operator()<1>(k);
      stream.store(first, count);
    }
  });
}

/// The rows that share row w of the weight, in order: row(w, 0), row(w, 1), …
struct RowsOfWeight {
  std::int64_t weight_rows, repeat;
  std::int64_t row(std::int64_t w, std::int64_t j) const {
    return (j / repeat * weight_rows + w) * repeat + j % repeat;
  }
};

/// Adds dy h and dy of one row to the sums of its columns.
template <class C, class T, class Post>
[[gnu::always_inline]] inline void add_parameter_terms(const T* x, const T* dy, std::int64_t width,
                                                       std::int64_t segment, C mean, C r,
                                                       const Post& post, C* weight_sums,
                                                       C* bias_sums) {
  const auto bias_term = [=](std::int64_t i) { return static_cast<C>(dy[i]); };
  const auto weight_term = [=](std::int64_t i) {
    return static_cast<C>(dy[i]) * post((static_cast<C>(x[i]) - mean) * r);
  };
  if (segment == 1) {
    if (weight_sums != nullptr && bias_sums != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        weight_sums[i] += weight_term(i);
        bias_sums[i] += bias_term(i);
      }
    } else if (weight_sums != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) weight_sums[i] += weight_term(i);
    } else if (bias_sums != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) bias_sums[i] += bias_term(i);
    }
    return;
  }
  for (std::int64_t first = 0, column = 0; first < width; first += segment, ++column) {
    const auto from_first = [first](const auto& term) {
      return [term, first](std::int64_t i) { return term(first + i); };
    };
    if (weight_sums != nullptr) weight_sums[column] += row_sum<C>(segment, from_first(weight_term));
    if (bias_sums != nullptr) bias_sums[column] += row_sum<C>(segment, from_first(bias_term));
  }
}

/// The gradient by the normalized row: into `out` (T, or the accumulate type where more follows).
/// `scratch` holds a row.
template <class C, class T, class Out>
void gradient_of_row(RowKind kind, const T* x, const T* dy, std::int64_t width, C mean, C r,
                     const RowGain<C>& gain, const RowNormParams& p, C* scratch, Out* out) {
  const auto plain = [dy](std::int64_t i) { return static_cast<C>(dy[i]); };
  const auto by_kind = [=, &p](const auto& gradient) {
    if (kind == RowKind::centred)
      row_gradient<RowKind::centred, C>(x, width, mean, r, p, gradient, out);
    else
      row_gradient<RowKind::plain, C>(x, width, mean, r, p, gradient, out);
  };
  const C* const pg = gain.gain;
  const bool vector_gain = pg != nullptr && gain.segment == 1;
  if (kind != RowKind::compressed && p.detached_slope == 0.0) {
    if (pg == nullptr) return by_kind(plain);
    if (vector_gain)
      return by_kind([dy, pg](std::int64_t i) { return static_cast<C>(dy[i]) * pg[i]; });
  }
  // The rarer members meet in one loop each: g is written down first.
  for (std::int64_t first = 0; first < width; first += vector_gain ? width : gain.segment) {
    const std::int64_t last = vector_gain ? width : first + gain.segment;
    const C g = pg == nullptr ? C(1) : vector_gain ? C(0) : pg[first / gain.segment];
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i)
      scratch[i] = static_cast<C>(dy[i]) * (vector_gain ? pg[i] : g);
  }
  if (p.detached_slope != 0.0) {
    const C slope = static_cast<C>(p.detached_slope);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      scratch[i] *= C(1) - slope * ((static_cast<C>(x[i]) - mean) * r);
  }
  const C* const g = scratch;
  const auto written = [g](std::int64_t i) { return g[i]; };
  if (kind == RowKind::compressed)
    row_gradient<RowKind::compressed, C>(x, width, mean, r, p, written, out);
  else
    by_kind(written);
}

/// One of the rows whose gradients are written together.
template <class C>
struct GradientRow {
  C mean, r;
  RowGradient<C> sums;
};

/// dx of `count` rows, one behind the other, and what they add to the sums of their columns; both
/// in one pass, for x and dy are read once and the sums once for all rows.
template <RowKind kind, int count, class C, class T>
[[gnu::always_inline]] inline void finish_rows(const T* x, const T* dy, std::int64_t width,
                                               const C* gain, const GradientRow<C>* rows, T* dx,
                                               C* weight_sums, C* bias_sums) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    C weight_sum = weight_sums[i];
    C bias_sum = C(0);
    if constexpr (kind == RowKind::centred) bias_sum = bias_sums[i];
    for (int k = 0; k < count; ++k) {
      const auto [mean, r, sums] = rows[k];
      const C h = normalized<kind, C>(x + k * width, i, mean, r);
      const C d = static_cast<C>(dy[k * width + i]);
      // Not a mean of 0 that is read: in one form for all, the compiler rounds as in row_gradient.
      const C mean_g = kind == RowKind::centred ? sums.mean_g : C(0);
      dx[k * width + i] = static_cast<T>(r * ((d * gain[i] - mean_g) - h * sums.share));
      weight_sum += d * h;
      bias_sum += d;
    }
    weight_sums[i] = weight_sum;
    if constexpr (kind == RowKind::centred) bias_sums[i] = bias_sum;
  }
}

/// Rows begin … end - 1 of the two that matter most: LayerNorm with weight and bias, RMSNorm with
/// weight.
template <RowKind kind, class C, class T>
void gradient_of_rows(const T* x, const T* dy, std::int64_t begin, std::int64_t end,
                      std::int64_t width, const C* mean, const C* rstd, const C* gain,
                      const RowNormParams& p, const RowStream<T>& dx, C* weight_sums,
                      C* bias_sums) {
  const std::int64_t at_once = rows_at_once(width);
  for (std::int64_t first = begin; first < end; first += at_once) {
    const std::int64_t count = std::min(at_once, end - first);
    const T* const rx = x + first * width;
    const T* const rdy = dy + first * width;
    GradientRow<C> rows[max_rows_at_once];
    for (std::int64_t k = 0; k < count; ++k) {
      const C m = kind == RowKind::centred ? mean[first + k] : C(0);
      const C r = rstd[first + k];
      const T* const row_dy = rdy + k * width;
      rows[k] = {m, r,
                 row_gradient_sums<kind, C>(rx + k * width, width, m, r, p, [=](std::int64_t i) {
                   return static_cast<C>(row_dy[i]) * gain[i];
                 })};
    }
    T* const target = dx.target(first);
    std::int64_t k = 0;
    for (; k + 2 <= count; k += 2)
      finish_rows<kind, 2>(rx + k * width, rdy + k * width, width, gain, rows + k,
                           target + k * width, weight_sums, bias_sums);
    if (k < count)
      finish_rows<kind, 1>(rx + k * width, rdy + k * width, width, gain, rows + k,
                           target + k * width, weight_sums, bias_sums);
    dx.store(first, count);
  }
}

template <class T>
void backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
              const Tensor& dy, const Tensor& dsum, const RowNormParams& p, const Tensor& dx,
              const Tensor& dresidual, const Tensor& dweight, const Tensor& dbias) {
  using C = accumulate_t<T>;
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  const RowKind kind = row_kind(p);
  const GainTable<T> gains(weight, {}, weight.defined() ? weight : dbias, width, p);
  const T* const px = x.data<T>();
  const C* const pmean = data_or_null<C>(mean);
  const C* const prstd = rstd.data<C>();
  const T* const pdy = dy.data<T>();
  const T* const pdsum = data_or_null<T>(dsum);
  T* const pdx = data_or_null<T>(dx);
  T* const pdresidual = data_or_null<T>(dresidual);
  const bool sums = dweight.defined() || dbias.defined();
  const bool direct = pdsum == nullptr && pdresidual == nullptr && p.dropout_p == 0.0;

  const std::int64_t columns = gains.columns();
  const std::int64_t segment = gains.segment();
  const std::int64_t weight_rows = sums ? gains.rows() : 1;
  const RowsOfWeight order{weight_rows, sums ? p.weight_repeat : 1};
  const std::int64_t per_weight = weight_rows == 0 ? 0 : rows / weight_rows;
  const std::int64_t per_part = rows_per_part(rows, segment == 1 ? 8 : 1);
  const std::int64_t part_count = (per_weight + per_part - 1) / per_part;
  const auto parts_of = [=](const Tensor& wanted) {
    return std::vector<C>(
        wanted.defined() ? static_cast<std::size_t>(weight_rows * part_count * columns) : 0);
  };
  std::vector<C> weight_parts = parts_of(dweight);
  std::vector<C> bias_parts = parts_of(dbias);
  C* const weight_sums = dweight.defined() ? weight_parts.data() : nullptr;
  C* const bias_sums = dbias.defined() ? bias_parts.data() : nullptr;
  const C keep_scale = p.dropout_p < 1.0 ? static_cast<C>(1.0 / (1.0 - p.dropout_p)) : C(0);
  const C alpha = static_cast<C>(p.alpha);

  const C* const whole_gain = gains.rows() == 1 ? gains.row(0).gain : nullptr;
  const bool usual = direct && pdx != nullptr && whole_gain != nullptr && segment == 1 &&
                     weight_rows == 1 && weight_sums != nullptr && p.detached_slope == 0.0 &&
                     (kind == RowKind::centred ? bias_sums != nullptr
                                               : kind == RowKind::plain && bias_sums == nullptr &&
                                                     p.statistic_width == width);

  // What follows the gradient t of a normalized sum.
  const auto finish = [=, &p](std::int64_t row, C* t) {
    const std::int64_t first = row * width;
    if (pdsum != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) t[i] += static_cast<C>(pdsum[first + i]);
    }
    if (pdresidual != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) pdresidual[first + i] = static_cast<T>(alpha * t[i]);
    }
    if (pdx == nullptr) return;
    if (p.dropout_p == 0.0) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) pdx[first + i] = static_cast<T>(t[i]);
    } else {
      for_each_kept(p.philox, p.dropout_p, first, width, [=](std::int64_t i, bool kept) {
        pdx[first + i] = static_cast<T>(kept ? t[i] * keep_scale : C(0));
      });
    }
  };

  parallel_for(
      weight_rows * part_count, 4 * per_part * width,
      [=, &gains, &p](std::int64_t begin, std::int64_t end) {
        std::vector<C> buffer(static_cast<std::size_t>(2 * width));
        C* const scratch = buffer.data();
        C* const t = scratch + width;
        std::vector<T> dx_scratch(static_cast<std::size_t>(rows_at_once(width) * width));
        const RowStream<T> dx_stream(pdx, width, rows * width, dx_scratch.data());
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t w = task / part_count;
          const std::int64_t part = task % part_count;
          const std::int64_t last = std::min(per_weight, (part + 1) * per_part);
          if (usual) {
            const auto run = [&]<RowKind which>() {
              gradient_of_rows<which, C>(
                  px, pdy, part * per_part, last, width, pmean, prstd, whole_gain, p, dx_stream,
                  weight_sums + task * columns,
                  bias_sums != nullptr ? bias_sums + task * columns : nullptr);
            };
            if (kind == RowKind::centred)
              run.template operator()<RowKind::centred>();
            else
              run.template operator()<RowKind::plain>();
            continue;
          }
          for (std::int64_t j = part * per_part; j < last; ++j) {
            const std::int64_t row = order.row(w, j);
            const T* const rx = px + row * width;
            const T* const rdy = pdy + row * width;
            const C r = prstd[row];
            const C m = pmean != nullptr ? pmean[row] : C(0);
            const RowGain<C> gain = gains.row(row);
            if (direct && pdx != nullptr) {
              gradient_of_row(kind, rx, rdy, width, m, r, gain, p, scratch, pdx + row * width);
            } else if (!direct && (pdx != nullptr || pdresidual != nullptr)) {
              gradient_of_row(kind, rx, rdy, width, m, r, gain, p, scratch, t);
              finish(row, t);
            }
            C* const row_weight_sums =
                weight_sums != nullptr ? weight_sums + task * columns : nullptr;
            C* const row_bias_sums = bias_sums != nullptr ? bias_sums + task * columns : nullptr;
            const C centre = kind == RowKind::centred ? m : C(0);
            if (p.detached_slope == 0.0)
              add_parameter_terms<C>(rx, rdy, width, segment, centre, r, AsItIs{}, row_weight_sums,
                                     row_bias_sums);
            else
              add_parameter_terms<C>(rx, rdy, width, segment, centre, r,
                                     Sloped<C>{static_cast<C>(p.detached_slope)}, row_weight_sums,
                                     row_bias_sums);
          }
        }
      });

  const auto finalize = [&](const std::vector<C>& parts, const Tensor& out) {
    if (!out.defined()) return;
    const C* const from = parts.data();
    T* const to = out.data<T>();
    const C scale = static_cast<C>(p.scale);
    parallel_for(weight_rows * columns, part_count, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const C* const first = from + i / columns * part_count * columns + i % columns;
        C sum = 0;
        for (std::int64_t part = 0; part < part_count; ++part) sum += first[part * columns];
        to[i] = static_cast<T>(scale * sum);
      }
    });
  };
  finalize(weight_parts, dweight);
  finalize(bias_parts, dbias);
}

void row_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
              const RowNormParams& p, const Tensor& out, const Tensor& sum, const Tensor& mean,
              const Tensor& rstd) {
  visit_floating(x.dtype(), "row_norm", [&]<class T>(TypeTag<T>) {
    forward<T>(x, residual, weight, bias, p, out, sum, mean, rstd);
  });
}

void row_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& rstd, const Tensor& dy, const Tensor& dsum,
                       const RowNormParams& p, const Tensor& dx, const Tensor& dresidual,
                       const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "row_norm_backward", [&]<class T>(TypeTag<T>) {
    backward<T>(x, weight, mean, rstd, dy, dsum, p, dx, dresidual, dweight, dbias);
  });
}

}  // namespace

void add_row_norm_kernels(Backend& table) {
  table.row_norm = row_norm;
  table.row_norm_backward = row_norm_backward;
}

}  // namespace norma::cpu_kernels
