// EMA: an exponential moving average of the weights, which often generalizes better than the last
// ones.
#pragma once

#include "norma/optim/state_dict.h"

namespace norma::optim {

struct EMAOptions {
  double decay = 0.999;
  bool warmup = false;  ///< decay min(decay, (1 + n) / (10 + n)) for update n = 1, 2, …: early
                        ///< averages forget the start
};

/// After each optimizer step: average ← decay · average + (1 - decay) · weight, starting from the
/// weights at construction. Averages are float32 for 16-bit weights. Tied or shared weights belong
/// in the list once.
///
///     EMA ema(model.parameters(), {.decay = 0.998});
///     for (…) { …; optimizer.step(); ema.update(); }
///     {
///       const auto averaged = ema.apply();  // the model holds the averages in this scope
///       evaluate(model);
///     }
class EMA {
 public:
  /// Throws ValueError for an empty list, undefined or non-contiguous tensors or a decay outside of
  /// [0, 1); DTypeError for integers.
  explicit EMA(TensorList params, const EMAOptions& options = {});

  /// One step of the average. Throws ValueError while the averages are applied.
  void update();
  std::int64_t updates() const { return updates_; }
  /// The averages, in the order of the parameters; the EMA's own tensors.
  const TensorList& averages() const { return averages_; }

  /// Puts the averages into the parameters until the result is destroyed; then they hold, bit for
  /// bit, what they held before. The EMA must live as long. Throws ValueError while they are
  /// applied already.
  class Applied;
  [[nodiscard]] Applied apply();
  /// Puts the averages into the parameters for good.
  void copy_to_params() const;

  /// "average.{index}" and "updates".
  StateDict state_dict() const;
  /// Throws ValueError, and changes nothing, where it does not fit.
  void load_state_dict(const StateDict& state);

 private:
  void check_not_applied(const char* operation) const;

  TensorList params_;
  TensorList averages_;
  EMAOptions options_;
  std::int64_t updates_ = 0;
  bool applied_ = false;
};

class EMA::Applied {
 public:
  ~Applied();
  Applied(const Applied&) = delete;
  Applied& operator=(const Applied&) = delete;

 private:
  friend class EMA;
  explicit Applied(EMA& ema);

  EMA& ema_;
  TensorList originals_;
};

}  // namespace norma::optim
