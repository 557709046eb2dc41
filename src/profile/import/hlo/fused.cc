// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/fused.h"

#include "base/hash.h"
#include "model/problem/problem.h"
#include "profile/import/hlo/amounts.h"
#include "profile/import/hlo/problems.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::hlo {
namespace {

std::string_view first_dtype(std::string_view type) {
  const std::vector<ArrayType> types = types_of(type);
  return types.empty() ? std::string_view() : types.front().dtype;
}

bool whole_number(double value) { return value >= 0 && value < kMostElements; }

void product(Launch& out, const Computation& fused, const Instruction& heavy, const Amount& read,
             const Amount& written) {
  Problem problem = problem_of_hlo(
      with_types(heavy.type, heavy.opcode, operand_types(fused, heavy), heavy.attributes));
  if (problem.dimensions.empty()) return;
  auto& list = problem.dimensions;
  list.erase(std::remove_if(
                 list.begin(), list.end(),
                 [](const Dimension& each) { return each.name == "read" || each.name == "write"; }),
             list.end());
  if (read.bytes > 0 && whole_number(read.bytes) && whole_number(written.bytes)) {
    list.push_back({"read", std::llround(read.bytes)});
    list.push_back({"write", std::llround(written.bytes)});
  }
  take_problem(problem, out);
}

// Work by element or row: what it reads and writes decides.
void rows(Launch& out, const Amount& read, const Amount& written) {
  const double most =
      out.op_class == "reduction" ? std::max(read.elements, written.elements) : written.elements;
  if (!(most >= 1) || !whole_number(most) || !whole_number(read.bytes) ||
      !whole_number(written.bytes) || written.bytes <= 0)
    return;
  out.bytes = read.bytes + written.bytes;
  out.shape = to_text(std::vector<Dimension>{{"n", std::llround(most)},
                                             {"out", std::llround(written.elements)},
                                             {"read", std::llround(read.bytes)},
                                             {"write", std::llround(written.bytes)}});
}

}  // namespace

Launch launch_of_fused(const Computation& fused) {
  Launch out;
  const Instruction* heavy = nullptr;
  int products = 0;
  bool unknown = false;
  std::string text;
  Amount read;
  double largest = 0;
  std::string_view dtype = first_dtype(fused.instructions[fused.root].type);
  const std::vector<Amount> wholes = amounts_of(fused);
  const std::vector<Amount> reads = reads_of(fused, wholes);
  const Amount written = written_by(fused, wholes);
  out.op_class = "elementwise";
  out.elements = written.elements;
  for (std::size_t i = 0; i < fused.instructions.size(); ++i) {
    const Instruction& part = fused.instructions[i];
    ((text += '\n') += part.opcode) += part.type;
    if (part.opcode == "parameter") {
      read.add(reads[i]);
      if (reads[i].bytes > largest) largest = reads[i].bytes, dtype = first_dtype(part.type);
    }
    if (part.opcode == "dot" || part.opcode == "convolution") heavy = &part, ++products;
    // The rows that a scatter writes, and what a nested computation does.
    for (const std::string_view opcode :
         {"scatter", "fusion", "sort", "custom-call", "call", "while", "reduce-window"})
      unknown = unknown || part.opcode == opcode;
    if (part.opcode == "reduce") out.op_class = "reduction";
  }
  if (heavy != nullptr) out.op_class = heavy->opcode == "dot" ? "gemm" : "conv";
  out.signature = hash64(text);
  if (unknown || products > 1) return out;
  if (heavy == nullptr) {
    rows(out, read, written);
    if (!out.shape.empty()) out.dtype = std::string(dtype);
  } else {
    product(out, fused, *heavy, read, written);
  }
  return out;
}

}  // namespace purlin::profile::hlo
