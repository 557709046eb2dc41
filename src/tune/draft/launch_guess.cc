// SPDX-License-Identifier: Apache-2.0
#include "tune/draft/launch_guess.h"

#include "base/text.h"
#include "tune/draft/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace purlin::tune {
namespace {

using namespace source_text;

constexpr std::array<const char*, 3> kLetters = {"X", "Y", "Z"};

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != text.npos; });
}

bool is_integer(const SourceArgument& one) {
  return !one.pointer && (starts_with(one.dtype, "i") || starts_with(one.dtype, "u"));
}

bool is_stride(const std::string& name) {
  const std::string text = lower(name);
  return contains_any(text, {"stride", "pitch"}) ||
         (starts_with(text, "ld") && text.size() >= 2 && text.size() <= 4);
}

bool names_dimension(const std::string& name) {
  static const std::set<std::string> kNames = {
      "n",     "m",    "k",      "b",        "h",       "w",      "c",     "d",
      "s",     "t",    "l",      "r",        "nx",      "ny",     "nz",    "row",
      "col",   "rows", "cols",   "width",    "dim",     "total",  "depth", "height",
      "heads", "seq",  "hidden", "channels", "samples", "points", "bins"};
  const std::string text = lower(name);
  return kNames.count(text) > 0 ||
         contains_any(text, {"width", "height", "rows", "cols", "length", "size", "count", "elem",
                             "dim", "batch", "seqlen", "num_", "n_", "_n", "_len"});
}

// BLOCK_X, THREADS, WG; not ITEMS_PER_THREAD.
bool is_block_size(const std::string& text) {
  return contains_any(text, {"block", "tile", "thread", "group", "wg", "tpb"}) &&
         !contains_any(text, {"per_"});
}

class LaunchGuesser {
 public:
  explicit LaunchGuesser(const KernelSource& kernel) : kernel_(kernel) {}

  LaunchGuess guess() {
    dimensions();
    for (const SourceParameter& parameter : kernel_.parameters)
      guess_.parameters.push_back(values_of(parameter));
    if (kernel_.language == "triton")
      triton_launch();
    else
      launch();
    return std::move(guess_);
  }

 private:
  void dimensions() {
    std::vector<std::string>& all = guess_.dimensions;
    const auto take = [&](auto&& wanted) {
      for (const SourceArgument& one : kernel_.arguments)
        if (is_integer(one) && !is_stride(one.name) && usable(one.name) && wanted(one))
          all.push_back(one.name);
    };
    take([&](const SourceArgument& one) {
      return names_dimension(one.name) ||
             std::any_of(kernel_.axes.begin(), kernel_.axes.end(),
                         [&](const SourceAxis& axis) { return axis.bound == one.name; });
    });
    if (all.empty())
      take([](const SourceArgument& one) {
        return !contains_any(lower(one.name), {"offset", "seed", "flag", "start", "begin", "iter"});
      });
    if (all.empty()) {
      guess_.dimension_added = true;
      all.emplace_back(std::any_of(kernel_.arguments.begin(), kernel_.arguments.end(),
                                   [](const SourceArgument& one) { return one.name == "N"; })
                           ? "ELEMENTS"
                           : "N");
    }
    guess_.extent = all.size() == 1   ? 1 << 20
                    : all.size() == 2 ? 1 << 10
                    : all.size() == 3 ? 128
                                      : 32;
  }

  // Names that a spec's expressions may have.
  static bool usable(const std::string& name) {
    static const std::set<std::string> kWords = {"and", "or", "not", "in", "if", "else"};
    return !starts_with(lower(name), "device_") && kWords.count(name) == 0;
  }

  static GuessedParameter values_of(const SourceParameter& parameter) {
    GuessedParameter out;
    out.name = parameter.name;
    out.comment = parameter.origin;
    const std::string text = lower(parameter.name);
    if (!parameter.values.empty()) {
      out.values = parameter.values;
      out.preset = out.values.front();
      return out;
    }
    const bool size = is_block_size(text);
    if (parameter.preset) {
      out.preset = *parameter.preset;
    } else {
      out.preset = !size ? 1 : contains_any(text, {"block", "tile"}) ? 16 : 64;
      out.comment += "; check: its default";
    }
    const std::int64_t at = out.preset;
    if (parameter.elsewhere) {
      out.values = {at};
      out.comment += "; not in the body of this kernel";
      return out;
    }
    const bool power = at > 0 && (at & (at - 1)) == 0;
    const bool flag = contains_any(text, {"use_", "enable", "with_", "is_", "has_"});
    if (at == 0 || (at == 1 && flag)) {
      out.values = {0, 1};
    } else if (!power) {
      out.values = {at};
    } else {
      // A size may shrink and grow; a count per thread grows.
      for (std::int64_t value = std::max<std::int64_t>(1, at / 4); value <= at * 4; value *= 2)
        if (value <= 1024 || value == at) out.values.push_back(value);
    }
    return out;
  }

  bool has_parameter(const std::string& name) const {
    return std::any_of(guess_.parameters.begin(), guess_.parameters.end(),
                       [&](const GuessedParameter& one) { return one.name == name; });
  }

  // Macros that look like the size of a block.
  std::vector<std::string> block_names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < guess_.parameters.size(); ++i) {
      const std::string& name = guess_.parameters[i].name;
      const bool elsewhere = i < kernel_.parameters.size() && kernel_.parameters[i].elsewhere;
      if (!elsewhere && is_block_size(lower(name))) names.push_back(name);
    }
    return names;
  }

  std::size_t axes() const {
    for (std::size_t axis = 3; axis > 0; --axis)
      if (kernel_.axes[axis - 1].used) return axis;
    return 1;
  }

  void launch() {
    const std::size_t count = axes();
    for (std::size_t axis = 0; axis < count; ++axis) {
      const std::string block = block_of(axis, count);
      std::string per_block = block;
      for (const std::string& factor : kernel_.axes[axis].factors)
        if (factor != block) per_block += " * " + factor;
      guess_.block.push_back(block);
      guess_.grid.push_back(fmt::format("ceil_div({}, {})", extent_of(axis, count), per_block));
    }
    if (std::any_of(guess_.block.begin(), guess_.block.end(),
                    [](const std::string& text) { return !whole_number(text); }))
      guess_.constraints.push_back(join(guess_.block, " * ") + " <= device_max_threads");
  }

  std::string block_of(std::size_t axis, std::size_t count) {
    if (axis < kernel_.required_block.size()) return kernel_.required_block[axis];
    const std::vector<std::string> names = block_names();
    for (const std::string& name : names)
      if (count > 1 && ends_with(lower(name), lower(kLetters[axis]))) return name;
    if (names.size() == 1 && (count == 1 || kernel_.shares_memory)) return names.front();
    if (count == 1 && !names.empty()) return names.front();
    return add_block(axis, count);
  }

  // The size of a block is the caller's choice, so it is a parameter even if the source has none.
  std::string add_block(std::size_t axis, std::size_t count) {
    GuessedParameter block;
    block.name = count == 1 ? "BLOCK" : fmt::format("BLOCK_{}", kLetters[axis]);
    while (has_parameter(block.name) || is_fixed(block.name)) block.name = "LAUNCH_" + block.name;
    block.comment = "threads of a block; the source has no constant for it";
    if (count == 1) {
      block.values = {32, 64, 128, 256, 512, 1024};
      block.preset = 256;
    } else if (count == 2) {
      block.values = axis == 0 ? std::vector<std::int64_t>{8, 16, 32, 64}
                               : std::vector<std::int64_t>{1, 2, 4, 8, 16};
      block.preset = 16;
    } else {
      block.values = {1, 2, 4, 8};
      block.preset = axis == 0 ? 8 : 4;
    }
    if (kernel_.shares_memory) {
      block.values = {block.preset};
      guess_.block_fixed = true;
    }
    guess_.parameters.push_back(block);
    return block.name;
  }

  bool is_fixed(const std::string& name) const {
    return std::find(kernel_.fixed.begin(), kernel_.fixed.end(), name) != kernel_.fixed.end();
  }

  std::string extent_of(std::size_t axis, std::size_t count) const {
    const std::vector<std::string>& all = guess_.dimensions;
    if (const std::string& bound = kernel_.axes[axis].bound;
        std::find(all.begin(), all.end(), bound) != all.end())
      return bound;
    if (count == 1) return join(all, " * ");
    static const std::array<std::vector<std::string>, 3> kNames = {
        {{"width", "cols", "col", "w", "nx", "x", "n"},
         {"height", "rows", "row", "h", "ny", "y", "m"},
         {"depth", "nz", "z", "batch", "b"}}};
    for (const std::string& wanted : kNames[axis])
      for (const std::string& name : all)
        if (lower(name) == wanted) return name;
    return axis == 0 ? all.back() : all.size() > axis ? all[all.size() - 1 - axis] : all.front();
  }

  // A program of Triton is a block; its constants say how much it covers.
  void triton_launch() {
    std::vector<std::string> names = block_names();
    const std::size_t count = axes();
    for (std::size_t axis = 0; axis < count; ++axis) {
      std::vector<std::string> parts;
      const std::vector<std::string>& all = guess_.dimensions;
      if (count == 1 && all.size() >= 2 && names.size() >= 2) {
        // One axis over the tiles of a matrix.
        for (std::size_t i = 0; i < 2; ++i)
          parts.push_back(fmt::format("ceil_div({}, {})", all[i], names[i]));
      } else if (names.empty()) {
        parts.push_back(all[std::min(axis, all.size() - 1)]);
      } else {
        const std::string& name = names[std::min(axis, names.size() - 1)];
        parts.push_back(
            fmt::format("ceil_div({}, {})",
                        count == 1 ? join(all, " * ") : all[std::min(axis, all.size() - 1)], name));
      }
      guess_.grid.push_back(join(parts, " * "));
    }
    guess_.block = {has_parameter("num_warps") ? "num_warps * 32" : "128"};
  }

  const KernelSource& kernel_;
  LaunchGuess guess_;
};

// "a" of "a_ptr", "A", "matA".
char matrix_letter(const std::string& name) {
  std::string text = lower(name);
  for (const char* suffix : {"_ptr", "ptr"})
    if (ends_with(text, suffix)) text.resize(text.size() - std::string(suffix).size());
  if (text.size() > 1 && text[1] == '_') text.resize(1);
  return text.size() == 1 ? text[0] : '\0';
}

}  // namespace

LaunchGuess guess_launch(const KernelSource& kernel) { return LaunchGuesser(kernel).guess(); }

std::vector<std::string> guess_shape(const SourceArgument& argument, const LaunchGuess& guess) {
  std::vector<std::string> shape = guess.dimensions;
  // A product of matrices has the same names everywhere.
  const auto named = [&](const char* name) {
    return std::find_if(shape.begin(), shape.end(),
                        [&](const std::string& one) { return lower(one) == name; });
  };
  if (shape.size() == 3 && named("m") != shape.end() && named("n") != shape.end() &&
      named("k") != shape.end()) {
    const std::string m = *named("m"), n = *named("n"), k = *named("k");
    const char letter = matrix_letter(argument.name);
    if (letter == 'a') shape = {m, k};
    if (letter == 'b') shape = {k, n};
    if (letter == 'c') shape = {m, n};
  }
  if (argument.width > 1) shape.push_back(std::to_string(argument.width));
  return shape;
}

std::string guess_value(const SourceArgument& argument, const KernelSource& kernel,
                        const LaunchGuess& guess) {
  const auto& all = guess.dimensions;
  if (std::find(all.begin(), all.end(), argument.name) != all.end()) return argument.name;
  if (!is_integer(argument)) return "1.0";
  if (!is_stride(argument.name))
    return contains_any(lower(argument.name), {"offset", "start", "begin"}) ? "0" : "1";
  // Of strides with one beginning, the last is that of neighbours: stride_am, stride_ak.
  const std::string beginning = argument.name.substr(0, argument.name.size() - 1);
  bool later = !starts_with(lower(argument.name), "stride");  // lda: that of rows
  bool passed = false;
  for (const SourceArgument& one : kernel.arguments) {
    later |= passed && starts_with(one.name, beginning) && is_stride(one.name);
    passed |= one.name == argument.name;
  }
  return later ? all.back() : "1";
}

}  // namespace purlin::tune
