// The backend of cuda(0).
#pragma once

#include "norma/ops/backend.h"

#include <string>

namespace norma::cuda_kernels {

/// Registers allocator and kernels of cuda(0). Returns why that cannot be used, or nothing.
std::string start();

/// Fills the slots that have a CUDA kernel.
void add_kernels(Backend& table);
// The kernels by family: each fills its slots.
void add_memory_kernels(Backend& table);       // memory.cpp: fill, copy, copies from and to the CPU
void add_row_norm_kernels(Backend& table);     // row_norm.cpp
void add_column_norm_kernels(Backend& table);  // norms.cpp
void add_pointwise_kernels(Backend& table);    // norms.cpp: softcap, dropout
void add_elementwise_kernels(Backend& table);  // elementwise.cpp: all of one or two operands
void add_reduction_kernels(Backend& table);    // reduction.cpp: with cumulative sums
void add_index_kernels(Backend& table);        // index.cpp: embedding, gather, scatter
void add_rope_kernels(Backend& table);         // rope.cpp
void add_random_kernels(Backend& table);       // random.cpp: uniform, normal, randint
void add_optimizer_kernels(Backend& table);    // optimizer.cpp: steps, norms of gradients, averages
void add_squash_kernels(Backend& table);       // squash.cpp
void add_dual_norm_kernels(Backend& table);    // dual_norm.cpp
void add_poly_norm_kernels(Backend& table);    // poly_norm.cpp
void add_softmax_kernels(Backend& table);      // softmax.cpp: softmax, cross entropy, moments
void add_matmul_kernels(Backend& table);       // matmul.cpp: products and the linear layer
void add_attention_kernels(Backend& table);    // attention.cpp

}  // namespace norma::cuda_kernels
