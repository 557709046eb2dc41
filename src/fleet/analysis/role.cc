// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/role.h"

#include "analyze/kernel_name/kernel_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>

namespace purlin::fleet::analysis {
namespace {

struct RoleRule {
  std::string_view part, role;
};

// The name of a kernel, for roles that an op class does not know. In order: the first match counts.
constexpr RoleRule kKernelRules[] = {
    {"reshape_and_cache", "kv_cache"},
    {"kv_cache", "kv_cache"},
    {"kvcache", "kv_cache"},
    {"copy_blocks", "kv_cache"},
    {"swap_blocks", "kv_cache"},
    {"paged_kv", "kv_cache"},
    {"append_paged", "kv_cache"},
    {"topk", "sampling"},
    {"top_k", "sampling"},
    {"top_p", "sampling"},
    {"multinomial", "sampling"},
    {"sampling", "sampling"},
    {"argmax", "sampling"},
    {"swiglu", "mlp"},
    {"silu_and_mul", "mlp"},
    {"gelu_and_mul", "mlp"},
    {"geglu", "mlp"},
    {"moe_", "mlp"},
    {"fused_moe", "mlp"},
    {"rotary", "attention"},
    {"rope", "attention"},
};

// The range or operator that a kernel runs in: what model code calls its parts.
constexpr RoleRule kRangeRules[] = {
    {"kv_cache", "kv_cache"},
    {"kvcache", "kv_cache"},
    {"attn", "attention"},
    {"attention", "attention"},
    {"qkv", "attention"},
    {"q_proj", "attention"},
    {"k_proj", "attention"},
    {"v_proj", "attention"},
    {"o_proj", "attention"},
    {"mlp", "mlp"},
    {"ffn", "mlp"},
    {"feed_forward", "mlp"},
    {"gate_proj", "mlp"},
    {"up_proj", "mlp"},
    {"down_proj", "mlp"},
    {"experts", "mlp"},
    {"moe", "mlp"},
    {"optimizer", "optimizer"},
    {"embedding", "embedding"},
};

std::string lower_text(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view first_match(const std::string& lower, std::span<const RoleRule> rules) {
  for (const RoleRule& rule : rules)
    if (lower.find(rule.part) != std::string::npos) return rule.role;
  return {};
}

// Roles of ranges refine these alone: a norm inside an attention block stays a norm.
bool takes_the_range(std::string_view op_class) {
  return op_class == "gemm" || op_class == "elementwise" || op_class == "other" ||
         op_class == "reduction";
}

}  // namespace

std::string_view role_of(std::string_view kernel, std::string_view op) {
  if (const std::string_view role = first_match(lower_text(kernel), kKernelRules); !role.empty())
    return role;
  const std::string_view op_class = analyze::describe_kernel(kernel).op_class;
  if (takes_the_range(op_class))
    if (const std::string_view role = first_match(lower_text(op), kRangeRules); !role.empty())
      return role;
  if (op_class == "gemm") return "matmul";
  if (op_class == "layout") return "copy";
  return op_class;
}

bool can_be_tuned(std::string_view role) { return role != "communication" && role != "copy"; }

}  // namespace purlin::fleet::analysis
