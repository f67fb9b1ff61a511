// Stores past the caches, for outputs that no cache holds: an ordinary store reads the line it
// writes to from memory first.
#pragma once

#include <unistd.h>

#include <cstdint>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace norma::cpu_kernels {

/// A chunk of rows of an output. Each is computed into target(), which store() then passes on.
/// `total` is the size of the whole output in elements: it decides whether there is anything to
/// pass on, or target() is the output itself.
template <class T>
class RowStream {
 public:
  /// `scratch`: at_once rows.
  RowStream(T* out, std::int64_t width, std::int64_t total, T* scratch)
      : out_(out), scratch_(scratch), width_(width), streams_(worth_it(out, width, total)) {}
  ~RowStream() {
#ifdef __AVX__
    if (streams_) _mm_sfence();  // other threads may read what was written
#endif
  }
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  /// Where rows from `row` on are to be computed.
  T* target(std::int64_t row) const { return streams_ ? scratch_ : out_ + row * width_; }
  /// Rows row … row + count - 1 have been computed.
  void store(std::int64_t row, std::int64_t count) const {
    if (!streams_) return;
#ifdef __AVX__
    const auto* from = reinterpret_cast<const __m256i*>(scratch_);
    auto* to = reinterpret_cast<__m256i*>(out_ + row * width_);
    const std::int64_t vectors = count * width_ * static_cast<std::int64_t>(sizeof(T)) / 32;
    for (std::int64_t i = 0; i < vectors; ++i)
      _mm256_stream_si256(to + i, _mm256_loadu_si256(from + i));
#endif
  }

 private:
  /// Whole lines only: a part of one costs as much as the line.
  static bool worth_it([[maybe_unused]] const T* out, [[maybe_unused]] std::int64_t width,
                       [[maybe_unused]] std::int64_t total) {
#ifdef __AVX__
    constexpr std::int64_t size = sizeof(T);
    static const std::int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return reinterpret_cast<std::uintptr_t>(out) % 64 == 0 && width * size % 64 == 0 &&
           total * size >= (cache > 0 ? cache : 32 << 20) / 2;
#else
    return false;
#endif
  }

  T* out_;
  T* scratch_;
  std::int64_t width_;
  bool streams_;
};

}  // namespace norma::cpu_kernels
