// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/launches.h"

#include "base/hash.h"
#include "base/text.h"
#include "model/problem/problem.h"
#include "profile/import/hlo/fused.h"
#include "profile/import/hlo/problems.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

namespace purlin::profile::hlo {
namespace {

constexpr std::size_t kMaxOrder = 400'000, kMaxOp = 300, kStepsEach = 64;
constexpr std::size_t kMaxBranches = 256;
constexpr int kMaxDepth = 16;

// Layers of one model have one name: "h_11" is "h".
std::string without_numbers(std::string_view op) {
  std::string out;
  for (std::size_t at = 0; at < op.size(); ++at) {
    std::size_t end = at + 1;
    while (op[at] == '_' && end < op.size() && op[end] >= '0' && op[end] <= '9') ++end;
    const bool number = end > at + 1 && (end == op.size() || op[end] == '/' || op[end] == ')');
    if (number) {
      at = end - 1;
    } else {
      out += op[at];
    }
  }
  return out;
}

std::string_view last_of(std::string_view op) { return op.substr(op.rfind('/') + 1); }

class Planner {
 public:
  explicit Planner(const Module& module) : module_(module) {}

  Program plan() {
    out_.name = std::string(module_.name);
    for (const Computation& each : module_.computations)
      steps_ += kStepsEach * each.instructions.size();
    if (module_.entry < module_.computations.size()) walk(module_.computations[module_.entry], 0);
    return std::move(out_);
  }

 private:
  void walk(const Computation& computation, int depth) {
    if (depth > kMaxDepth) return;
    for (const Instruction& each : computation.instructions) {
      if (out_.order.size() >= kMaxOrder || steps_ == 0) return;
      --steps_;
      if (each.opcode == "while") {
        for (int round = 0; round < 2; ++round) {
          into(attribute(each, "condition"), depth);
          into(attribute(each, "body"), depth);
        }
      } else if (each.opcode == "conditional") {
        branches(each, depth);
      } else if (each.opcode == "call") {
        into(attribute(each, "to_apply"), depth);
      } else if (ends_with(each.opcode, "-start")) {
        into(attribute(each, "calls"), depth);
      } else if (each.opcode == "fusion" || each.opcode == "custom-call") {
        launch(computation, each);
      }
    }
  }

  void into(std::string_view name, int depth) {
    const Computation* called = module_.find(name);
    if (called != nullptr) walk(*called, depth + 1);
  }

  void branches(const Instruction& each, int depth) {
    into(attribute(each, "true_computation"), depth);
    into(attribute(each, "false_computation"), depth);
    std::string_view list = attribute(each, "branch_computations");
    if (starts_with(list, "{")) list.remove_prefix(1);
    for (std::size_t i = 0; i < kMaxBranches && !list.empty(); ++i) {
      const std::size_t end = std::min(list.find_first_of(",}"), list.size());
      const std::string_view word = trim(list.substr(0, end));
      into(word.substr(starts_with(word, "%") ? 1 : 0), depth);
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }

  void launch(const Computation& computation, const Instruction& each) {
    const auto [known, added] =
        seen_.try_emplace(&each, static_cast<std::uint32_t>(out_.launches.size()));
    if (added) {
      std::optional<Launch> made =
          each.opcode == "fusion" ? fusion(computation, each) : library(computation, each);
      if (!made) {
        known->second = kUnresolved;
      } else {
        describe(*made, each);
        out_.launches.push_back(std::move(*made));
      }
    }
    if (known->second != kUnresolved) out_.order.push_back(known->second);
  }

  // The op is that of the last instruction merged into a product: a transposition, a scaling.
  static void describe(Launch& launch, const Instruction& each) {
    std::string op = without_numbers(op_name(each).substr(0, kMaxOp));
    if (op.empty()) op = std::string(each.opcode == "fusion" ? "fusion" : "custom-call");
    const std::string_view usual = launch.op_class == "gemm"   ? "dot_general"
                                   : launch.op_class == "conv" ? "conv_general_dilated"
                                                               : "";
    if (!usual.empty() && last_of(op) != usual)
      op = op.substr(0, op.rfind('/') + 1) + std::string(usual);
    launch.op = std::move(op);
    launch.instruction = each.name;
  }

  // What made a value, behind parts of tuples and other views of it.
  static const Instruction* source_of(const Computation& computation, std::uint32_t value) {
    for (int step = 0; step < 64 && value < computation.instructions.size(); ++step) {
      const Instruction& made = computation.instructions[value];
      const bool view = made.opcode == "get-tuple-element" || made.opcode == "bitcast";
      if (!view || made.operands.empty() || made.operands[0] >= value) return &made;
      value = made.operands[0];
    }
    return nullptr;
  }

  static std::uint64_t signature_of(const Instruction& each,
                                    const std::vector<std::string_view>& operands,
                                    std::uint64_t fused) {
    std::string text =
        fmt::format("{} {} {} {} {}", fused, each.type.substr(0, kMaxType), each.opcode,
                    attribute(each, "kind"), attribute(each, "custom_call_target"));
    for (std::size_t i = 0; i < std::min(operands.size(), kMostOperands); ++i)
      (text += ' ') += operands[i].substr(0, kMaxType);
    return hash64(text);
  }

  std::optional<Launch> library(const Computation& computation, const Instruction& each) {
    const std::string_view target = attribute(each, "custom_call_target");
    const bool convolution = starts_with(target, "__cudnn$conv");
    if (!convolution && !starts_with(target, "__cublas$") && !starts_with(target, "__cudnn$"))
      return std::nullopt;
    Launch out;
    std::vector<std::string_view> operands = operand_types(computation, each);
    out.signature = signature_of(each, operands, 0);
    for (const std::uint32_t operand : each.operands)
      out.chained =
          out.chained || (last_call_ != nullptr && source_of(computation, operand) == last_call_);
    last_call_ = &each;
    std::string_view result = each.type;
    std::string attributes(each.attributes);
    const bool gradient = starts_with(target, "__cudnn$convBackward");
    if (gradient) {
      // As the convolution whose gradient it is: image and filter make a result.
      const std::size_t close = result.find('}');
      if (!starts_with(result, "(") || close == std::string_view::npos || operands.size() < 2)
        return out;
      const std::string_view made = result.substr(1, close);
      const bool filter = target == "__cudnn$convBackwardFilter";
      result = filter ? operands[1] : operands[0];
      operands = filter ? std::vector{operands[0], made} : std::vector{made, operands[1]};
      for (std::size_t at; (at = attributes.find("convBackward")) != std::string::npos;)
        attributes.replace(at, 12, "convForward");
    }
    Problem problem = problem_of_hlo(with_types(result, each.opcode, operands, attributes));
    if (gradient && !problem.dimensions.empty()) problem.dimensions.push_back({"gradients", 1});
    take_problem(problem, out);
    return out;
  }

  std::optional<Launch> fusion(const Computation& computation, const Instruction& each) {
    const Computation* fused = module_.find(attribute(each, "calls"));
    if (fused == nullptr || fused->root >= fused->instructions.size()) return std::nullopt;
    const auto [known, added] = fused_.try_emplace(fused);
    if (added) known->second = launch_of_fused(*fused);
    Launch out = known->second;
    out.signature = signature_of(each, operand_types(computation, each), out.signature);
    const bool own = attribute(each, "kind") != "kCustom" ||
                     each.attributes.find("\"kind\":\"__triton") != std::string_view::npos;
    if (own) out.kernel = kernel_name(each.name);
    if (attribute(each, "kind") != "kLoop") out.elements = 0;
    return out;
  }

  const Module& module_;
  Program out_;
  std::map<const Instruction*, std::uint32_t> seen_;
  std::map<const Computation*, Launch> fused_;
  const Instruction* last_call_ = nullptr;  // of a library, in the order
  std::size_t steps_ = 0;                   // left; a module of n instructions has so many times n
};

}  // namespace

std::string kernel_name(std::string_view instruction) {
  std::string out(instruction);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return out;
}

Program program_of(const Module& module) { return Planner(module).plan(); }

}  // namespace purlin::profile::hlo
