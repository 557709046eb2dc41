// SPDX-License-Identifier: Apache-2.0
// Matrix products: mm, addmm, bmm, baddbmm, matmul, linear and their like.
#include "model/problem/rules.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

Problem product(const Product& p, std::string_view dtype) {
  Problem out;
  out.op_class = "gemm";
  out.dtype = dtype;
  if (p.batch < 0 || p.m < 0 || p.n < 0 || p.k < 0) return out;
  if (!elements_of({p.batch, p.m, p.n}) || !elements_of({p.batch, p.m, p.k}) ||
      !elements_of({p.batch, p.k, p.n}))
    return out;
  if (p.batch != 1) out.dimensions.push_back({"B", p.batch});
  out.dimensions.insert(out.dimensions.end(), {{"M", p.m}, {"N", p.n}, {"K", p.k}});
  return out;
}

// As torch.matmul has it: vectors get an extent of 1, leading extents are batches and broadcast; a
// matrix or vector to the right of batches folds them into M.
std::optional<Product> matrix_product(Shape a, Shape b) {
  if (a.empty() || b.empty()) return std::nullopt;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  Product out;
  out.m = a[a.size() - 2];
  out.k = a.back();
  out.n = b.back();
  if (b[b.size() - 2] != out.k) return std::nullopt;
  const Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  const auto batches_a = elements_of(batch_a), batches_b = elements_of(batch_b);
  if (!batches_a || !batches_b) return std::nullopt;
  if (*batches_b == 1) {
    const auto rows = elements_of({*batches_a, out.m});
    if (!rows) return std::nullopt;
    out.m = *rows;
    return out;
  }
  // Broadcast from the right.
  for (std::size_t i = 0; i < std::max(batch_a.size(), batch_b.size()); ++i) {
    const std::int64_t of_a = i < batch_a.size() ? batch_a[batch_a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < batch_b.size() ? batch_b[batch_b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return std::nullopt;
    const auto batches = elements_of({out.batch, of_a == 1 ? of_b : of_a});
    if (!batches) return std::nullopt;
    out.batch = *batches;
  }
  return out;
}

void add_bytes(Problem& problem, const char* name, double bytes) {
  problem.dimensions.push_back({name, static_cast<std::int64_t>(std::llround(bytes))});
}

}  // namespace

Problem read_product(const OpInputs& inputs, const OpRule& rule) {
  const auto found = matrix_product(inputs.shape(rule.at[0]), inputs.shape(rule.at[1]));
  const std::string_view dtype = inputs.dtype(rule.at[0]);
  if (!found) return product({-1, 0, 0, 0}, dtype);
  Problem out = product(*found, dtype);
  // A whole matrix that is added is read as well; a vector of biases is not worth the mention.
  const auto addend = inputs.elements(rule.at[2]);
  const bool added = rule.at[2] >= 0 && addend && inputs.integer(rule.at[3]) != 0;
  const double size = bytes_per_element(dtype);
  if (added && !out.empty() && size > 0 && found->m > 1 &&
      *addend == found->batch * found->m * found->n)
    add_bytes(out, "read",
              size * static_cast<double>(found->batch) *
                  (static_cast<double>(found->m) * static_cast<double>(found->k) +
                   static_cast<double>(found->k) * static_cast<double>(found->n) +
                   static_cast<double>(found->m) * static_cast<double>(found->n)));
  return out;
}

Problem read_linear(const OpInputs& inputs, const OpRule& rule) {
  Shape weight = inputs.shape(rule.at[1]);
  if (weight.size() == 1) weight.insert(weight.begin(), 1);
  if (weight.size() != 2) return product({-1, 0, 0, 0}, inputs.dtype(rule.at[0]));
  std::swap(weight[0], weight[1]);
  const auto found = matrix_product(inputs.shape(rule.at[0]), weight);
  return product(found.value_or(Product{-1, 0, 0, 0}), inputs.dtype(rule.at[0]));
}

Problem read_scaled_mm(const OpInputs& inputs, const OpRule& rule) {
  Shape a = inputs.shape(rule.at[0]), b = inputs.shape(rule.at[1]);
  const std::string_view dtype = inputs.dtype(rule.at[0]);
  if (a.size() != 2 || b.size() != 2) return product({-1, 0, 0, 0}, dtype);
  if (dtype == "f4e2m1") a[1] *= 2, b[0] *= 2;  // two in a byte, counted as one
  const auto found = matrix_product(a, b);
  if (!found) return product({-1, 0, 0, 0}, dtype);
  Problem out = product(*found, dtype);
  // ScalarType as PyTorch numbers it: 5 f16, 6 f32, 15 bf16, 3 i32. Without a recorded type, that
  // of _int_mm (at[3]).
  const auto type = inputs.integer(rule.at[2]);
  const double size = type == 5 || type == 15 ? 2 : type == 6 || rule.at[3] == 3 ? 4 : 0;
  if (!out.empty() && size > 0 && size != bytes_per_element(dtype))
    add_bytes(out, "write", size * static_cast<double>(found->m) * static_cast<double>(found->n));
  return out;
}

// Rows of `a` are dealt out to the matrices of `b`: each row meets one of them.
Problem read_grouped_mm(const OpInputs& inputs, const OpRule& rule) {
  const Shape &a = inputs.shape(rule.at[0]), &b = inputs.shape(rule.at[1]);
  const std::string_view dtype = inputs.dtype(rule.at[0]);
  if (a.size() != 2 || b.size() != 3 || a[1] != b[1]) return product({-1, 0, 0, 0}, dtype);
  Problem out = product({1, a[0], b[2], a[1]}, dtype);
  const auto weights = elements_of(b), rows = elements_of(a);
  const double size = bytes_per_element(dtype);
  if (out.empty() || !weights || !rows || size <= 0) return out;
  add_bytes(out, "read", size * (static_cast<double>(*weights) + static_cast<double>(*rows)));
  return out;
}

}  // namespace purlin
