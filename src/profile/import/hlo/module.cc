// SPDX-License-Identifier: Apache-2.0
#include "profile/import/hlo/module.h"

#include "base/text.h"
#include "model/problem/problem.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace purlin::profile::hlo {
namespace {

constexpr std::size_t kMaxText = std::size_t{256} << 20, kMaxModules = 4096;
constexpr std::size_t kMaxInstructions = 2'000'000, kMaxOperands = 4096, kMaxTypes = 4096;
constexpr std::size_t kMaxComputations = 500'000;
constexpr std::size_t kMaxRank = 16, kMaxTypeText = 1 << 18;
// What is of use comes first: the computations that are called, the target of a call.
constexpr std::size_t kMaxAttributes = 64 << 10;

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

std::string_view take_name(std::string_view text) {
  if (starts_with(text, "%")) text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  return text.substr(0, end);
}

// Behind the bracket that closes the one at `open`; texts in quotes have none. npos: it is open.
std::size_t behind_close(std::string_view text, std::size_t open) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '(' || c == '{' || c == '[') {
      ++depth;
    } else if ((c == ')' || c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

class Reader {
 public:
  std::vector<Module> read(std::string_view text) {
    text = text.substr(0, kMaxText);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size() - 1);
      line(text.substr(0, end + (text[end] == '\n' ? 0 : 1)));
      text.remove_prefix(end + 1);
      if (full_) break;
    }
    finish();
    return std::move(modules_);
  }

 private:
  void line(std::string_view text) {
    if (starts_with(text, "HloModule ")) {
      finish();
      full_ = modules_.size() >= kMaxModules;
      if (full_) return;
      modules_.emplace_back();
      modules_.back().name = take_name(text.substr(10));
      modules_.back().scheduled = text.find("is_scheduled=true") != std::string_view::npos;
      return;
    }
    if (modules_.empty()) return;
    if (starts_with(text, "  ")) {
      if (open_) instruction(trim(text));
    } else if (starts_with(text, "}")) {
      finish();
    } else if (ends_with(text, "{") && text.find(" -> ") != std::string_view::npos) {
      finish();
      full_ = computations_++ >= kMaxComputations;
      if (full_) return;
      Module& module = modules_.back();
      const bool entry = starts_with(text, "ENTRY ");
      if (entry) text.remove_prefix(6);
      const auto index = static_cast<std::uint32_t>(module.computations.size());
      module.computations.emplace_back();
      module.computations.back().name = take_name(text);
      module.by_name.emplace(module.computations.back().name, index);
      if (entry) module.entry = index;
      open_ = true;
    }
  }

  void instruction(std::string_view text) {
    full_ = count_ >= kMaxInstructions;
    if (full_) return;
    const bool root = starts_with(text, "ROOT ");
    if (root) text.remove_prefix(5);
    const std::size_t equals = text.find(" = ");
    if (equals == std::string_view::npos) return;
    Instruction out;
    out.name = take_name(text);
    text = text.substr(equals + 3);
    const std::size_t type_end =
        starts_with(text, "(") ? behind_close(text, 0) : std::min(text.find(' '), text.size());
    if (type_end == std::string_view::npos || type_end >= text.size()) return;
    out.type = text.substr(0, type_end);
    text = trim(text.substr(type_end));
    const std::size_t open = text.find('(');
    if (open == std::string_view::npos) return;
    out.opcode = text.substr(0, open);
    const std::size_t close = behind_close(text, open);
    if (out.name.empty() || close == std::string_view::npos) return;
    operands(out, text.substr(open + 1, close - open - 2));
    out.attributes = text.substr(close, kMaxAttributes);
    Computation& computation = modules_.back().computations.back();
    const auto index = static_cast<std::uint32_t>(computation.instructions.size());
    names_.emplace(out.name, index);
    if (root) computation.root = index;
    computation.instructions.push_back(std::move(out));
    ++count_;
  }

  // Each is its name, or type and name. In a scheduled module it stands before its users.
  void operands(Instruction& out, std::string_view list) {
    if (out.opcode == "constant" || out.opcode == "parameter") return;
    while (!list.empty() && out.operands.size() < kMaxOperands) {
      std::size_t end = 0;
      int depth = 0;
      for (; end < list.size() && (list[end] != ',' || depth > 0); ++end) {
        if (list[end] == '(' || list[end] == '{' || list[end] == '[') ++depth;
        if (list[end] == ')' || list[end] == '}' || list[end] == ']') --depth;
      }
      std::string_view word = trim(list.substr(0, end));
      if (const std::size_t blank = word.rfind(' '); blank != std::string_view::npos)
        word.remove_prefix(blank + 1);
      const auto known = names_.find(take_name(word));
      out.operands.push_back(known == names_.end() ? kUnresolved : known->second);
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }

  void finish() {
    open_ = false;
    names_.clear();
  }

  std::vector<Module> modules_;
  std::unordered_map<std::string_view, std::uint32_t> names_;  // of the open computation
  std::size_t count_ = 0, computations_ = 0;
  bool open_ = false, full_ = false;
};

}  // namespace

std::vector<ArrayType> types_of(std::string_view text) {
  std::vector<ArrayType> out;
  text = text.substr(0, kMaxTypeText);
  std::size_t at = 0;
  while (out.size() < kMaxTypes && (at = text.find('[', at)) != std::string_view::npos) {
    std::size_t begin = at;
    while (begin > 0 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    const std::size_t close = text.find(']', at);
    if (close == std::string_view::npos) break;
    ArrayType type;
    type.dtype = dtype_of(text.substr(begin, at - begin));
    type.elements = 1;
    const std::vector<std::string> extents = split(text.substr(at + 1, close - at - 1), ',');
    for (std::size_t i = 0; i < extents.size() && i < kMaxRank; ++i)
      if (const auto extent = parse_int(trim(extents[i])))
        type.elements *= static_cast<double>(std::max<std::int64_t>(0, *extent));
    type.bytes = type.elements * bytes_per_element(type.dtype);
    out.push_back(type);
    at = close;
  }
  return out;
}

const Computation* Module::find(std::string_view computation) const {
  const auto at = by_name.find(computation);
  return at == by_name.end() ? nullptr : &computations[at->second];
}

std::vector<Module> read_modules(std::string_view text) { return Reader().read(text); }

std::string_view attribute(const Instruction& instruction, std::string_view key) {
  const std::string_view text = instruction.attributes;
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t equals = at + key.size();
    if (equals >= text.size() || text[equals] != '=') continue;
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != ',') continue;
    std::string_view value = text.substr(equals + 1);
    if (starts_with(value, "{") || starts_with(value, "["))
      return value.substr(0, std::min(behind_close(value, 0), value.size()));
    if (starts_with(value, "%")) value.remove_prefix(1);
    if (starts_with(value, "\"")) {
      value.remove_prefix(1);
      return value.substr(0, std::min(value.find('"'), value.size()));
    }
    return value.substr(0, std::min(value.find_first_of(", }"), value.size()));
  }
  return "";
}

std::string_view op_name(const Instruction& instruction) {
  constexpr std::string_view kKey = "op_name=\"";
  const std::size_t at = instruction.attributes.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view value = instruction.attributes.substr(at + kKey.size());
  // Ops that were merged: the first is the result's.
  return value.substr(0, std::min(value.find_first_of("\";"), value.size()));
}

}  // namespace purlin::profile::hlo
