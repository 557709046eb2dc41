// SPDX-License-Identifier: Apache-2.0
// Work: the FLOPs a problem takes and the minimum of bytes it moves, with any kernel.
// FLOPs are those of the textbook algorithm: kernels by FFT or Winograd execute fewer,
// recomputation more. Bytes are compulsory traffic: every input read once, every output written
// once. Both are therefore models, and say so (Provenance::kShapeModel). Pure functions; formulas:
// docs/concepts/roofline.md.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "model/problem/problem.h"
#include "model/profile/profile.h"

#include <optional>
#include <string_view>

namespace purlin::analyze {

struct Work {                       // of one launch
  std::optional<double> flops;      // nothing if the shape is not enough
  std::optional<double> bytes;      // of DRAM traffic, at least
  std::optional<double> bus_bytes;  // communication: what each rank moves over its links, at least
};

// `op` tells collectives apart ("nccl:all_gather", "c10d::allreduce_").
Work work_of(const Problem& problem, std::string_view op = {});

// The part of its op's work that one launch of a kernel does; empty where the kernel is not the one
// that does it, such as the layout conversion that a convolution launches first.
Work work_of_kernel(const KernelRow& row, const KernelName& name);

// Whether an op of a heavy class launches it around the kernel that does the work.
bool is_helper_kernel(const KernelName& name);

// "gemm", by the row's op, else by the kernel's name.
std::string_view op_class_of_row(const KernelRow& row, const KernelName& name);
// The problem of a row: class by its op, else by the kernel's name; dimensions as recorded.
Problem problem_of_row(const KernelRow& row, const KernelName& name);

}  // namespace purlin::analyze
