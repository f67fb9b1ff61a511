// The functions of all experiments; experiments.cpp names and orders them.
#pragma once

#include "norm_lab/experiment.h"

namespace norm_lab {

// Signal
Result signal(const Settings& settings);
Result signal_depth(const Settings& settings);
Result signal_gain(const Settings& settings);
Result signal_gradients(const Settings& settings);
Result euler(const Settings& settings);
Result vanishing(const Settings& settings);
Result signal_norm(const Settings& settings);
Result direction(const Settings& settings);

// Semantics
Result invariances(const Settings& settings);
Result shift_and_scale(const Settings& settings);
Result centring(const Settings& settings);
Result gemma(const Settings& settings);
Result identity(const Settings& settings);
Result counts(const Settings& settings);
Result golden(const Settings& settings);

// Numerics
Result variance(const Settings& settings);
Result half_precision(const Settings& settings);
Result epsilon(const Settings& settings);

// Speed
Result speed(const Settings& settings);

// Depth and placement
Result growth(const Settings& settings);
Result branch_share(const Settings& settings);
Result gradient_depth(const Settings& settings);
Result bounded_update(const Settings& settings);
Result deep_training(const Settings& settings);
Result warmup(const Settings& settings);
Result effective_depth(const Settings& settings);

// Attention
Result logit_bounds(const Settings& settings);
Result logit_growth(const Settings& settings);

// BatchNorm in text
Result batch_norm_text(const Settings& settings);

// Stability
Result stability(const Settings& settings);

}  // namespace norm_lab
