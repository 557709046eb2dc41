// SPDX-License-Identifier: Apache-2.0
// Attention as the fused kernels do it, dense or of packed sequences.
#include "model/problem/rules.h"

#include <algorithm>

namespace purlin {

Problem read_attention(const OpInputs& inputs, const OpRule& rule) {
  const auto [query_at, layout, causal_at, backward, starts_q_at, starts_k_at, longest_q_at,
              longest_k_at, mask_at, unused] = rule.at;
  (void)unused;
  Problem out;
  out.op_class = "attention";
  out.dtype = inputs.dtype(query_at);
  Shape q = inputs.shape(query_at), k = inputs.shape(query_at + 1), v = inputs.shape(query_at + 2);
  if (q.size() != k.size() || k.size() != v.size() || q.size() < 3 || q.size() > 4) return out;
  for (const Shape* shape : {&q, &k, &v}) {
    if (!elements_of(*shape)) return out;
    for (std::int64_t extent : *shape)
      if (extent < 1) return out;
  }
  std::int64_t batch = 1;
  bool packed = false;
  if (q.size() == 3) {
    // tokens x heads x D where sequences are packed, else heads were folded into the batch.
    packed = layout == kSequenceFirst;
    if (packed) {
      const auto starts = inputs.elements(starts_q_at);
      batch = starts && *starts > 1 ? *starts - 1 : 1;
    } else {
      for (Shape* shape : {&q, &k, &v}) shape->insert(shape->begin(), 1);
    }
  } else if (layout == kSequenceFirst && inputs.elements(starts_q_at).value_or(0) > 2) {
    // PyTorch packs into a batch of one.
    packed = q[0] == 1;
    batch = packed ? *inputs.elements(starts_q_at) - 1 : q[0];
    if (packed)
      for (Shape* shape : {&q, &k, &v}) shape->erase(shape->begin());
  }
  std::int64_t heads, heads_k, length_q, length_k;
  if (packed) {
    heads = q[1], heads_k = k[1], length_q = q[0], length_k = k[0];
    // Every sequence has the maximum length, so the batch is dense.
    const auto longest_q = inputs.integer(longest_q_at), longest_k = inputs.integer(longest_k_at);
    if (longest_q && longest_k && *longest_q > 0 && *longest_k > 0 &&
        elements_of({batch, *longest_q}) == length_q &&
        elements_of({batch, *longest_k}) == length_k) {
      packed = false;
      length_q = *longest_q, length_k = *longest_k;
    }
  } else {
    batch = q[0];
    const std::size_t head = layout == kSequenceFirst ? 2 : 1;
    const std::size_t length = layout == kSequenceFirst ? 1 : 2;
    heads = q[head], heads_k = k[head], length_q = q[length], length_k = k[length];
    if (k[0] != batch) return out;
  }
  const std::int64_t depth = q.back(), depth_v = v.back();
  if (!elements_of({batch, heads, length_q, depth}) || !elements_of({length_k, heads, depth_v}))
    return out;
  out.dimensions = {{"B", batch}, {"H", heads}};
  if (heads_k != heads) out.dimensions.push_back({"Hk", heads_k});
  // Lengths of packed sequences are on the device: how many tokens there are does not tell the
  // work.
  out.dimensions.push_back({packed ? "Tq" : "Sq", length_q});
  out.dimensions.push_back({packed ? "Tk" : "Sk", length_k});
  out.dimensions.push_back({"D", depth});
  if (depth_v != depth) out.dimensions.push_back({"Dv", depth_v});
  const bool causal = inputs.flag(causal_at).value_or(inputs.integer(causal_at).value_or(0) > 0);
  if (causal) out.dimensions.push_back({"causal", 1});
  if (backward != 0) out.dimensions.push_back({"backward", 1});
  // Of the framework's op alone: what it calls may get the mask spread over samples and heads.
  if (const auto mask = mask_at > 0 ? inputs.elements(mask_at) : std::nullopt; mask && *mask > 1)
    out.dimensions.push_back({inputs.dtype(mask_at) == "bool" ? "mask" : "bias", *mask});
  return out;
}

}  // namespace purlin
