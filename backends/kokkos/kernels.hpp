#pragma once

#include "core/kernel.hpp"

// One function per file of kernels; register.cpp calls them all.
namespace turnout::kokkos {

void register_movement_kernels(KernelRegistry& registry);  // transpose, concat, slice ...
void register_pad_kernels(KernelRegistry& registry);
void register_gather_kernels(KernelRegistry& registry);
void register_scatter_kernels(KernelRegistry& registry);
void register_fill_kernels(KernelRegistry& registry);  // range, one_hot, trilu, eye_like ...
void register_resize_kernels(KernelRegistry& registry);
void register_top_k_kernels(KernelRegistry& registry);
void register_reverse_kernels(KernelRegistry& registry);  // reverse_sequence
void register_unary_kernels(KernelRegistry& registry);
void register_binary_kernels(KernelRegistry& registry);
void register_select_kernels(KernelRegistry& registry);  // where, clip, cast
void register_reduce_kernels(KernelRegistry& registry);
void register_scan_kernels(KernelRegistry& registry);  // arg_max, arg_min, cum_sum
void register_softmax_kernels(KernelRegistry& registry);
void register_norm_kernels(KernelRegistry& registry);          // all normalizations
void register_channel_norm_kernels(KernelRegistry& registry);  // those per channel
void register_matmul_kernels(KernelRegistry& registry);
void register_conv_kernels(KernelRegistry& registry);
void register_conv_transpose_kernels(KernelRegistry& registry);
void register_pool_kernels(KernelRegistry& registry);  // windows and global ones

}  // namespace turnout::kokkos
