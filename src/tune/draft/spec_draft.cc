// SPDX-License-Identifier: Apache-2.0
#include "tune/draft/spec_draft.h"

#include "base/json/json.h"
#include "base/text.h"
#include "tune/draft/launch_guess.h"
#include "tune/draft/source_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::tune {
namespace {

// A basic string of TOML: a source's name may hold anything.
std::string toml_text(const std::string& text) { return json_quote(text); }

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(toml_text(text));
  return "[" + join(all, ", ") + "]";
}

// Labels have letters, digits, '_', '-' and '.'.
std::string label(std::string text) {
  for (char& character : text)
    if (!source_text::is_word(character)) character = '-';
  return text;
}

class SpecWriter {
 public:
  SpecWriter(const KernelSource& kernel, const std::string& file)
      : kernel_(kernel), file_(file), guess_(guess_launch(kernel)) {}

  Result<SpecDraft> write() {
    PURLIN_TRY(check_arguments());
    head();
    problem();
    source();
    parameters();
    launch();
    arguments();
    reference();
    return SpecDraft{std::move(out_), guess_.parameters.size(), std::move(checks_)};
  }

 private:
  Status check_arguments() const {
    for (const SourceArgument& one : kernel_.arguments) {
      if (one.local)
        return error(
            Code::kInvalid,
            "kernel '{}': argument '{}' is local memory whose size the host gives, which a "
            "spec cannot pass; declare it inside of the kernel, with a size from a macro",
            kernel_.name, one.name);
      if (one.dtype.empty())
        return error(Code::kInvalid,
                     "kernel '{}': argument '{}' has a type that a spec cannot pass; there are "
                     "numbers, and buffers of numbers and of their vectors",
                     kernel_.name, one.type);
    }
    if (kernel_.arguments.empty())
      return error(Code::kInvalid, "kernel '{}' takes no arguments: nothing could be verified",
                   kernel_.name);
    return Status::ok();
  }

  void line(const std::string& text) { out_ += text + "\n"; }
  // A line whose comment asks a person to look.
  void check(const std::string& text, const std::string& what) {
    line(fmt::format("{}  # check: {}", text, what));
    checks_.push_back(what);
  }

  void head() {
    line(
        fmt::format("# Spec of the kernel {} in {}, drafted by purlin init. Lines with \"check:\"\n"
                    "# are guesses. docs/formats/spec.md describes each key.",
                    kernel_.name, file_));
    line("schema = \"purlin.spec/1\"");
    line("name = " + toml_text(label(kernel_.name)));
    line("# op = \"gemm\"           # the op class, if it is one that others tune too");
    if (!guess_.constraints.empty()) {
      line("# Configs that break one of these are not compiled.");
      line("constraints = " + quoted_list(guess_.constraints));
    }
    line("");
  }

  void problem() {
    line("[problem]                # the default problem shape");
    for (const std::string& name : guess_.dimensions)
      line(fmt::format("{} = {}", name, guess_.extent));
    checks_.push_back("the extents of [problem]: those of your program");
    line("# check: the extents. Others get a name, for --shape large:");
    line(fmt::format("# [problem.presets.large]\n# {} = {}\n", guess_.dimensions.front(),
                     guess_.extent * 4));
  }

  void source() {
    line("[kernel]");
    line("entry = " + toml_text(kernel_.entry));
    line(fmt::format("[kernel.{}]\nfile = {}", kernel_.language, toml_text(file_)));
    if (kernel_.language == "triton")
      line("# Triton compiles and tunes it: @purlin.autotune (docs/guide/python.md).");
    line("");
  }

  void parameters() {
    for (const std::string& name : kernel_.fixed)
      line(
          fmt::format("# {0} is a constant of the source. For a parameter, write there:\n"
                      "#   #ifndef {0}\n#   #define {0} VALUE\n#   #endif",
                      name));
    if (guess_.parameters.empty()) return;
    line("# Each is given to the compiler as -DNAME=value. The default is the config of today.");
    line("[parameters]");
    for (const GuessedParameter& one : guess_.parameters) {
      std::vector<std::string> values;
      for (const std::int64_t value : one.values) values.push_back(std::to_string(value));
      line(fmt::format("{} = {{values = [{}], default = {}}}  # {}", one.name, join(values, ", "),
                       one.preset, one.comment));
    }
    checks_.push_back("the values of [parameters]");
    line("");
  }

  void launch() {
    line("[launch]");
    check("grid = " + quoted_list(guess_.grid), "the number of blocks");
    const std::string block = "block = " + quoted_list(guess_.block);
    if (guess_.block_fixed)
      check(block, "threads of a block; the source may rely on one size");
    else
      line(block + "  # threads of a block");
    line("");
  }

  void arguments() {
    const bool writes = std::any_of(kernel_.arguments.begin(), kernel_.arguments.end(),
                                    [](const SourceArgument& one) { return one.written; });
    const SourceArgument* last = nullptr;
    for (const SourceArgument& one : kernel_.arguments)
      if (one.pointer) last = &one;
    for (const SourceArgument& one : kernel_.arguments) {
      line("[[arguments]]            # " + comment_of(one.type));
      line("name = " + toml_text(one.name));
      if (one.pointer)
        buffer(one, !writes && &one == last);
      else
        scalar(one);
    }
    line("");
  }

  static std::string comment_of(std::string text) {
    for (char& character : text)
      if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) character = ' ';
    return text.substr(0, 60);
  }

  void buffer(const SourceArgument& one, bool taken_as_output) {
    const char* role = one.written || taken_as_output ? (one.read ? "inout" : "output") : "input";
    if (taken_as_output)
      check(fmt::format("role = \"{}\"", role),
            fmt::format("that {} is what the kernel writes", one.name));
    else
      line(fmt::format("role = \"{}\"", role));
    if (kernel_.language == "triton")
      check("dtype = " + toml_text(one.dtype), fmt::format("the element type of {}", one.name));
    else
      line("dtype = " + toml_text(one.dtype));
    check("shape = " + quoted_list(guess_shape(one, guess_)),
          fmt::format("the extents of {}", one.name));
    if (std::string_view(role) != "output") line("# fill = \"uniform(-1, 1)\"");
  }

  void scalar(const SourceArgument& one) {
    line("role = \"scalar\"");
    line("dtype = " + toml_text(one.dtype));
    const std::string value = guess_value(one, kernel_, guess_);
    if (value == one.name)
      line("value = " + toml_text(value));
    else
      check("value = " + toml_text(value), fmt::format("the value of {}", one.name));
  }

  void reference() {
    line(
        "# The default config is the reference: it finds configs that differ from it, and cannot\n"
        "# find a wrong default. A simple kernel of yours is better (docs/formats/spec.md).\n"
        "[reference]\nconfig = \"default\"\n");
    std::vector<std::string> bytes;
    for (const SourceArgument& one : kernel_.arguments)
      if (one.pointer)
        bytes.push_back(
            fmt::format("{} * {}", bytes_of(one), join(guess_shape(one, guess_), " * ")));
    line("[work]                   # of one launch, for bandwidth and FLOP/s");
    check("bytes = " + toml_text(join(bytes, " + ")), "the bytes that a launch moves");
    line("# flops = \"2 * " + guess_.dimensions.front() + "\"");
    line("\n# [bucket]               # shapes that share a winner; default exact");
    line(fmt::format("# {} = \"pow2\"", guess_.dimensions.front()));
  }

  static int bytes_of(const SourceArgument& one) {
    const auto bits =
        source_text::whole_number(one.dtype.substr(one.dtype.find_first_of("0123456789"), 2));
    return starts_with(one.dtype, "f8") ? 1 : static_cast<int>(bits.value_or(32) / 8);
  }

  const KernelSource& kernel_;
  const std::string& file_;
  const LaunchGuess guess_;
  std::string out_;
  std::vector<std::string> checks_;
};

}  // namespace

Result<SpecDraft> draft_spec(const KernelSource& kernel, const std::string& file) {
  return SpecWriter(kernel, file).write();
}

}  // namespace purlin::tune
