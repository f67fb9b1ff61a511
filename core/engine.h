// The part of the engine that Function needs; users call core/autograd.h.
#pragma once

#include "norma/core/node.h"

namespace norma::detail {

/// The node that this thread runs backward right now; null outside.
const Node* current_node();
/// Whether the running backward will use the gradient of input `index` of the current node.
bool current_node_needs(std::size_t index);
/// Throws AutogradError naming `operation` when one of the `results` holds a NaN, or an infinity
/// that neither came in with `inputs` nor was given as a number.
void check_anomaly(const std::string& operation, const char* phase, const TensorList& results,
                   const TensorList& inputs, bool given_infinity = false);

}  // namespace norma::detail
