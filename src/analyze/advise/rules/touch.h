// SPDX-License-Identifier: Apache-2.0
// Touch: what the launches of one profile row read and write, as its problem shape tells. Rules
// about chains of kernels compare these numbers: a kernel that reads as many elements as another
// wrote may read its result. Pure functions over values.
#pragma once

#include "analyze/report/report.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Facts;

enum class TouchKind {
  kUnknown,  // no shape
  kPointwise,
  kReduction,
  kNorm,     // softmax and the norms: reads and writes n elements, with a reduction within
  kProduct,  // gemm
  kOther,    // a known problem of another class
};

struct Touch {
  TouchKind kind = TouchKind::kUnknown;
  double n = 0;        // elements of the greater of what it reads and writes; products: written
  double out = 0;      // elements written
  double inputs = 0;   // pointwise: inputs of n elements
  double in_size = 0;  // bytes of an element that is read
  double read = 0, written = 0;                     // bytes of a launch
  double batch = 1, m = 0, columns = 0, depth = 0;  // products
  double weights = 0;  // elements of a product's second operand, or of a convolution's filters
  bool backward = false;
  bool compares = false;  // writes one byte an element
  double out_size() const { return out > 0 ? written / out : 0; }
  double bytes() const { return read + written; }
  // The lesser of a product's outer extents, and the elements of the operand that does not have it:
  // the vectors, and the matrix that they are multiplied by.
  double vectors() const { return m < columns ? m : columns; }
  double matrix() const { return batch * depth * (m < columns ? columns : m); }
  double flops() const { return 2 * batch * m * columns * depth; }
  bool light() const {
    return kind == TouchKind::kPointwise || kind == TouchKind::kReduction ||
           kind == TouchKind::kNorm;
  }
  // A product, or a forward convolution: m is its images' positions, columns its filters.
  bool multiplies() const {
    return kind == TouchKind::kProduct || (kind == TouchKind::kOther && weights > 0 && n > 0);
  }
  // Whether an operand or the result of a product has that many elements.
  bool holds(double elements) const {
    return kind == TouchKind::kProduct &&
           (batch * m * columns == elements || batch * m * depth == elements ||
            batch * depth * columns == elements);
  }
};

Touch touch_of(const KernelRow& row, const KernelStat& stat);
// A product's result may be an operand of the next equal one: x W, or A x.
inline bool may_chain(const Touch& product) {
  return product.columns == product.depth || product.m == product.depth;
}
// A sort, a scan or a selection: classed with the reductions, but no kernel takes it along.
bool orders_elements(const KernelStat& stat);
// Of a product whose M, N or K is no multiple of so many bytes: "K=1001 is not a multiple of 8";
// K before N before M. "" where all are.
std::string misaligned_extent(const Touch& product, double bytes);
double padded_extent(double extent, const Touch& product, double bytes);
// FLOP/B of a product that reads both operands again for each tile of its result.
double tile_intensity(double rows, double columns, double element_bytes);

}  // namespace purlin::analyze
