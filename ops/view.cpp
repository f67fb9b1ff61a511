#include "norma/ops/view.h"

#include <optional>

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"
#include "norma/ops/index.h"

namespace norma {

namespace {

using detail::make_view;

// -- shapes ---------------------------------------------------------------------------------------

/// Fills in the one -1 of `shape` so that it has `numel` elements.
Shape infer_shape(const Shape& shape, const Tensor& input, const char* op) {
  Shape sizes = shape;  // with 1 for the unknown one
  std::int64_t unknown = -1;
  for (std::int64_t d = 0; d < shape.size(); ++d) {
    check<ShapeError>(shape[d] >= -1, op,
                      "sizes must be at least 0, or -1 for one that is inferred; got {}", shape);
    if (shape[d] == -1) {
      check<ShapeError>(unknown == -1, op, "only one size can be inferred (-1); got {}", shape);
      unknown = d;
      sizes[d] = 1;
    }
  }
  const std::int64_t known = sizes.numel(op);
  const std::int64_t numel = input.numel();
  if (unknown >= 0) {
    check<ShapeError>(known != 0 && numel % known == 0, op,
                      "the {} elements of shape {} must divide evenly for the size -1; got {}",
                      numel, input.shape(), shape);
    sizes[unknown] = numel / known;
  } else {
    check<ShapeError>(known == numel, op,
                      "the new shape must hold all {} elements of shape {}; got {}, which holds {}",
                      numel, input.shape(), shape, known);
  }
  return sizes;
}

/// Strides under which `shape` shows the elements of `input` in the same order; nothing where no
/// strides do. Runs of input dimensions without gaps between them are cut up anew; source: ATen
/// computeStride.
std::optional<Shape> view_strides(const Tensor& input, const Shape& shape) {
  if (input.numel() == 0 || input.is_contiguous()) return contiguous_strides(shape);
  const Shape& old_shape = input.shape();
  const Shape& old_strides = input.strides();
  Shape strides = Shape::filled(shape.size(), 1);
  std::int64_t view_dim = shape.size() - 1;
  std::int64_t run_stride = old_strides.back();  // stride of the innermost element of the run
  std::int64_t run_numel = 1;
  std::int64_t view_numel = 1;
  for (std::int64_t d = old_shape.size() - 1; d >= 0; --d) {
    run_numel *= old_shape[d];
    const bool run_ends =
        d == 0 || (old_shape[d - 1] != 1 && old_strides[d - 1] != run_numel * run_stride);
    if (!run_ends) continue;
    while (view_dim >= 0 && (view_numel < run_numel || shape[view_dim] == 1)) {
      strides[view_dim] = view_numel * run_stride;
      view_numel *= shape[view_dim--];
    }
    if (view_numel != run_numel) return std::nullopt;
    if (d > 0) {
      run_stride = old_strides[d - 1];
      run_numel = view_numel = 1;
    }
  }
  if (view_dim != -1) return std::nullopt;
  return strides;
}

// -- operations on the tape -----------------------------------------------------------------------

struct Alias : Function<Alias> {
  static constexpr const char* name = "alias";
  static Tensor forward(Context& /*ctx*/, const Tensor& x) {
    return make_view(x, x.shape(), x.strides(), x.storage_offset());
  }
  static TensorList backward(Context& /*ctx*/, const Tensor& grad) { return {grad}; }
};

/// Base of the views whose gradient is a reshape back: sizes come and go, the order of elements
/// stays.
template <class Self>
struct Reshaping : Function<Self> {
  static Tensor forward(Context& ctx, const Tensor& x, const Shape& shape, const Shape& strides) {
    ctx.set("shape", x.shape());
    return make_view(x, shape, strides, x.storage_offset());
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {reshape(grad, ctx.get<Shape>("shape"))};
  }
};
struct View : Reshaping<View> {
  static constexpr const char* name = "view";
};
struct Squeeze : Reshaping<Squeeze> {
  static constexpr const char* name = "squeeze";
};
struct Unsqueeze : Reshaping<Unsqueeze> {
  static constexpr const char* name = "unsqueeze";
};

struct Permute : Function<Permute> {
  static constexpr const char* name = "permute";
  static Tensor forward(Context& ctx, const Tensor& x, const Shape& dims) {
    Shape inverse = dims;
    Shape shape = dims;
    Shape strides = dims;
    for (std::int64_t d = 0; d < dims.size(); ++d) {
      inverse[dims[d]] = d;
      shape[d] = x.shape()[dims[d]];
      strides[d] = x.strides()[dims[d]];
    }
    ctx.set("inverse", inverse);
    return make_view(x, shape, strides, x.storage_offset());
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {permute(grad, ctx.get<Shape>("inverse"))};
  }
};

struct Expand : Function<Expand> {
  static constexpr const char* name = "expand";
  static Tensor forward(Context& /*ctx*/, const Tensor& x, const Shape& shape) {
    const std::int64_t added = shape.size() - x.dim();
    Shape strides = Shape::filled(shape.size(), 0);
    for (std::int64_t d = 0; d < x.dim(); ++d)
      if (x.shape()[d] == shape[added + d]) strides[added + d] = x.strides()[d];
    return make_view(x, shape, strides, x.storage_offset());
  }
  // The engine sums over broadcast dimensions.
  static TensorList backward(Context& /*ctx*/, const Tensor& grad) { return {grad}; }
};

Tensor narrow_view(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  Shape shape = x.shape();
  shape[dim] = length;
  return make_view(x, shape, x.strides(), x.storage_offset() + start * x.strides()[dim]);
}

struct Narrow : Function<Narrow> {
  static constexpr const char* name = "narrow";
  static Tensor forward(Context& ctx, const Tensor& x, std::int64_t dim, std::int64_t start,
                        std::int64_t length) {
    ctx.set("dim", dim);
    ctx.set("start", start);
    ctx.set("size", x.shape()[dim]);
    return narrow_view(x, dim, start, length);
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {zero_embed(grad, ctx.get<std::int64_t>("dim"), ctx.get<std::int64_t>("start"),
                       ctx.get<std::int64_t>("size"))};
  }
};

struct ZeroEmbed : Function<ZeroEmbed> {
  static constexpr const char* name = "zero_embed";
  static Tensor forward(Context& ctx, const Tensor& x, std::int64_t dim, std::int64_t start,
                        std::int64_t size) {
    ctx.set("dim", dim);
    ctx.set("start", start);
    ctx.set("length", x.shape()[dim]);
    Shape shape = x.shape();
    shape[dim] = size;
    const Tensor out = zeros(shape, {.dtype = x.dtype(), .device = x.device()});
    detail::copy(narrow_view(out, dim, start, x.shape()[dim]), x);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {narrow(grad, ctx.get<std::int64_t>("dim"), ctx.get<std::int64_t>("start"),
                   ctx.get<std::int64_t>("length"))};
  }
};

struct Split : Function<Split> {
  static constexpr const char* name = "split";
  static TensorList forward(Context& ctx, const Tensor& x, const std::vector<std::int64_t>& sizes,
                            std::int64_t dim) {
    ctx.set("dim", dim);
    TensorList pieces;
    std::int64_t start = 0;
    for (const std::int64_t size : sizes) {
      pieces.push_back(narrow_view(x, dim, start, size));
      start += size;
    }
    return pieces;
  }
  static TensorList backward(Context& ctx, const TensorList& grads) {
    return {cat(grads, ctx.get<std::int64_t>("dim"))};
  }
};

struct Unbind : Function<Unbind> {
  static constexpr const char* name = "unbind";
  static TensorList forward(Context& ctx, const Tensor& x, std::int64_t dim) {
    ctx.set("dim", dim);
    Shape shape = x.shape();
    Shape strides = x.strides();
    shape.erase(dim);
    strides.erase(dim);
    TensorList slices;
    for (std::int64_t i = 0; i < x.shape()[dim]; ++i)
      slices.push_back(make_view(x, shape, strides, x.storage_offset() + i * x.strides()[dim]));
    return slices;
  }
  static TensorList backward(Context& ctx, const TensorList& grads) {
    return {stack(grads, ctx.get<std::int64_t>("dim"))};
  }
};

Tensor copy_of(const Tensor& x) {
  Tensor out = empty_like(x);
  detail::copy(out, x);
  return out;
}

struct Contiguous : Function<Contiguous> {
  static constexpr const char* name = "contiguous";
  static Tensor forward(Context& /*ctx*/, const Tensor& x) { return copy_of(x); }
  static TensorList backward(Context& /*ctx*/, const Tensor& grad) { return {grad}; }
};

struct Clone : Function<Clone> {
  static constexpr const char* name = "clone";
  static Tensor forward(Context& /*ctx*/, const Tensor& x) { return copy_of(x); }
  static TensorList backward(Context& /*ctx*/, const Tensor& grad) { return {grad}; }
};

void check_has_dims(const Tensor& input, const char* op) {
  check<ShapeError>(input.dim() > 0, op,
                    "needs at least one dimension; got a scalar; unsqueeze(0) it");
}

}  // namespace

Tensor alias(const Tensor& input) { return Alias::apply(input); }

Tensor view(const Tensor& input, const Shape& shape) {
  const Shape sizes = infer_shape(shape, input, "view");
  const std::optional<Shape> strides = view_strides(input, sizes);
  check<ShapeError>(
      strides.has_value(), "view",
      "the new shape must be a cut of the strides without a copy; got shape {} for strides {} "
      "(shape {}); use reshape",
      sizes, input.strides(), input.shape());
  return View::apply(input, sizes, *strides);
}

Tensor reshape(const Tensor& input, const Shape& shape) {
  const Shape sizes = infer_shape(shape, input, "reshape");
  if (sizes == input.shape() && !GradMode::is_enabled()) return input;
  if (const std::optional<Shape> strides = view_strides(input, sizes))
    return View::apply(input, sizes, *strides);
  return View::apply(contiguous(input), sizes, contiguous_strides(sizes));
}

Tensor flatten(const Tensor& input, std::int64_t start_dim, std::int64_t end_dim) {
  const std::int64_t start = normalize_dim(start_dim, input.dim(), "flatten");
  const std::int64_t end = normalize_dim(end_dim, input.dim(), "flatten");
  check<ValueError>(start <= end, "flatten", "start_dim must not come after end_dim; got {} and {}",
                    start_dim, end_dim);
  if (input.dim() == 0) return reshape(input, {1});
  Shape shape;
  std::int64_t merged = 1;
  for (std::int64_t d = 0; d < input.dim(); ++d) {
    if (d >= start && d <= end) merged *= input.shape()[d];
    if (d == end) shape.push_back(merged);
    if (d < start || d > end) shape.push_back(input.shape()[d]);
  }
  return reshape(input, shape);
}

Tensor permute(const Tensor& input, const Shape& dims) {
  check<ShapeError>(dims.size() == input.dim(), "permute",
                    "dims must name each of the {} dimensions once; got {}", input.dim(), dims);
  Shape order = dims;
  Shape seen = Shape::filled(dims.size(), 0);
  for (std::int64_t& dim : order) {
    dim = normalize_dim(dim, input.dim(), "permute");
    check<ValueError>(seen[dim]++ == 0, "permute",
                      "dims must name each of the {} dimensions once; got {}", input.dim(), dims);
  }
  return Permute::apply(input, order);
}

Tensor transpose(const Tensor& input, std::int64_t dim0, std::int64_t dim1) {
  const std::int64_t a = normalize_dim(dim0, input.dim(), "transpose");
  const std::int64_t b = normalize_dim(dim1, input.dim(), "transpose");
  Shape order;
  for (std::int64_t d = 0; d < input.dim(); ++d) order.push_back(d);
  if (input.dim() > 0) std::swap(order[a], order[b]);
  return Permute::apply(input, order);
}

Tensor t(const Tensor& input) {
  check<ShapeError>(input.dim() <= 2, "t",
                    "takes at most 2 dimensions; got shape {}; use transpose(dim0, dim1)",
                    input.shape());
  return input.dim() == 2 ? transpose(input, 0, 1) : alias(input);
}

Tensor expand(const Tensor& input, const Shape& shape) {
  const std::int64_t added = shape.size() - input.dim();
  check<ShapeError>(added >= 0, "expand", "needs a size for each of the {} dimensions; got {}",
                    input.dim(), shape);
  Shape sizes = shape;
  for (std::int64_t d = 0; d < shape.size(); ++d) {
    if (sizes[d] == -1 && d >= added) sizes[d] = input.shape()[d - added];
    const bool fits = sizes[d] >= 0 && (d < added || input.shape()[d - added] == 1 ||
                                        input.shape()[d - added] == sizes[d]);
    check<ShapeError>(fits, "expand",
                      "only sizes of 1 (or new ones in front) can grow; got {} from shape {}",
                      shape, input.shape());
  }
  sizes.numel("expand");  // throws where it overflows
  return Expand::apply(input, sizes);
}

Tensor squeeze(const Tensor& input, std::int64_t dim) {
  const std::int64_t d = normalize_dim(dim, input.dim(), "squeeze");
  Shape shape = input.shape();
  Shape strides = input.strides();
  if (!shape.empty() && shape[d] == 1) {
    shape.erase(d);
    strides.erase(d);
  }
  return Squeeze::apply(input, shape, strides);
}

Tensor squeeze(const Tensor& input) {
  Shape shape;
  Shape strides;
  for (std::int64_t d = 0; d < input.dim(); ++d) {
    if (input.shape()[d] == 1) continue;
    shape.push_back(input.shape()[d]);
    strides.push_back(input.strides()[d]);
  }
  return Squeeze::apply(input, shape, strides);
}

Tensor unsqueeze(const Tensor& input, std::int64_t dim) {
  const std::int64_t d = normalize_dim(dim, input.dim() + 1, "unsqueeze");
  Shape shape = input.shape();
  Shape strides = input.strides();
  strides.insert(d, d < input.dim() ? strides[d] * shape[d] : 1);
  shape.insert(d, 1);
  return Unsqueeze::apply(input, shape, strides);
}

Tensor narrow(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t length) {
  check_has_dims(input, "narrow");
  const std::int64_t d = normalize_dim(dim, input.dim(), "narrow");
  const std::int64_t size = input.shape()[d];
  const std::int64_t first = start < 0 ? start + size : start;
  check<IndexError>(
      first >= 0 && first <= size && length >= 0 && length <= size - first, "narrow",
      "start and length must stay within dimension {} of size {}; got start {}, length {}", d, size,
      start, length);
  return Narrow::apply(input, d, first, length);
}

Tensor select(const Tensor& input, std::int64_t dim, std::int64_t index) {
  check_has_dims(input, "select");
  const std::int64_t d = normalize_dim(dim, input.dim(), "select");
  const std::int64_t size = input.shape()[d];
  check<IndexError>(index >= -size && index < size, "select",
                    "index must be in [{}, {}] for dimension {}; got {}", -size, size - 1, d,
                    index);
  return squeeze(Narrow::apply(input, d, index < 0 ? index + size : index, std::int64_t{1}), d);
}

TensorList split(const Tensor& input, std::int64_t split_size, std::int64_t dim) {
  check_has_dims(input, "split");
  const std::int64_t d = normalize_dim(dim, input.dim(), "split");
  const std::int64_t size = input.shape()[d];
  check<ValueError>(split_size > 0 || (split_size == 0 && size == 0), "split",
                    "split_size must be positive; got {}", split_size);
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < size; start += split_size)
    sizes.push_back(std::min(split_size, size - start));
  if (sizes.empty()) sizes.push_back(0);
  return Split::apply(input, sizes, d);
}

TensorList split(const Tensor& input, const Shape& split_sizes, std::int64_t dim) {
  check_has_dims(input, "split");
  const std::int64_t d = normalize_dim(dim, input.dim(), "split");
  std::int64_t rest = input.shape()[d];
  bool fits = !split_sizes.empty();
  for (const std::int64_t size : split_sizes) {
    check<ValueError>(size >= 0, "split", "sizes must not be negative; got {}", split_sizes);
    fits = fits && size <= rest;
    if (fits) rest -= size;
  }
  check<ShapeError>(fits && rest == 0, "split",
                    "sizes must add up to {}, the size of dimension {}; got {}", input.shape()[d],
                    d, split_sizes);
  return Split::apply(input, split_sizes.vec(), d);
}

TensorList chunk(const Tensor& input, std::int64_t chunks, std::int64_t dim) {
  check<ValueError>(chunks > 0, "chunk", "chunks must be positive; got {}", chunks);
  check_has_dims(input, "chunk");
  const std::int64_t d = normalize_dim(dim, input.dim(), "chunk");
  const std::int64_t size = input.shape()[d];
  if (size == 0)
    return Split::apply(input, std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0), d);
  return split(input, (size - 1) / chunks + 1, d);
}

TensorList unbind(const Tensor& input, std::int64_t dim) {
  check_has_dims(input, "unbind");
  const std::int64_t d = normalize_dim(dim, input.dim(), "unbind");
  if (input.shape()[d] == 0) return {};
  return Unbind::apply(input, d);
}

Tensor contiguous(const Tensor& input) {
  return input.is_contiguous() ? input : Contiguous::apply(input);
}

Tensor clone(const Tensor& input) { return Clone::apply(input); }

Tensor zero_embed(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t size) {
  check_has_dims(input, "zero_embed");
  const std::int64_t d = normalize_dim(dim, input.dim(), "zero_embed");
  check<IndexError>(start >= 0 && start <= size - input.shape()[d], "zero_embed",
                    "the slices must fit; got {} slices from {} in {}", input.shape()[d], start,
                    size);
  return ZeroEmbed::apply(input, d, start, size);
}

}  // namespace norma
