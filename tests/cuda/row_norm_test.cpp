// The row norms' CUDA kernels against the CPU's, over the shapes at which norms of other frameworks
// were wrong, every option of the family, and every order of threads.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

/// One call of the kernels. Undefined where absent.
struct Case {
  std::string label = {};
  std::int64_t rows = 0, width = 0;
  std::int64_t weight_rows = 1;
  std::int64_t columns = 0;  ///< of the weight; 0: the width
  RowNormParams params = {};
  bool weight = true, bias = true, residual = false, dsum = false;
  double low = -1.0, high = 1.0;  ///< range of x
  std::int64_t offset = 0;        ///< elements by which x lies off its alignment
};

struct Inputs {
  Tensor x, residual, weight, bias, dy, dsum;
};
struct Outputs {
  Tensor out, sum, mean, rstd, dx, dresidual, dweight, dbias;
  TensorList list() const { return {out, sum, mean, rstd, dx, dresidual, dweight, dbias}; }
};
constexpr const char* output_names[] = {"out", "sum",       "mean",    "rstd",
                                        "dx",  "dresidual", "dweight", "dbias"};

RowNormParams layer_norm_params(double eps = 0.1) { return {.centred = true, .eps = eps}; }
RowNormParams rms_norm_params() { return {.eps = 1e-3}; }

/// Fills in what follows from the width.
RowNormParams completed(const Case& c) {
  RowNormParams p = c.params;
  if (p.statistic_width == 0) p.statistic_width = c.width;
  if (p.divisor == 1.0) p.divisor = static_cast<double>(p.statistic_width);
  return p;
}

Inputs inputs_of(const Case& c, DType dtype) {
  const std::int64_t columns = c.columns == 0 ? c.width : c.columns;
  const auto make = [&](bool wanted, const Shape& shape, std::uint64_t seed, double low = -1.0,
                        double high = 1.0) {
    return wanted ? converted(random(shape, seed, low, high), dtype) : Tensor();
  };
  const Shape rows{c.rows, c.width};
  const Shape affine{c.weight_rows, columns};
  return {make(true, rows, 1, c.low, c.high),
          make(c.residual, rows, 2),
          make(c.weight, affine, 3, 0.5, 1.5),
          make(c.bias, affine, 4),
          make(true, rows, 5),
          make(c.dsum, rows, 6)};
}

Tensor blank(const Tensor& like, const Device& device, bool wanted = true,
             std::int64_t offset = 0) {
  return wanted && like.defined() ? placed(like.detach(), device, offset) : Tensor();
}

Outputs run(const Case& c, const Inputs& in, const Device& device) {
  const RowNormParams p = completed(c);
  const auto on = [&](const Tensor& t) { return placed(t, device, c.offset); };
  const Tensor x = on(in.x), residual = on(in.residual), weight = on(in.weight), bias = on(in.bias),
               dy = on(in.dy), dsum = on(in.dsum);
  const TensorOptions statistic{.dtype = in.x.dtype() == float64 ? float64 : float32,
                                .device = device};
  Outputs o;
  o.out = blank(in.x, device, true, c.offset);
  o.sum = blank(in.x, device, c.residual, c.offset);
  if (p.centred || p.compressed) o.mean = empty({c.rows}, statistic);
  o.rstd = empty({c.rows}, statistic);
  o.dx = blank(in.x, device, true, c.offset);
  o.dresidual = blank(in.x, device, c.residual, c.offset);
  o.dweight = blank(in.weight, device);
  o.dbias = blank(in.bias, device);
  const Backend& kernels = backend(device);
  kernels.row_norm(x, residual, weight, bias, p, o.out, o.sum, o.mean, o.rstd);
  kernels.row_norm_backward(c.residual ? o.sum : x, weight, o.mean, o.rstd, dy, dsum, p, o.dx,
                            o.dresidual, o.dweight, o.dbias);
  return o;
}

void check_case(const Case& c, DType dtype) {
  INFO(c.label << " " << c.rows << " x " << c.width << " " << dtype_name(dtype));
  const Inputs in = inputs_of(c, dtype);
  const TensorList expected = run(c, in, cpu).list();
  const TensorList actual = run(c, in, cuda(0)).list();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(output_names[i]);
    const bool over_rows = i >= 6;
    const double scale = std::max(std::abs(c.low), std::abs(c.high));
    Tolerance tolerance =
        tolerance_of(dtype, over_rows ? c.rows * (c.columns == 0 ? 1 : c.width) : c.width);
    if (i == 2) tolerance.atol *= scale;  // a mean has the size of x
    // Rows that do not stay in registers are normalized with the mean as it is rounded.
    if (scale > 1.0) tolerance.atol += scale * (dtype == float64 ? 2.3e-16 : 1.2e-7);
    CHECK(allclose(actual[i], expected[i], tolerance));
  }
}

}  // namespace

TEST_CASE("CUDA: LayerNorm and RMSNorm agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, width] : kernel_shapes) {
      check_case(
          {.label = "layer_norm", .rows = rows, .width = width, .params = layer_norm_params()},
          dtype);
      check_case({.label = "rms_norm",
                  .rows = rows,
                  .width = width,
                  .params = rms_norm_params(),
                  .bias = false},
                 dtype);
    }
}

TEST_CASE("CUDA: norms of many rows") {
  if (!has_device()) return;
  check_case({.label = "layer_norm", .rows = 65537, .width = 3, .params = layer_norm_params()},
             float32);
  check_case(
      {.label = "rms_norm", .rows = 65537, .width = 9, .params = rms_norm_params(), .bias = false},
      bfloat16);
}

TEST_CASE("CUDA: norms without rows write zeros for the gradients of their parameters") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    check_case({.label = "no rows", .rows = 0, .width = 4, .params = layer_norm_params()}, dtype);
  check_case({.label = "no width",
              .rows = 3,
              .width = 0,
              .params = layer_norm_params(),
              .weight = false,
              .bias = false},
             float32);
}

TEST_CASE("CUDA: norms take tensors at any address") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t offset : {1, 2, 3})
      for (const std::int64_t width : {64, 254, 768})
        check_case({.label = "offset",
                    .rows = 5,
                    .width = width,
                    .params = layer_norm_params(),
                    .offset = offset},
                   dtype);
}

TEST_CASE("CUDA: the variance survives a mean of 10000 and constant rows") {
  if (!has_device()) return;
  for (const std::int64_t width : {3, 33, 256, 768, 8192, 20000})
    check_case({.label = "large mean",
                .rows = 2,
                .width = width,
                .params = layer_norm_params(),
                .bias = false,
                .low = 9998.0,
                .high = 10002.0},
               float64);
  const Case c{.label = "large mean", .rows = 3, .width = 20000, .params = layer_norm_params(1e-5)};
  for (const std::int64_t width : {256, 8192, 20000}) {
    Case wide = c;
    wide.width = width;
    Inputs in = inputs_of(wide, float32);
    in.x = converted(random({3, width}, 1, 9998.0, 10002.0), float32);
    const Tensor exact = run(wide,
                             {converted(in.x, float64),
                              {},
                              converted(in.weight, float64),
                              converted(in.bias, float64),
                              converted(in.dy, float64),
                              {}},
                             cpu)
                             .out;
    // A mean rounded to float32 is wrong by up to 5e-4: its rest must be taken off, too.
    CHECK(allclose(run(wide, in, cuda(0)).out, exact, {1e-5, 1e-5}));
    in.x = full({3, width}, 10000.0);
    const Outputs constant = run(wide, in, cuda(0));
    CHECK(allclose(constant.out, run(wide, in, cpu).out, {1e-5, 1e-5}));
  }
}

TEST_CASE("CUDA: every option of the row norms") {
  if (!has_device()) return;
  std::vector<Case> cases;
  const auto add = [&](const std::string& label, Case c) {
    c.label = label;
    for (const std::int64_t width : {12, 96, 768, 4200, 8200}) {
      c.width = width;
      c.rows = width > 700 ? 4 : 12;
      cases.push_back(c);
    }
  };
  const RowNormParams ln = layer_norm_params(), rms = rms_norm_params();
  const auto with = [](RowNormParams p, auto change) {
    change(p);
    return p;
  };
  using P = RowNormParams;
  add("no weight, no bias", {.params = ln, .weight = false, .bias = false});
  add("bias only", {.params = ln, .weight = false});
  add("weight only", {.params = ln, .bias = false});
  add("residual",
      {.params = with(ln, [](P& p) { p.alpha = 0.7; }), .residual = true, .dsum = true});
  add("residual and dropout",
      {.params = with(rms,
                      [](P& p) {
                        p.alpha = 1.3, p.dropout_p = 0.3, p.philox = {7, 11};
                      }),
       .bias = false,
       .residual = true,
       .dsum = true});
  add("unit offset", {.params = with(rms, [](P& p) { p.weight_offset = 1.0; }), .bias = false});
  add("scale", {.params = with(ln, [](P& p) { p.scale = 0.5; })});
  add("outside", {.params = with(rms, [](P& p) { p.eps_rule = EpsRule::outside; })});
  add("floor", {.params = with(rms, [](P& p) { p.eps_rule = EpsRule::floor; })});
  add("floor above the root",
      {.params = with(rms, [](P& p) { p.eps_rule = EpsRule::floor, p.eps = 5.0; })});
  add("partial", {.params = with(rms, [](P& p) { p.statistic_width = 5; })});
  add("compressed", {.params = with(rms, [](P& p) { p.compressed = true, p.divisor = 13.0; })});
  add("AdaNorm",
      {.params = with(ln, [](P& p) { p.detached_slope = 0.1; }), .weight = false, .bias = false});
  add("sum of squares", {.params = with(rms, [](P& p) { p.divisor = 1.0 + 1e-12; })});
  add("one gain", {.columns = 1, .params = rms, .bias = false});
  add("channels", {.columns = 4, .params = ln});
  add("heads", {.weight_rows = 4, .params = rms, .bias = false});
  add("modulated", {.weight_rows = 2,
                    .params = with(ln, [](P& p) { p.weight_repeat = 2, p.weight_offset = 1.0; })});
  add("groups", {.weight_rows = 2, .columns = 2, .params = ln});
  for (const Case& c : cases) check_case(c, float32);
  for (const Case& c : cases)
    if (c.width == 96) check_case(c, bfloat16);
}

TEST_CASE("CUDA: Llama rounds before the weight") {
  if (!has_device()) return;
  const Case c{
      .rows = 4, .width = 96, .params = {.eps = 1e-3, .round_normalized = true}, .bias = false};
  const Inputs in = inputs_of(c, bfloat16);
  CHECK(allclose(run(c, in, cuda(0)).out, run(c, in, cpu).out, {8e-3, 8e-3}));
  Case unrounded = c;
  unrounded.params.round_normalized = false;
  CHECK_FALSE(bitwise_equal(run(c, in, cuda(0)).out, run(unrounded, in, cuda(0)).out));
}

TEST_CASE("CUDA: gradients that nobody wants are not computed") {
  if (!has_device()) return;
  for (const std::int64_t width : {96, 6000}) {
    const Case c{.rows = 5, .width = width, .params = layer_norm_params()};
    const Inputs in = inputs_of(c, float32);
    const Outputs all = run(c, in, cpu);
    const auto on = [](const Tensor& t) { return placed(t, cuda(0)); };
    RowNormParams p = completed(c);
    const auto backward = [&](const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
      backend(cuda(0)).row_norm_backward(on(in.x), on(in.weight), on(all.mean), on(all.rstd),
                                         on(in.dy), Tensor(), p, dx, Tensor(), dweight, dbias);
    };
    const Tensor dx = on(in.x), dweight = on(in.weight), dbias = on(in.bias);
    backward(dx, {}, {});
    CHECK(allclose(dx, all.dx, {1e-5, 1e-5}));
    backward({}, dweight, {});
    CHECK(allclose(dweight, all.dweight, {1e-5, 1e-5}));
    backward({}, {}, dbias);
    CHECK(allclose(dbias, all.dbias, {1e-5, 1e-5}));
  }
}

TEST_CASE("CUDA: norms repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  using P = RowNormParams;
  P general = layer_norm_params();
  general.detached_slope = 0.1;
  for (const std::int64_t width : {3, 33, 64, 768, 4200, 8200})
    for (const P& params : {layer_norm_params(), rms_norm_params(), general}) {
      const Case c{.rows = width > 700 ? 2 : 70, .width = width, .params = params};
      const Inputs in = inputs_of(c, float32);
      const TensorList first = run(c, in, cuda(0)).list();
      for (const emulator::Schedule& schedule : emulator::all_schedules(1)) {
        const emulator::ScheduleGuard guard(schedule);
        const TensorList again = run(c, in, cuda(0)).list();
        for (std::size_t i = 0; i < first.size(); ++i) {
          INFO(width << " " << output_names[i]);
          CHECK(bitwise_equal(again[i], first[i]));
        }
      }
    }
}

}  // namespace norma::test
