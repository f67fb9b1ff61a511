// The CUDA kernel of rotary positions against the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {

TEST_CASE("CUDA: rotary positions agree with the CPU in every dtype and layout") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  struct Extent {
    std::int64_t batch, heads, length, width, half;
  };
  for (const DType dtype : floating_dtypes)
    for (const Extent& e : {Extent{1, 1, 1, 2, 1}, Extent{2, 3, 33, 8, 4}, Extent{1, 2, 5, 70, 31},
                            Extent{2, 1, 7, 64, 8}, Extent{0, 2, 3, 4, 2}, Extent{1, 2, 3, 6, 0}})
      for (const bool interleaved : {false, true})
        for (const bool inverse : {false, true})
          for (const bool split : {false, true}) {
            INFO(dtype_name(dtype)
                 << " width " << e.width << " turns " << 2 * e.half
                 << (interleaved ? ", interleaved" : "") << (inverse ? ", inverse" : "")
                 << (split ? ", heads inside" : ""));
            check_devices(
                [&](const Device& device) {
                  // As heads come from a projection: [batch, length, heads, width].
                  const Shape shape = split ? Shape{e.batch, e.length, e.heads, e.width}
                                            : Shape{e.batch, e.heads, e.length, e.width};
                  const auto laid = [&](const Tensor& t) { return split ? t.transpose(1, 2) : t; };
                  const Tensor x = laid(placed(values(shape, dtype, 1), device, 1));
                  const Tensor out = laid(output(shape, dtype, device));
                  const DType statistic = accumulate_of(dtype);
                  backend(device).rope(x, placed(values({e.length, e.half}, statistic, 2), device),
                                       placed(values({e.length, e.half}, statistic, 3), device),
                                       interleaved, inverse, out);
                  return TensorList{out};
                },
                dtype, [](std::size_t) { return 2; });
          }
}

}  // namespace norma::test
