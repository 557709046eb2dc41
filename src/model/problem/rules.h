// SPDX-License-Identifier: Apache-2.0
// How problem_of reads an op: a table of rules, one per op. Each rule names the reader for its kind
// and the positions of its inputs. Private to model/problem. Pure functions over untrusted inputs:
// a missing, negative or too large value is "not known".
#pragma once

#include "model/problem/problem.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace purlin {

using Shape = std::vector<std::int64_t>;

std::optional<std::int64_t> elements_of(const Shape& shape);  // nothing beyond 2^48

// The inputs of one op, read with care. Indices out of range are inputs that were not recorded.
class OpInputs {
 public:
  explicit OpInputs(const std::vector<OpInput>& inputs) : inputs_(inputs) {}
  std::size_t size() const { return inputs_.size(); }
  bool is_tensor(int at) const;      // as far as types or dimensions say
  const Shape& shape(int at) const;  // {} for scalars and where unknown
  std::string_view dtype(int at) const;
  std::optional<std::int64_t> elements(int at) const;  // of one that has dimensions
  std::optional<std::int64_t> integer(int at) const;   // of a scalar's value
  std::optional<bool> flag(int at) const;
  std::optional<Shape> list(int at) const;  // "[1, 1]", also a single number
  bool is_list(int at) const;               // of scalars, by its type
  bool is_none(int at) const;               // recorded as absent
  const std::vector<Shape>& members(int at) const;

 private:
  const OpInput* at(int index) const;
  const std::vector<OpInput>& inputs_;
};

struct OpRule {
  std::string_view op;  // without namespace "aten::" and trailing "_"
  using Reader = Problem (*)(const OpInputs& inputs, const OpRule& rule);
  Reader read;
  std::string_view op_class;
  std::array<int, 10> at = {};  // what each means is the reader's; -1 = has none
};

// Readers. The comment says what `at` holds.
Problem read_product(const OpInputs&, const OpRule&);     // a, b, addend, beta, bias vector
Problem read_linear(const OpInputs&, const OpRule&);      // input, weight
Problem read_scaled_mm(const OpInputs&, const OpRule&);   // a, b, type of the result
Problem read_grouped_mm(const OpInputs&, const OpRule&);  // a, b
// input, weight, gradient, stride, padding, dilation, groups, transposed, mask of gradients (of a
// transposed one: output padding), kind
Problem read_convolution(const OpInputs&, const OpRule&);
// query, layout, causal, backward, sequence starts of q and k, longest q and k, mask (0: none)
Problem read_attention(const OpInputs&, const OpRule&);
Problem read_norm(const OpInputs&, const OpRule&);     // input, kind, size, weight, bias, backward
Problem read_softmax(const OpInputs&, const OpRule&);  // input, dimension, backward
Problem read_elementwise(const OpInputs&, const OpRule&);  // kind
Problem read_reduction(const OpInputs&, const OpRule&);    // input, dimensions
// Input, dimensions, length of the last one, whether one side is real.
Problem read_transform(const OpInputs&, const OpRule&);
Problem read_pooling(const OpInputs&, const OpRule&);    // input, kernel, stride, padding, kind
Problem read_embedding(const OpInputs&, const OpRule&);  // kind
Problem read_lists(const OpInputs&, const OpRule&);      // lists read, lists written
Problem read_concatenation(const OpInputs&, const OpRule&);
Problem read_collective(const OpInputs&, const OpRule&);  // sent, received

// What `at` of a rule may say about its kind.
enum ElementwiseKind { kPlain, kTruth, kOverwrites, kWithMask, kTritonKernel };
enum NormKind { kLayerNorm, kRmsNorm, kBatchNorm, kGroupNorm, kNativeGroupNorm };
enum AttentionLayout { kHeadsFirst, kSequenceFirst };
enum EmbeddingKind { kLookup, kLookupBackward, kIndexSelect, kGather, kBag };
enum ConvolutionKind { kForward, kBackward, kOneGradient, kTransposedOp };
enum PoolingKind { kMaxPool, kAveragePool, kAdaptivePool };

// The rule of an op, nullptr where none knows it.
const OpRule* rule_of(std::string_view op);

}  // namespace purlin
