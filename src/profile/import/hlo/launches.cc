// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/launches.h"

#include "base/hash.h"
#include "base/text.h"
#include "model/problem/problem.h"
#include "profile/import/hlo/amounts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace purlin::profile::hlo {
namespace {

constexpr std::size_t kMaxOrder = 400'000, kMaxOp = 300, kStepsEach = 64;
constexpr std::size_t kMaxType = 1024, kMaxTyped = 64, kMaxBranches = 256;
constexpr int kMaxDepth = 16;
std::string_view first_dtype(std::string_view type) {
  const std::vector<ArrayType> types = types_of(type);
  return types.empty() ? std::string_view() : types.front().dtype;
}

// An instruction with the types of its operands, as problem_of_hlo reads it.
std::string with_types(std::string_view result, std::string_view opcode,
                       const std::vector<std::string_view>& operands, std::string_view attributes) {
  std::string out = fmt::format("%x = {} {}(", result.substr(0, kMaxType), opcode);
  for (std::size_t i = 0; i < std::min(operands.size(), kMaxTyped); ++i)
    out += fmt::format("{}{} %o", i == 0 ? "" : ", ", operands[i].substr(0, kMaxType));
  return out + ")" + std::string(attributes);
}

bool whole_number(double value) { return value >= 0 && value < kMostElements; }

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

  static std::vector<std::string_view> operand_types(const Computation& computation,
                                                     const Instruction& each) {
    std::vector<std::string_view> out;
    for (const std::uint32_t operand : each.operands)
      out.push_back(operand < computation.instructions.size()
                        ? computation.instructions[operand].type
                        : std::string_view());
    return out;
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

  static void take(Launch& launch, const Problem& problem) {
    launch.op_class = problem.op_class;
    launch.shape = to_text(problem.dimensions);
    launch.dtype = problem.dimensions.empty() ? "" : problem.dtype;
    const auto at = [&](const char* name) {
      return std::max(1.0, static_cast<double>(problem[name]));
    };
    if (problem.dimensions.empty()) return;
    if (problem.op_class == "gemm") launch.flops = 2 * at("B") * at("M") * at("N") * at("K");
    if (problem.op_class == "conv")
      launch.flops = 2 * at("N") * at("K") * at("Z") * at("P") * at("Q") * at("C") / at("groups") *
                     at("T") * at("R") * at("S");
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
    for (std::size_t i = 0; i < std::min(operands.size(), kMaxTyped); ++i)
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
    take(out, problem);
    return out;
  }

  std::optional<Launch> fusion(const Computation& computation, const Instruction& each) {
    const Computation* fused = module_.find(attribute(each, "calls"));
    if (fused == nullptr || fused->root >= fused->instructions.size()) return std::nullopt;
    const auto [known, added] = fused_.try_emplace(fused);
    if (added) read_fused(known->second, *fused);
    Launch out = known->second;
    out.signature = signature_of(each, operand_types(computation, each), out.signature);
    const bool own = attribute(each, "kind") != "kCustom" ||
                     each.attributes.find("\"kind\":\"__triton") != std::string_view::npos;
    if (own) out.kernel = kernel_name(each.name);
    if (attribute(each, "kind") != "kLoop") out.elements = 0;
    return out;
  }

  // All that does not depend on the fusion around it.
  static void read_fused(Launch& out, const Computation& fused) {
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
    if (unknown || products > 1) return;
    if (heavy == nullptr) {
      rows(out, read, written);
      if (!out.shape.empty()) out.dtype = std::string(dtype);
    } else {
      product(out, fused, *heavy, read, written);
    }
  }

  static void product(Launch& out, const Computation& fused, const Instruction& heavy,
                      const Amount& read, const Amount& written) {
    Problem problem = problem_of_hlo(
        with_types(heavy.type, heavy.opcode, operand_types(fused, heavy), heavy.attributes));
    if (problem.dimensions.empty()) return;
    auto& list = problem.dimensions;
    list.erase(std::remove_if(list.begin(), list.end(),
                              [](const Dimension& each) {
                                return each.name == "read" || each.name == "write";
                              }),
               list.end());
    if (read.bytes > 0 && whole_number(read.bytes) && whole_number(written.bytes)) {
      list.push_back({"read", std::llround(read.bytes)});
      list.push_back({"write", std::llround(written.bytes)});
    }
    take(out, problem);
  }

  // Work by element or row: what it reads and writes decides.
  static void rows(Launch& out, const Amount& read, const Amount& written) {
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
