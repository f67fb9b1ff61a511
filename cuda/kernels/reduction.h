// Reductions of [outer, reduced, inner] on the device. Everything is combined in an order that
// depends on the shape alone: results repeat bit for bit, on every GPU.
#pragma once

#include "norma/ops/op_codes.h"

#include <cstdint>

namespace norma::cuda_kernels {

struct ReduceShape {
  std::int64_t outer, reduced, inner;
  std::int64_t outputs() const { return outer * inner; }
};

/// Partial results that a reduction keeps between its two stages; 0 where it has one.
std::int64_t workspace_elements(const ReduceShape& shape);

/// sum, prod, amax, amin in the compute type C of T; Out is T or C. Of nothing: 0, 1, the smallest,
/// the largest value. NaN wins.
template <class T, class C, class Out>
void reduce(ReduceOp op, const ReduceShape& shape, const T* x, C* workspace, Out* out,
            void* stream);
/// any, all.
template <class T>
void reduce_logical(ReduceOp op, const ReduceShape& shape, const T* x, bool* workspace, bool* out,
                    void* stream);
/// Whether each element is finite.
template <class T>
void reduce_finite(const ReduceShape& shape, const T* x, bool* workspace, bool* out, void* stream);
/// The first index of the largest or smallest value, or of NaN; `reduced` is at least 1.
template <class T>
void argreduce(bool largest, const ReduceShape& shape, const T* x, std::int64_t* out, void* stream);
/// Sums of the elements up to each one, from the end if `reverse`. Out: T, int64 for integers.
template <class T, class Out>
void cumsum(const ReduceShape& shape, bool reverse, const T* x, Out* out, void* stream);

}  // namespace norma::cuda_kernels
