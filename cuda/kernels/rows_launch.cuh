// Which geometry serves a launch over rows.
#pragma once

#include "norma/cuda/kernels/rows.cuh"

#include <cstdint>
#include <initializer_list>

namespace norma::cuda_kernels {

inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

/// Elements of 16 bytes.
template <class T>
constexpr int full_vector = 16 / static_cast<int>(sizeof(T));

/// Whether rows of `width` elements at these addresses can be read by vectors of `vec`.
template <class T>
bool takes_vectors(int vec, std::int64_t width, std::initializer_list<const void*> pointers) {
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(vec) * sizeof(T);
  if (width % vec != 0) return false;
  for (const void* pointer : pointers)
    if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0) return false;
  return true;
}

/// Calls use.operator()<vec>() with the elements of an access: 16 bytes where they fit, else one.
/// float64 is for gradient checks: not worth kernels of its own.
template <class T, class Use>
void with_vector(std::int64_t width, std::initializer_list<const void*> pointers, const Use& use) {
  if constexpr (sizeof(T) < 8)
    if (takes_vectors<T>(full_vector<T>, width, pointers))
      return use.template operator()<full_vector<T>>();
  use.template operator()<1>();
}

/// Calls use.operator()<Geometry>() with the smallest group that holds a row in registers,
/// `vectors` times 16 bytes in each thread, of up to `largest` threads; rows that none holds are
/// read as often as they are visited.
template <class T, int vectors, int largest = 512, class Use>
void with_rows(std::int64_t width, std::initializer_list<const void*> pointers, const Use& use) {
  with_vector<T>(width, pointers, [&]<int vec>() {
    constexpr int full = full_vector<T>;
    // Single 16-bit elements take a register each: too many for 512 threads.
    constexpr bool takes_512 = largest == 512 && vec * sizeof(T) >= 4;
    const auto fits = [&]<class G>(G) {
      if (G::resident && width > G::capacity) return false;
      use.template operator()<G>();
      return true;
    };
    if (fits(Geometry<8, full, vec, 4>{}) || fits(Geometry<32, vectors * full, vec, 1>{}) ||
        fits(Geometry<256, vectors * full, vec, 1>{}))
      return;
    if constexpr (takes_512)
      if (fits(Geometry<512, vectors * full, vec, 1>{})) return;
    fits(Geometry<512, 0, vec, 1>{});
  });
}

}  // namespace norma::cuda_kernels
