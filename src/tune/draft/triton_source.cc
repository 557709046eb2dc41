// SPDX-License-Identifier: Apache-2.0
// Kernels of Triton: functions under @triton.jit, with the configs of @triton.autotune.
#include "base/regex.h"
#include "base/text.h"
#include "tune/draft/kernel_source.h"
#include "tune/draft/source_text.h"

#include <algorithm>
#include <map>
#include <set>

namespace purlin::tune {
namespace {

using namespace source_text;

std::size_t indent_of(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == line.npos ? line.npos : first;
}

// The values of each constant in the configs of an @triton.autotune, in order.
std::map<std::string, std::vector<std::int64_t>> config_values(const std::string& decorators) {
  static const Regex kPair(R"(['"]?(\w+)['"]?\s*[:=]\s*(\d+))");
  std::map<std::string, std::vector<std::int64_t>> values;
  for (std::size_t at = 0; (at = find_word(decorators, "Config", at)) != decorators.npos; at += 6) {
    const std::size_t open = decorators.find('(', at), close = closing(decorators, open);
    if (close == decorators.npos) break;
    const std::string config = decorators.substr(open, close - open);
    kPair.each(config, [&](const Regex::Groups& match) {
      const std::int64_t value = whole_number(std::string(match[2])).value_or(0);
      std::vector<std::int64_t>& seen = values[std::string(match[1])];
      if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
    });
  }
  return values;
}

class TritonReader {
 public:
  explicit TritonReader(std::string_view text)
      : lines_(split(without_comments(text, true), '\n')) {}

  std::vector<KernelSource> read() {
    std::vector<KernelSource> kernels;
    std::string decorators;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string_view line = trim(lines_[i]);
      if (starts_with(line, "@")) {
        decorators += statement(i) + "\n";
      } else if (starts_with(line, "def ")) {
        static const Regex kJit(R"(@(?:triton\s*\.\s*)?jit\b)");
        if (kJit.search(decorators)) kernels.push_back(kernel(i, decorators));
        decorators.clear();
      } else if (!line.empty()) {
        decorators.clear();
      }
    }
    return kernels;
  }

 private:
  // The lines from `at` until its brackets are closed; `at` is then the last of them.
  std::string statement(std::size_t& at) const {
    std::string text = lines_[at];
    const auto depth = [&text] {
      int open = 0;
      for (const char c : text) {
        if (std::string_view("([{").find(c) != std::string_view::npos) ++open;
        if (std::string_view(")]}").find(c) != std::string_view::npos) --open;
      }
      return open;
    };
    while (depth() > 0 && at + 1 < lines_.size()) text += "\n" + lines_[++at];
    return text;
  }

  KernelSource kernel(std::size_t& at, const std::string& decorators) const {
    KernelSource kernel;
    kernel.language = "triton";
    const std::size_t indent = indent_of(lines_[at]);
    const std::string head = statement(at);
    const std::size_t open = head.find('('), close = closing(head, open);
    kernel.name = kernel.entry =
        trim(head.substr(head.find("def ") + 4, open - head.find("def ") - 4));
    std::string body;
    for (std::size_t i = at + 1; i < lines_.size(); ++i) {
      const std::size_t here = indent_of(lines_[i]);
      if (here != std::string::npos && here <= indent) break;
      body += lines_[i] + "\n";
    }
    std::map<std::string, std::vector<std::int64_t>> values = config_values(decorators);
    for (const std::string& item :
         list_items(head.substr(open + 1, std::min(close, head.size()) - open - 1)))
      add_argument(item, values, kernel);
    for (const char* option : {"num_warps", "num_stages"})
      if (const auto found = values.find(option); found != values.end())
        kernel.parameters.push_back(
            {option, found->second.front(), found->second, "an option of the launch"});
    see_pointers(body, kernel);
    for (std::size_t axis = 0; axis < 3; ++axis)
      kernel.axes[axis].used =
          Regex("program_id\\s*\\(\\s*(axis\\s*=\\s*)?" + std::to_string(axis)).search(body);
    return kernel;
  }

  static void add_argument(const std::string& item,
                           const std::map<std::string, std::vector<std::int64_t>>& values,
                           KernelSource& kernel) {
    const std::vector<std::string> all = words(item);
    if (all.empty() || item.front() == '*') return;
    const std::size_t equals = item.find('=');
    const std::optional<std::int64_t> preset =
        equals == item.npos ? std::nullopt : whole_number(item.substr(equals + 1));
    if (has_word(item, "constexpr")) {
      const auto found = values.find(all.front());
      SourceParameter one{all.front(), preset, {}, "a constexpr argument"};
      if (found != values.end()) {
        one.values = found->second;
        one.preset = one.values.front();
      }
      kernel.parameters.push_back(std::move(one));
      return;
    }
    SourceArgument one;
    one.name = all.front();
    one.type = item;
    static const std::set<std::string> kReal = {"eps", "scale",     "sm_scale", "alpha",   "beta",
                                                "p",   "dropout_p", "epsilon",  "scaling", "lr"};
    one.dtype = kReal.count(one.name) > 0 ? "f32" : "i32";
    kernel.arguments.push_back(std::move(one));
  }

  // A pointer reaches tl.load or tl.store itself, or through names that are computed from it.
  static void see_pointers(const std::string& body, KernelSource& kernel) {
    static const Regex kAccess(R"(\.\s*(load|store|atomic_\w+)\s*\()");
    static const Regex kAssign(R"((\w+)\s*\+?=\s*([^=].*))");
    for (SourceArgument& one : kernel.arguments) {
      std::set<std::string> names = {one.name};
      for (const std::string& line : split(body, '\n')) {
        Regex::Groups match;
        if (kAssign.matches(trim(line), &match) && is_address(std::string(match[2]), names))
          names.emplace(match[1]);
      }
      kAccess.each(body, [&](const Regex::Groups& match) {
        const auto open =
            static_cast<std::size_t>(match[0].data() - body.data()) + match[0].size() - 1;
        const std::vector<std::string> given =
            list_items(body.substr(open + 1, closing(body, open) - open - 1));
        if (given.empty() || !is_address(given[0], names)) return;
        const std::string_view what = match[1];
        one.pointer = true;
        one.dtype = "f32";
        one.written |= what != "load";
        one.read |= what != "store";
      });
    }
  }

  // Of "x_ptr + row * stride", x_ptr is the address: it comes first.
  static bool is_address(const std::string& expression, const std::set<std::string>& names) {
    const std::vector<std::string> all = words(expression);
    if (has_word(expression, "make_block_ptr"))
      return std::any_of(all.begin(), all.end(),
                         [&](const std::string& word) { return names.count(word) > 0; });
    return !all.empty() && names.count(all.front()) > 0;
  }

  const std::vector<std::string> lines_;
};

}  // namespace

std::vector<KernelSource> read_triton_kernels(std::string_view text) {
  return TritonReader(text).read();
}

Result<std::vector<KernelSource>> read_kernels(const std::string& path, std::string_view text) {
  std::vector<KernelSource> kernels;
  if (ends_with(path, ".cl")) {
    kernels = read_c_kernels(text, false);
  } else if (ends_with(path, ".cu") || ends_with(path, ".cuh")) {
    kernels = read_c_kernels(text, true);
  } else if (ends_with(path, ".py")) {
    kernels = read_triton_kernels(text);
  } else {
    return error(Code::kInvalid,
                 "'{}': kernels are read from .cl (OpenCL C), .cu and .cuh (CUDA C++) and .py "
                 "(Triton)",
                 path);
  }
  if (kernels.empty())
    return error(Code::kInvalid, "'{}' has no kernel: looked for {}", path,
                 ends_with(path, ".py")   ? "functions under @triton.jit"
                 : ends_with(path, ".cl") ? "__kernel functions with a body"
                                          : "__global__ functions with a body");
  return kernels;
}

}  // namespace purlin::tune
