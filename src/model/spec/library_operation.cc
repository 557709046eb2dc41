// SPDX-License-Identifier: Apache-2.0
#include "model/spec/library_operation.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

bool is_eight_bits(Dtype dtype) { return dtype == Dtype::kF8E4m3 || dtype == Dtype::kF8E5m2; }

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

const std::vector<std::string>& library_computes() {
  static const std::vector<std::string> kAll = {"f32", "tf32", "i32", "f64"};
  return kAll;
}

const std::vector<std::string>& library_epilogues() {
  static const std::vector<std::string> kAll = {"none", "bias",      "relu",
                                                "gelu", "relu_bias", "gelu_bias"};
  return kAll;
}

const std::vector<std::string>& library_parameters() {
  static const std::vector<std::string> kAll = {
      "algo", "tile", "stages", "split_k", "reduction", "swizzle", "custom", "inner", "cluster"};
  return kAll;
}

bool LibraryOperation::has_bias() const {
  return epilogue == "bias" || ends_with(epilogue, "_bias");
}

std::string LibraryOperation::text() const {
  return fmt::format(
      "{} a={} b={} d={} transpose_a={:d} transpose_b={:d} batched={:d} compute={} epilogue={} "
      "workspace={}",
      library, name_of(a), name_of(b), name_of(d), transpose_a, transpose_b, batched, compute,
      epilogue, workspace_bytes);
}

std::string LibraryOperation::label() const {
  std::string label = fmt::format("{}-{}{}-{}", library, transpose_a ? 't' : 'n',
                                  transpose_b ? 't' : 'n', name_of(a));
  if (b != a) label += fmt::format("-{}", name_of(b));
  label += fmt::format("-{}-{}", name_of(d), compute);
  if (epilogue != "none") label += "-" + epilogue;
  if (batched) label += "-batched";
  return label;
}

Status LibraryOperation::check() const {
  if (library != "cublaslt")
    return error(Code::kInvalid, "'{}' is no library that is known here; there is cublaslt",
                 library);
  if (!contains(library_computes(), compute))
    return error(Code::kInvalid, "compute '{}' is none of {}", compute,
                 join(library_computes(), ", "));
  if (!contains(library_epilogues(), epilogue))
    return error(Code::kInvalid, "epilogue '{}' is none of {}", epilogue,
                 join(library_epilogues(), ", "));
  if (workspace_bytes < 0 || workspace_bytes > std::int64_t{4} << 30)
    return error(Code::kInvalid, "a workspace of {} bytes; it is 0 to 4 GiB", workspace_bytes);
  const bool small = is_eight_bits(a) && is_eight_bits(b);
  if (a != b && !(small && (a == Dtype::kF8E4m3 || b == Dtype::kF8E4m3)))
    return error(Code::kInvalid,
                 "a is {} and b is {}: they must be alike, except f8e4m3 and f8e5m2", name_of(a),
                 name_of(b));
  const auto refuse = [&](std::string_view what) {
    return error(Code::kInvalid, "cuBLASLt has no gemm of {} to {} with compute '{}': {}",
                 name_of(a), name_of(d), compute, what);
  };
  if (a == Dtype::kI8) {
    if (compute != "i32" || d != Dtype::kI32) return refuse("i8 takes compute i32 and d i32");
    if (epilogue != "none") return refuse("i8 has no epilogue");
    return Status::ok();
  }
  if (a == Dtype::kF64)
    return compute == "f64" && d == Dtype::kF64 ? Status::ok()
                                                : refuse("f64 takes compute f64 and d f64");
  if (compute == "i32" || compute == "f64") return refuse("that compute is for other types");
  if (a == Dtype::kF32) return d == Dtype::kF32 ? Status::ok() : refuse("f32 takes d f32");
  if (compute == "tf32") return refuse("tf32 is a way to multiply f32");
  if (a == Dtype::kF16 || a == Dtype::kBf16)
    return d == a || d == Dtype::kF32 ? Status::ok() : refuse("d is the same type, or f32");
  if (small) {
    if (a == Dtype::kF8E5m2 && b == Dtype::kF8E5m2) return refuse("one of a and b must be f8e4m3");
    if (transpose_a || !transpose_b)
      return refuse("8-bit reals take transpose_b and no transpose_a");
    return d == Dtype::kBf16 || d == Dtype::kF16 || d == Dtype::kF32
               ? Status::ok()
               : refuse("d is bf16, f16 or f32");
  }
  return refuse("a is f16, bf16, f32, f64, i8, f8e4m3 or f8e5m2");
}

Result<LibraryOperation> LibraryOperation::parse(std::string_view text) {
  LibraryOperation operation;
  bool first = true;
  for (const std::string& word : split(text, ' ')) {
    if (first) {
      operation.library = word;
      first = false;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      return error(Code::kInvalid, "'{}' in the operation '{}' is no NAME=VALUE", word, text);
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto dtype = dtype_from_name(value);
    const auto number = parse_int(value);
    const bool is_flag = number && (*number == 0 || *number == 1);
    bool good = true;
    if (name == "a" || name == "b" || name == "d") {
      good = dtype.has_value();
      if (good) (name == "a" ? operation.a : name == "b" ? operation.b : operation.d) = *dtype;
    } else if (name == "transpose_a" || name == "transpose_b" || name == "batched") {
      good = is_flag;
      if (good)
        (name == "batched"       ? operation.batched
         : name == "transpose_a" ? operation.transpose_a
                                 : operation.transpose_b) = *number == 1;
    } else if (name == "compute") {
      operation.compute = value;
    } else if (name == "epilogue") {
      operation.epilogue = value;
    } else if (name == "workspace") {
      good = number.has_value();
      if (good) operation.workspace_bytes = *number;
    } else {
      good = false;
    }
    if (!good) return error(Code::kInvalid, "'{}' in the operation '{}' is not known", word, text);
  }
  PURLIN_TRY(operation.check());
  return operation;
}

Dtype default_result(Dtype a) {
  if (!is_floating(a)) return Dtype::kI32;
  return is_eight_bits(a) ? Dtype::kBf16 : a;
}

std::string default_compute(Dtype a) {
  if (!is_floating(a)) return "i32";
  return a == Dtype::kF64 ? "f64" : "f32";
}

double library_rtol(const LibraryOperation& operation) {
  switch (operation.d) {
    case Dtype::kI32:
      return 0;
    case Dtype::kF64:
      return 1e-10;
    case Dtype::kBf16:
      return 2e-2;
    case Dtype::kF16:
      return 3e-3;
    default:
      return operation.compute == "tf32" ? 2e-3 : 1e-3;
  }
}

double library_tolerance(const LibraryOperation& operation, std::int64_t k) {
  // Inputs are uniform in [-1, 1], so a sum of K products has a deviation of sqrt(K) / 3; each
  // rounding is relative to sums of about that size, and the largest of many elements counts.
  const double root = std::sqrt(static_cast<double>(std::max<std::int64_t>(k, 1)));
  switch (operation.d) {
    case Dtype::kI32:
      return 0;
    case Dtype::kF64:
      return 1e-13 * root;
    case Dtype::kBf16:
      return 8e-3 * root;  // parts of a split sum may be rounded to bf16 before they are added
    case Dtype::kF16:
      return 1e-3 * root;
    default:
      break;
  }
  if (operation.compute == "tf32") return 2e-3 * root;
  return (operation.a == Dtype::kF32 ? 1e-5 : 1e-4) * root;
}

}  // namespace purlin
