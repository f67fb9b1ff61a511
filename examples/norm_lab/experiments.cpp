#include "norm_lab/experiments/list.h"

namespace norm_lab {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"signal", "Signal", "Eight layers of ReLU", signal},
      {"signal-depth", "Signal", "A hundred layers", signal_depth},
      {"signal-gain", "Signal", "What one layer does", signal_gain},
      {"signal-gradients", "Signal", "Gradients of eight layers", signal_gradients},
      {"euler", "Signal", "Euler's identity", euler},
      {"vanishing", "Signal", "Gradients that do vanish", vanishing},
      {"signal-norm", "Signal", "Eight layers with RMSNorm", signal_norm},
      {"direction", "Signal", "The direction of a vector", direction},

      {"invariances", "Semantics", "What norms do not see", invariances},
      {"shift-and-scale", "Semantics", "Invariance in floating point", shift_and_scale},
      {"centring", "Semantics", "LayerNorm and RMSNorm", centring},
      {"gemma", "Semantics", "Gemma's offset and order", gemma},
      {"identity", "Semantics", "A fresh LayerNorm", identity},
      {"counts", "Semantics", "Parameters and norms", counts},
      {"golden", "Semantics", "Four numbers", golden},

      {"variance", "Numerics", "Four ways to a variance", variance},
      {"half-precision", "Numerics", "Statistics in 16 bits", half_precision},
      {"epsilon", "Numerics", "What eps does", epsilon},

      {"speed", "Speed", "LayerNorm against RMSNorm", speed},

      {"growth", "Depth and placement", "The residual stream", growth},
      {"branch-share", "Depth and placement", "The share of a layer", branch_share},
      {"gradient-depth", "Depth and placement", "Gradients and depth", gradient_depth},
      {"bounded-update", "Depth and placement", "DeepNorm's bounded update", bounded_update},
      {"deep-training", "Depth and placement", "Two hundred layers", deep_training},
      {"warmup", "Depth and placement", "Who needs a warm-up", warmup},
      {"effective-depth", "Depth and placement", "What deep layers do", effective_depth},

      {"logit-bounds", "Attention", "Bounds of attention scores", logit_bounds},
      {"logit-growth", "Attention", "Scores under large learning rates", logit_growth},

      {"batch-norm-text", "BatchNorm in text", "BatchNorm on padded text", batch_norm_text},

      {"stability", "Stability", "Learning rates that each bears", stability},
  };
  return all;
}

}  // namespace norm_lab
