// SPDX-License-Identifier: Apache-2.0
// `purlin init`: drafts a kernel spec from the source of a kernel.
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "model/spec/spec.h"
#include "tune/draft/spec_draft.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr std::size_t kMaxInitSource = std::size_t{16} << 20;

class InitCommand : public Command {
 public:
  std::string_view name() const override { return "init"; }
  std::string_view summary() const override {
    return "Write a kernel spec from the source of a kernel";
  }
  VerbText text() const override {
    return {
        .description =
            "Reads the signature of a kernel in OpenCL C (.cl), CUDA C++ (.cu, .cuh) or Triton "
            "(.py). Writes a spec for `purlin tune` with the arguments, the launch and sizes to "
            "fill in. Macros and template arguments become parameters.",
        .more =
            "Macros between #ifndef and #endif become parameters. Names in capitals that nothing "
            "defines, template parameters and constexpr arguments do too. The size of a "
            "block is a parameter in any case. What a signature does not say is a guess, with "
            "a comment that begins with \"check:\".\n\nThe reference is the kernel with its "
            "default config. A Triton kernel is tuned by @purlin.autotune, not by `purlin "
            "tune`. Its spec is for the cache.",
        .examples = {{"purlin init saxpy.cl"},
                     {"purlin init kernels.cu --kernel scan -o scan.toml"}},
        .exit_codes = {{0, "Done"}, {2, "No kernel, several without --kernel, or the spec exists"}},
        .see = {"docs/guide/tuning.md", "docs/formats/spec.md"}};
  }

  void declare(Flags& flags) override {
    flags.positional("SOURCE", source_, "File with the kernel");
    flags.option("--kernel", kernel_, "Kernel, where the file has several", "NAME");
    flags.option("-o,--output", output_,
                 "Spec to write (default: next to the source, with the kernel's name)", "FILE");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const std::string text, read_file(source_, kMaxInitSource));
    PURLIN_ASSIGN(const std::vector<tune::KernelSource> kernels, tune::read_kernels(source_, text));
    PURLIN_ASSIGN(const tune::KernelSource* kernel, choose(kernels));
    const std::string path =
        output_.empty() ? join_path(parent_path(source_), kernel->name + ".toml") : output_;
    if (file_exists(path))
      return error(Code::kInvalid,
                   "'{}' exists and is not overwritten; name another file with -o, or remove it",
                   path);
    PURLIN_ASSIGN(const tune::SpecDraft draft, tune::draft_spec(*kernel, source_from(path)));
    // What is written must be read.
    const SourceReader read = [](const std::string& file) {
      return read_file(file, kMaxInitSource);
    };
    if (const auto spec = parse_spec(draft.text, path, read); !spec.is_ok())
      return spec.status().with_context(
          fmt::format("no spec is written: kernel '{}' of {}", kernel->name, source_));
    PURLIN_TRY(write_atomic(path, draft.text));
    context.print(report(*kernel, path, draft, context.terminal));
    return kExitOk;
  }

 private:
  Result<const tune::KernelSource*> choose(const std::vector<tune::KernelSource>& kernels) const {
    std::vector<std::string> names;
    for (const tune::KernelSource& kernel : kernels) {
      if (kernel.name == kernel_ || (kernel_.empty() && kernels.size() == 1)) return &kernel;
      names.push_back(kernel.name);
    }
    if (!kernel_.empty())
      return error(Code::kNotFound, "'{}' has no kernel '{}'; it has {}", source_, kernel_,
                   join(names, ", "));
    return error(Code::kInvalid, "'{}' has several kernels; choose one: --kernel {}", source_,
                 join(names, ", --kernel "));
  }

  // The source as seen from the folder of the spec.
  std::string source_from(const std::string& spec) const {
    const std::string folder = absolute_path(parent_path(spec)), file = absolute_path(source_);
    return parent_path(file) == folder ? base_name(file) : file;
  }

  static std::string report(const tune::KernelSource& kernel, const std::string& path,
                            const tune::SpecDraft& draft, const Terminal& terminal) {
    std::string out = fmt::format("{}: a spec of kernel {} with {} and {}\n", path, kernel.name,
                                  counted(kernel.arguments.size(), "argument"),
                                  counted(draft.parameters, "parameter"));
    for (const std::string& what : draft.checks) out += prose_line("check " + what, terminal);
    return out + (kernel.language == "triton" ? next_step({"purlin", "space", path})
                                              : next_step({"purlin", "tune", path}));
  }

  std::string source_, kernel_, output_;
};

}  // namespace

std::unique_ptr<Command> make_init_command() { return std::make_unique<InitCommand>(); }

}  // namespace purlin::cli
