// SPDX-License-Identifier: Apache-2.0
// `purlin advise`: what to change, what it would save, and what shows it.
#include "analyze/advise/advice.h"
#include "analyze/report/supplement.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"
#include "cli/profile/measured_ceilings.h"

#include <optional>

namespace purlin::cli {
namespace {

class AdviseCommand : public Command {
 public:
  std::string_view name() const override { return "advise"; }
  std::string_view summary() const override {
    return "What to change, and how much of the end-to-end time it would save";
  }
  std::string_view details() const override {
    return "Reads profiles, Purlin's own or other tools' (see `purlin import`), and says at which\n"
           "level the time is lost (schedule, kernels, algorithm, hardware), then what to change,\n"
           "greatest saving first. Each saving is an interval of the end-to-end time that "
           "Amdahl's\n"
           "law bounds, with the evidence it rests on. Also: what would not help, which kernels "
           "to\n"
           "tune, and with --against which ones got slower. Where nothing is worth doing, or the\n"
           "profile does not tell, it says so.\n\n"
           "Examples:\n"
           "  purlin advise trace.json.gz\n"
           "  purlin advise --json run.plprof | jq '.interventions[0]'\n"
           "  purlin advise --against monday.json.gz tuesday.json.gz\n\n"
           "How to read it: docs/guide/advise.md; JSON: docs/formats/advise.md.\n"
           "Exit code: 0, 2 if a file cannot be read, 3 if the profile holds no kernels: no "
           "advice\n"
           "without a profile.\n";
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "profiles to read");
    flags.option("--against", against_, "the profile before: what got slower since", "FILE");
    flags.option("--top", top_, "interventions to show in the text, 0 for all");
    flags.option("--list", list_, "entries of each of the lists 'tune these' and 'got slower'");
    flags.option("--smallest", smallest_, "leave out what saves less, as a share of the time");
    flags.option("--gpu", gpu_, "the GPU, where the profile does not name it: V100-SXM2, H200",
                 "NAME");
    flags.list("--shape", shapes_,
               "the problem of a kernel, where it is not recorded: "
               "sgemm=gemm,f32,M=4096,N=4096,K=1024; may be repeated",
               "KERNEL=CLASS,DTYPE,DIMENSIONS");
    flags.option("--stalls", stalls_, "stall samples of its kernels: CSV, or Nsight Compute's",
                 "FILE");
    flags.option("--target-compute", compute_, "what share of the arithmetic roof can be reached");
    flags.option("--target-memory", memory_, "what share of the bandwidth can be reached");
    flags.flag("--json", json_, "print one JSON document");
  }

  Result<int> run(Context& context) override {
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    if (list_ < 0) return error(Code::kInvalid, "--list {}: give how many entries", list_);
    if (!(smallest_ >= 0 && smallest_ < 1))
      return error(Code::kInvalid, "--smallest {}: give a share, 0.01 for 1 %", smallest_);
    for (const auto& [flag, value] :
         {std::pair{"--target-compute", compute_}, std::pair{"--target-memory", memory_}})
      if (!(value > 0 && value <= 1))
        return error(Code::kInvalid, "{} {}: give a share of the roof above 0, at most 1", flag,
                     value);
    PURLIN_ASSIGN(Profile profile, read_profiles(context, files_));
    if (!gpu_.empty()) PURLIN_TRY(analyze::name_gpu(profile, gpu_).with_context("--gpu"));
    for (const std::string& shape : shapes_)
      PURLIN_TRY(analyze::give_shape(profile, shape).with_context("--shape"));
    if (!stalls_.empty()) {
      PURLIN_ASSIGN(const Profile samples,
                    read_profiles(context, std::vector<std::string>{stalls_}));
      PURLIN_TRY(analyze::give_stalls(profile, samples).with_context("--stalls"));
    }
    analyze::AdviceOptions options;
    options.targets = {compute_, memory_};
    options.list = static_cast<std::size_t>(list_);
    options.smallest = smallest_;
    std::optional<analyze::Diff> diff;
    if (!against_.empty()) {
      PURLIN_ASSIGN(const Profile before,
                    read_profiles(context, std::vector<std::string>{against_}));
      PURLIN_ASSIGN(diff, analyze::diff_profiles(before, profile));
      diff->a.path = against_;
      options.against = &*diff;
    }
    analyze::Advice advice = analyze::advise(profile, analyze::analyze_timeline(profile),
                                             measured_ceilings(profile.environment), options);
    advice.files = files_;
    if (json_) {
      context.print(to_json(advice).dump(2) + "\n");
    } else {
      context.print(analyze::render_advice(advice, context.terminal, top_));
    }
    return profile.kernels.empty() ? kExitInconclusive : kExitOk;
  }

 private:
  std::vector<std::string> files_, shapes_;
  std::string against_, gpu_, stalls_;
  int top_ = 5, list_ = 5;
  double smallest_ = 0.01, compute_ = 0.78, memory_ = 0.92;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_advise_command() { return std::make_unique<AdviseCommand>(); }

}  // namespace purlin::cli
