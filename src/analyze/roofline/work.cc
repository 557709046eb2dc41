// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/work.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::string_view kClasses[] = {
    "gemm", "conv",   "attention", "norm",      "softmax", "elementwise",  "reduction",
    "copy", "layout", "optimizer", "embedding", "fft",     "communication"};
constexpr double kSectorBytes = 32;  // the least DRAM moves for an L2 miss

double at(const Problem& problem, std::string_view name) {
  return static_cast<double>(std::max<std::int64_t>(0, problem[name]));
}

// 1 where absent.
double factor(const Problem& problem, std::string_view name) {
  const double value = at(problem, name);
  return value > 0 ? value : 1;
}

bool has(const Problem& problem, std::string_view name) {
  return std::any_of(problem.dimensions.begin(), problem.dimensions.end(),
                     [&](const Dimension& dimension) { return dimension.name == name; });
}

bool has_all(const Problem& problem, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return has(problem, name); });
}

// What is read and written where element sizes differ is in the shape itself, as bytes.
void set_bytes(Work& work, const Problem& problem, double read, double write) {
  const bool sized = bytes_per_element(problem.dtype) > 0;
  if (!sized && !(has(problem, "read") && has(problem, "write"))) return;
  if (has(problem, "read")) read = at(problem, "read");
  if (has(problem, "write")) write = at(problem, "write");
  work.bytes = read + write;
}

// C[M, N] = A[M, K] B[K, N], B times: an FMA for each M N K.
Work gemm(const Problem& p) {
  if (!has_all(p, {"M", "N", "K"})) return {};
  const double b = factor(p, "B"), m = at(p, "M"), n = at(p, "N"), k = at(p, "K");
  const double s = bytes_per_element(p.dtype);
  Work work;
  work.flops = 2 * b * m * n * k;
  set_bytes(work, p, s * b * (m * k + k * n), s * b * m * n);
  return work;
}

// Direct convolution: each of N K Z P Q results takes C/groups T R S FMAs. Each gradient takes as
// many; it reads two of input, weight and result and writes the third.
Work conv(const Problem& p) {
  if (!has_all(p, {"N", "C", "K", "R", "S", "P", "Q"})) return {};
  const double groups = factor(p, "groups"), s = bytes_per_element(p.dtype);
  const double filter = factor(p, "T") * at(p, "R") * at(p, "S");
  const double results = at(p, "N") * at(p, "K") * factor(p, "Z") * at(p, "P") * at(p, "Q");
  Work work;
  const double passes = has(p, "gradients") ? at(p, "gradients") : 1;
  work.flops = 2 * results * (at(p, "C") / groups) * filter * passes;
  if (!has_all(p, {"H", "W"})) return work;
  const double image = at(p, "N") * at(p, "C") * factor(p, "D") * at(p, "H") * at(p, "W");
  const double weight = at(p, "K") * (at(p, "C") / groups) * filter;
  if (!has(p, "gradients")) {
    set_bytes(work, p, s * ((has(p, "transposed") ? results : image) + weight),
              s * (has(p, "transposed") ? image : results));
  } else {
    set_bytes(work, p, passes * s * (image + weight + results), 0);
  }
  return work;
}

// Fused attention: S = Q K^T and O = P V, so 2 Sq Sk (D + Dv) for each head; half of it where the
// mask is causal and square. The backward pass recomputes S and makes dV, dP, dQ and dK: five
// products for two. Dao et al., FlashAttention, 2022. Softmax is left out (1/D of it).
Work attention(const Problem& p) {
  const double b = factor(p, "B"), h = at(p, "H"), d = at(p, "D"), s = bytes_per_element(p.dtype);
  const double hk = has(p, "Hk") ? at(p, "Hk") : h, dv = has(p, "Dv") ? at(p, "Dv") : d;
  if (!has_all(p, {"H", "D"})) return {};
  const bool backward = has(p, "backward"), packed = has(p, "Tq");
  Work work;
  double tokens_q = at(p, "Tq"), tokens_k = at(p, "Tk");
  if (!packed) {
    if (!has_all(p, {"Sq", "Sk"})) return {};
    const double sq = at(p, "Sq"), sk = at(p, "Sk");
    const double visible = has(p, "causal") && sq == sk ? 0.5 : 1;
    const double qk = 2 * b * h * sq * sk * d * visible, pv = 2 * b * h * sq * sk * dv * visible;
    work.flops = backward ? 3 * qk + 2 * pv : qk + pv;
    tokens_q = b * sq, tokens_k = b * sk;
  }
  const double q = s * tokens_q * h * d, k = s * tokens_k * hk * d, v = s * tokens_k * hk * dv;
  const double o = s * tokens_q * h * dv, statistics = 4 * tokens_q * h;  // log-sum-exp in f32
  if (backward) {
    set_bytes(work, p, q + k + v + 2 * o + statistics, q + k + v);
  } else {
    set_bytes(work, p, q + k + v, o + statistics);
  }
  return work;
}

// Mean, variance, scaling: about 8 per element, 5 for RMS; the gradient takes about twice that.
Work norm(const Problem& p) {
  if (!has_all(p, {"rows", "cols"})) return {};
  const double n = at(p, "rows") * at(p, "cols"), s = bytes_per_element(p.dtype);
  const double parameters = s * at(p, "params");
  Work work;
  work.flops = n * (has(p, "rms") ? 5 : 8) * (has(p, "backward") ? 2 : 1);
  if (has(p, "backward")) {
    set_bytes(work, p, 2 * s * n + parameters, s * n + parameters);
  } else {
    set_bytes(work, p, s * n + parameters, s * n);
  }
  return work;
}

// Maximum, subtraction, exponential, sum, division; the gradient: product, sum, subtraction,
// product.
Work softmax(const Problem& p) {
  const double n = has(p, "rows") ? at(p, "rows") * at(p, "cols") : at(p, "n");
  if (n <= 0) return {};
  const double s = bytes_per_element(p.dtype);
  Work work;
  work.flops = n * (has(p, "backward") ? 4 : 5);
  set_bytes(work, p, s * n * (has(p, "backward") ? 2 : 1), s * n);
  return work;
}

// One operation for each element; kernels that fuse several do more. Broadcast inputs are read
// once.
Work elementwise(const Problem& p, double operations) {
  if (!has(p, "n")) return {};
  const double n = at(p, "n"), s = bytes_per_element(p.dtype);
  const double inputs = has(p, "inputs") ? at(p, "inputs") : 1;
  const double outputs = has(p, "outputs") ? at(p, "outputs") : 1;
  Work work;
  work.flops = n * operations;
  set_bytes(work, p, s * (has(p, "in") ? at(p, "in") : inputs * n), s * outputs * n);
  return work;
}

Work reduction(const Problem& p) {
  if (!has(p, "n")) return {};
  const double n = at(p, "n"), s = bytes_per_element(p.dtype);
  Work work;
  work.flops = n;
  if (has(p, "out")) set_bytes(work, p, s * n, s * at(p, "out"));
  return work;
}

// Adam: four lists read, three written (28 B for each f32 parameter), about 12 FLOPs; SGD with
// momentum 4, without 2.
Work optimizer(const Problem& p) {
  const double outputs = at(p, "outputs");
  return elementwise(p, outputs >= 3 ? 12 : outputs == 2 ? 4 : 2);
}

// Rows are fetched in whole sectors, but none more often than the table has it.
Work embedding(const Problem& p) {
  if (!has_all(p, {"indices", "cols"})) return {};
  const double indices = at(p, "indices"), cols = at(p, "cols"), s = bytes_per_element(p.dtype);
  const double index_bytes = indices * (has(p, "index_bytes") ? at(p, "index_bytes") : 8);
  const double row = cols > 1 ? std::ceil(s * cols / kSectorBytes) * kSectorBytes : s;
  double touched = indices * row;
  if (has(p, "rows")) touched = std::min(touched, at(p, "rows") * row);
  Work work;
  work.flops = 0;
  if (has(p, "backward")) {
    work.flops = indices * cols;
    set_bytes(work, p, index_bytes + s * indices * cols, touched);
  } else {
    set_bytes(work, p, index_bytes + touched,
              s * cols * (has(p, "bags") ? at(p, "bags") : indices));
  }
  return work;
}

// Transforms of n points, B of them: 5 n log2(n), the count that FFTW's benchmark uses; half of the
// work and bytes where one side is real.
Work transform(const Problem& p) {
  if (!has(p, "n") || at(p, "n") < 1) return {};
  const bool real = has(p, "real"), is_complex = starts_with(p.dtype, "c");
  const double points = factor(p, "B") * at(p, "n") * (real ? 0.5 : 1);
  const double size = bytes_per_element(p.dtype) * (is_complex ? 1 : 2);  // of a complex number
  Work work;
  work.flops = 5 * points * std::log2(at(p, "n"));
  set_bytes(work, p, size * points, size * points);
  return work;
}

// Bytes over each rank's links for the algorithm that needs fewest (a ring): NCCL's "bus
// bandwidth", nccl-tests PERFORMANCE.md.
Work communication(const Problem& p, std::string_view op) {
  const double s = bytes_per_element(p.dtype), n = at(p, "ranks");
  const double sent = at(p, "in"), received = at(p, "out"), size = s * std::max(sent, received);
  Work work;
  if (s <= 0 || size <= 0) return work;
  const auto says = [&](std::string_view word) { return op.find(word) != std::string_view::npos; };
  double share = 1;  // broadcast, reduce, send, receive
  if (says("allreduce") || says("all_reduce") || says("AllReduce")) {
    share = n > 0 ? 2 * (n - 1) / n : 0;
  } else if (sent != received || says("gather") || says("scatter") || says("all_to_all") ||
             says("alltoall")) {
    share = n > 0 ? (n - 1) / n : 0;
  } else if (op.empty()) {
    return work;
  }
  if (share > 0) work.bus_bytes = share * size;
  return work;
}

// Kernels that an op of a heavy class launches around the one that does its work, in lower case.
constexpr std::string_view kHelpers[] = {
    "splitkreduce", "split_k_reduce", "reduce_kernel", "preprocess",     "dot_do_o",
    "convert_dq",   "convert_dkv",    "combine",       "flip_filter",    "nchwtonhwc",
    "nhwctonchw",   "computeoffsets", "fft2d_r2c",     "fft2d_c2r",      "winograd_nonfused",
    "im2col",       "col2im",         "memset",        "set_zero_kernel"};

bool is_light(std::string_view op_class) {  // one pass over its elements, as elementwise work is
  return op_class == "elementwise" || op_class == "copy" || op_class == "layout" ||
         op_class == "optimizer" || op_class == "other";
}

bool does_the_work(std::string_view kernel, std::string_view problem) {
  return kernel == problem || kernel == "other" || (is_light(kernel) && is_light(problem)) ||
         // cuDNN and cuBLAS run convolutions as products, and products of one row as reductions.
         (kernel == "gemm" && (problem == "conv" || problem == "attention")) ||
         (kernel == "conv" && problem == "gemm") ||
         // A variance by Welford's sums.
         (kernel == "norm" && problem == "reduction");
}

// The number behind a word of a name; 0 without one.
double digits_after(std::string_view name, std::string_view word) {
  const std::size_t found = name.find(word);
  double value = 0;
  if (found == std::string_view::npos) return value;
  for (std::size_t i = found + word.size();
       i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) != 0; ++i)
    value = std::min(1e9, 10 * value + (name[i] - '0'));
  return value;
}

// PyTorch's kernels that only move bytes name the size of an element, not its type.
std::string_view dtype_by_size(std::string_view name) {
  const double size = digits_after(name, "OpaqueType<");
  return size == 1    ? "u8"
         : size == 2  ? "u16"
         : size == 4  ? "u32"
         : size == 8  ? "u64"
         : size == 16 ? "c128"
                      : "";
}

// What a library launches around a transform: it moves points and computes none.
bool packs_transforms(std::string_view name) {
  return name.find("_fft") == std::string_view::npos &&
         (name.find("loadstore_modifier_t") != std::string_view::npos ||
          name.find("packR2C") != std::string_view::npos ||
          name.find("unpackC2R") != std::string_view::npos);
}

// The factor of a transform's length that one launch does: cuFFT's and rocFFT's kernels name it. 0
// without one.
double factor_in(std::string_view name) {
  const std::size_t word = name.find("_fft");
  const std::size_t open = word == std::string_view::npos ? word : name.find('<', word);
  return open == std::string_view::npos ? digits_after(name, "_len")
                                        : digits_after(name.substr(open), "<");
}

// A transform is one launch, or one for each factor of its length. Each passes over all points.
Work pass_of_transform(Problem problem, std::string_view name, std::string_view op) {
  const double n = at(problem, "n"), factor = factor_in(name);
  const bool one_side =
      name.find("r2c") != std::string_view::npos || name.find("c2r") != std::string_view::npos;
  // Real points of an odd length cannot be packed in pairs: they pass as complex ones.
  if (std::fmod(n, 2) == 1 && factor > 0 && !one_side)
    std::erase_if(problem.dimensions, [](const Dimension& d) { return d.name == "real"; });
  Work work = work_of(problem, op);
  if (packs_transforms(name)) {
    work.flops = 0;
  } else if (factor <= 1 || n <= 1) {
    work.flops.reset();
  } else if (work.flops) {
    *work.flops *= std::min(1.0, std::log2(factor) / std::log2(n));
  }
  return work;
}

}  // namespace

bool is_helper_kernel(const KernelName& name) {
  std::string text = name.full;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(std::begin(kHelpers), std::end(kHelpers),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

Work work_of(const Problem& problem, std::string_view op) {
  const std::string_view c = problem.op_class;
  if (c == "gemm") return gemm(problem);
  if (c == "conv") return conv(problem);
  if (c == "attention") return attention(problem);
  if (c == "norm") return norm(problem);
  if (c == "softmax") return softmax(problem);
  if (c == "elementwise") return elementwise(problem, 1);
  if (c == "copy" || c == "layout") return elementwise(problem, 0);
  if (c == "reduction") return reduction(problem);
  if (c == "optimizer") return optimizer(problem);
  if (c == "embedding") return embedding(problem);
  if (c == "fft") return transform(problem);
  if (c == "communication") return communication(problem, op);
  return {};
}

std::string_view op_class_of_row(const KernelRow& row, const KernelName& name) {
  if (row.op.empty()) return name.op_class;
  const std::string_view known = problem_of(row.op, {}).op_class;
  if (known != "other") return known;
  // A class given by the user is the op.
  for (const std::string_view op_class : kClasses)
    if (row.op == op_class) return op_class;
  return name.op_class;
}

Problem problem_of_row(const KernelRow& row, const KernelName& name) {
  Problem problem;
  problem.op_class = op_class_of_row(row, name);
  problem.dimensions = dimensions_from_text(row.shape);
  // Where the op's types were not recorded, the kernel's name may tell those of its operands.
  problem.dtype = !row.dtype.empty() ? row.dtype : name.dtype == "tf32" ? "f32" : name.dtype;
  return problem;
}

Work work_of_kernel(const KernelRow& row, const KernelName& name) {
  Problem problem = problem_of_row(row, name);
  // The name of a kernel of XLA says what its fusion ends with; its shape is of the whole fusion.
  const bool whole = name.family == "xla";
  if (problem.empty() || (!whole && !does_the_work(name.op_class, problem.op_class))) return {};
  const bool heavy =
      problem.op_class == "gemm" || problem.op_class == "conv" || problem.op_class == "attention";
  if (heavy && is_helper_kernel(name)) return {};
  if (problem.op_class == "attention" && name.op_class == "gemm")
    return {};  // not fused: one of two
  if (problem.dtype.empty()) problem.dtype = dtype_by_size(name.full);
  if (problem.op_class == "fft") return pass_of_transform(std::move(problem), name.full, row.op);
  if (problem.op_class == "conv") {
    // Each gradient is a separate kernel.
    for (Dimension& dimension : problem.dimensions)
      if (dimension.name == "gradients")
        dimension.value = std::min<std::int64_t>(1, dimension.value);
  }
  return work_of(problem, row.op);
}

}  // namespace purlin::analyze
