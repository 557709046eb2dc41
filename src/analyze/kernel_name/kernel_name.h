// SPDX-License-Identifier: Apache-2.0
// What a kernel's name tells: a short form for people, who wrote it (family), what it does (op
// class) and how it was built: element type, tile, stages, layout, tensor cores. Names are those of
// CUDA, HIP and OpenCL programs, mangled or not. Rules are tables: words (rules.cc), names made of
// tokens (tokens.cc), C++ templates (templates.cc). A name that no rule knows has family "custom"
// and op class "other". A property that the name does not have is empty: nothing is guessed. Pure
// functions over foreign text; they cannot fail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

enum class TensorCores { kUnknown, kNo, kYes };
std::string_view to_text(TensorCores use);  // "unknown", "no", "yes"

struct KernelName {
  std::string full;  // demangled, unabridged
  // Without return type, parameters, common namespaces and templates. What PyTorch's elementwise
  // and reduction kernels apply is kept, in words: "vectorized_elementwise add<float>"; library
  // names that are a list of properties become what matters of it: "nvjet bf16 256x128x64 TNT".
  std::string brief;
  // What brief leaves out, template arguments as written or properties, separated by commas; ""
  // if none. Tells namesakes apart.
  std::string arguments;
  std::string_view
      family;  // "pytorch", "cublas", "cudnn", "cutlass", "triton", "nccl", …, "custom"
  // "gemm", "conv", "attention", "norm", "softmax", "elementwise", "reduction", "copy", "layout",
  // "optimizer", "embedding", "communication", "other".
  std::string_view op_class;
  // Of the operands, as model/problem/problem.h names them; "tf32" where f32 is multiplied as such.
  std::string_view dtype;
  std::string_view accumulator;  // what products are summed in
  std::string tile;              // of one block: "128x256x64", "128x64" without K
  int stages = 0;                // of its pipeline; 0 not known
  std::string layout;            // "tn", "TNT" (operands and result), "nhwc"
  std::string arch;              // "sm_90", "gfx942": what it was built for
  TensorCores tensor = TensorCores::kUnknown;
  bool split_k = false;
  // The function of the source that a compiler made the kernel of; the same in every build. ""
  // where the kernel is a function itself.
  std::string outlined;
};

KernelName describe_kernel(std::string_view recorded);

// Labels for different kernels whose brief names are the same: each with those of its template
// arguments, shortened, in which not all agree, and with a number where that does not tell them
// apart. In the order given.
std::vector<std::string> tell_apart(const std::vector<const KernelName*>& namesakes);

}  // namespace purlin::analyze
