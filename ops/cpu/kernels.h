// The CPU kernels by family: each `add_*_kernels` fills its slots of the table.
#pragma once

#include "norma/ops/backend.h"

namespace norma::cpu_kernels {

// clang-format off
void add_memory_kernels(Backend& table);       // memory.cpp: fill, copy, all_finite
void add_random_kernels(Backend& table);       // random.cpp: uniform, normal, randint
void add_elementwise_kernels(Backend& table);  // elementwise.cpp: clamp, where, add_scaled
void add_unary_kernels(Backend& table);        // elementwise_unary.cpp, with the activations
void add_binary_kernels(Backend& table);       // elementwise_binary.cpp
void add_activation_kernels(Backend& table);   // activation.cpp: swiglu
void add_dropout_kernels(Backend& table);      // dropout.cpp
void add_reduction_kernels(Backend& table);    // reduction.cpp
void add_matmul_kernels(Backend& table);       // matmul.cpp: gemm
void add_linear_kernels(Backend& table);       // linear.cpp
void add_attention_kernels(Backend& table);    // attention.cpp
void add_softmax_kernels(Backend& table);      // softmax.cpp
void add_loss_kernels(Backend& table);         // loss.cpp: cross_entropy
void add_norm_kernels(Backend& table);         // norm.cpp
void add_index_kernels(Backend& table);        // index.cpp: embedding, gather, scatter
void add_rope_kernels(Backend& table);         // rope.cpp
void add_optimizer_kernels(Backend& table);    // optimizer.cpp
// clang-format on

}  // namespace norma::cpu_kernels
