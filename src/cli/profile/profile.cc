// SPDX-License-Identifier: Apache-2.0
// `purlin profile`: runs a program under capture, writes the profile, prints the report.
#include "analyze/phase/slice.h"
#include "analyze/report/report.h"
#include "analyze/report/text.h"
#include "base/files.h"
#include "base/regex.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/profile/measured_ceilings.h"
#include "model/device/counter_cards.h"
#include "profile/format/file.h"
#include "profile/launcher.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unistd.h>

namespace purlin::cli {
namespace {

class ProfileCommand : public Command {
 public:
  std::string_view name() const override { return "profile"; }
  std::string_view summary() const override {
    return "Run a program under capture and report its kernels";
  }
  VerbText text() const override {
    return {
        .description =
            "Runs COMMAND unchanged, with its child processes, and records the kernels that it "
            "launches through CUDA or OpenCL. The report goes to stdout when the program has "
            "ended. No recompilation is necessary. After a kill, only the last second is missing.",
        .examples = {{"purlin profile -o run.plprof -- python3 train.py --epochs 1"},
                     {"purlin profile --counters -- python3 train.py"},
                     {"purlin profile --counters full --kernel 'gemm|attention' -- ./program"},
                     {"purlin profile --sample auto -- python3 train.py",
                      "Always on: the budget holds over all runs"},
                     {"purlin report run.plprof"}},
        .exit_codes = {{0,
                        "The command succeeded; other codes are its own, 128 + N after signal N"},
                       {2,
                        "The command cannot start, nothing can be recorded, or the profile cannot "
                        "be written"}},
        .see = {"docs/guide/profiling.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("-o,--output", output_, "Profile to write (default: purlin-profile-PID.plprof)",
                 "FILE");
    flags.option("--budget", budget_, "Maximum overhead of CUDA capture, a share of the time",
                 "SHARE");
    flags.flag("--full", full_,
               {"Record every launch with a timeline, without overhead limit",
                "The overhead is 13 to 60 % for programs with tiny launches."});
    flags.optional_value("--windows", windows_, "on",
                         {"Record in windows where every launch exceeds the budget",
                          "The windows represent the whole run. Each launch of the program then "
                          "takes about 0.5 us longer. With auto, windows are used where --sample "
                          "auto has found enough budget for them."},
                         "auto|on|off");
    flags.option("--window", window_, "Windows with a timeline: 2s@60s is 2 seconds a minute",
                 "TIME@TIME");
    flags.option(
        "--sample", sample_,
        {"Profile one run in N; auto: as many runs as the budget allows",
         "Of a run with ranks, one rank in N is profiled. Other runs and ranks are not slowed. "
         "With auto, the overhead of earlier runs decides, and the budget holds over all runs."},
        "1/N|auto");
    flags.flag("--waits", waits_,
               {"Also record how long the host waits for the device",
                "Steps of many short launches take half as long again while it records."});
    flags.flag("--idle", idle_, "Record nothing until `purlin capture` starts the capture");
    flags.optional_value("--stalls", stalls_, "262144",
                         {"Sample the source lines where warps stall, and the reasons",
                          "One sample of each SM in CYCLES cycles, 262144 without a value."},
                         "CYCLES");
    flags.optional_value("--counters", counters_, "memory,tensor,caches,issue",
                         {"Read hardware counters: topics, flops, all or full",
                          "Without a value, the topics are memory,tensor,caches,issue. Counters "
                          "are read for some launches. With full, kernels run again."},
                         "TOPICS");
    flags.option("--kernel", kernels_, "Counters only of kernels whose name matches", "REGEX");
    flags.option("--launches", replays_, "Launches of each kernel that --counters full repeats");
    flags.flag("--anonymous", anonymous_,
               {"Leave out host, user, job, container and pod",
                "Of commands, only the program's name is stored."});
    flags.option("--build", build_, "Label of the code under test, stored in the profile", "LABEL");
    flags.option("--ops", ops_,
                 {"Record the op of each launch, from NVTX ranges",
                  "The ranges are those that the program marks with NVTX or PyTorch's emit_nvtx. "
                  "With auto, recording starts with the first range."},
                 "auto|on|off");
    flags.option(
        "--copies", copies_,
        {"Record memcpy and memset",
         "They are recorded during the whole run or not at all. With auto, they are not recorded "
         "with --windows, nor where --sample auto knows of too many launches for the budget."},
        "auto|on|off");
    flags.option("--torch", torch_,
                 {"Ops and shapes of PyTorch and JAX programs",
                  "PyTorch's profiler records ten steps of the steady state, or a second where "
                  "there are no optimizer steps. With auto, it does so except with --full, "
                  "--counters and --stalls, which need CUPTI during the whole run. With daemon, "
                  "libkineto's daemon protocol takes the place of a hook, and Purlin itself "
                  "records nothing (--idle). PyTorch then opens the GPU at import, so CUDA in "
                  "forked children fails. JAX programs need no trace."},
                 "hook|daemon|off");
    flags.option("--torch-rank", torch_rank_, "Rank whose steps PyTorch's profiler records");
    flags.flag("--gemm-shapes", gemm_shapes_,
               "Record sizes and types of cuBLAS and cuBLASLt products");
    flags.flag(
        "--json", json_,
        {"Print the report as JSON", "The standard output of the command then goes to stderr."});
    flags.option("--seal-period", period_, "Time between writes, the maximum loss when killed",
                 "TIME");
    flags.command(command_);
  }

  Result<int> run(Context& context) override {
    profile::CaptureOptions options;
    options.command = command_;
    options.full = full_;
    options.idle = idle_;
    options.waits = waits_;
    PURLIN_TRY(parse_choice("--windows", windows_, options.windows));
    PURLIN_TRY(parse_budget(options));
    PURLIN_TRY(parse_window(options));
    PURLIN_TRY(parse_sample(options));
    PURLIN_TRY(parse_counters(options));
    options.stdout_to_stderr = json_;
    options.build = build_;
    options.anonymous = anonymous_;
    options.gemm_shapes = gemm_shapes_;
    PURLIN_TRY(parse_choice("--ops", ops_, options.ops));
    PURLIN_TRY(parse_choice("--copies", copies_, options.copies));
    PURLIN_TRY(parse_torch(options.torch));
    // libkineto finds CUPTI before Purlin's hooks are there: two clients would not see each other.
    options.idle = options.idle || options.torch.daemon;
    const std::optional<double> period = parse_duration_s(period_);
    if (!period || *period < 0.01 || *period > 3600)
      return error(Code::kInvalid, "--seal-period '{}': give a time from 10ms to 1h", period_);
    options.seal_period_s = *period;
    PURLIN_ASSIGN(options.stall_period_log2, stall_period());
    if (output_.empty()) output_ = fmt::format("purlin-profile-{}.plprof", ::getpid());
    // Checked before a run of hours.
    const std::string folder = parent_path(absolute_path(output_));
    if (is_directory(output_))
      return error(Code::kInvalid, "'{}' is a folder: name the file to write, such as {}", output_,
                   join_path(output_, "run.plprof"));
    if (!is_directory(folder) || ::access(folder.c_str(), W_OK) != 0)
      return error(Code::kIo, "cannot write '{}': the folder {} does not exist or is not writable",
                   output_, folder);

    if (counters_ == "full")
      context.log.warn(
          "kernels {}are run again and again for their counters: the program is much "
          "slower, and its times are not those of a usual run",
          kernels_.empty() ? "" : "that match '" + kernels_ + "' ");
    PURLIN_ASSIGN(profile::CaptureResult result, profile::run_capture(options));
    note_cuda_only(result.profile);
    PURLIN_TRY(write(result.profile));
    context.log.info("profile: {}", output_);
    for (const CoverageNote& note : result.profile.coverage.notes)
      if (note.cause == "not_sampled" || note.cause == "spool_failed")
        context.log.warn("not recorded: {}", note.text);
    PURLIN_ASSIGN(analyze::TimelineAnalysis timeline,
                  analyze::select_phase(result.profile, analyze::PhaseChoice::kSteadyState));
    const analyze::Report report =
        analyze::build_report(result.profile, std::move(timeline), analyze::GroupBy::kKernel,
                              measured_ceilings(result.profile.environment));
    context.print(json_ ? to_json(report).dump(2) + "\n"
                        : analyze::render_text(report, context.terminal));
    if (!json_)
      context.print(report.kernels.empty() ? next_step({"purlin", "doctor"})
                                           : next_step({"purlin", "advise", output_}));
    return result.exit_code;
  }

 private:
  static Status parse_choice(const char* flag, const std::string& text, profile::Choice& choice) {
    if (text != "auto" && text != "on" && text != "off")
      return error(Code::kInvalid, "{} '{}': give auto, on or off", flag, text);
    choice = text == "on"    ? profile::Choice::kOn
             : text == "off" ? profile::Choice::kOff
                             : profile::Choice::kAuto;
    return Status::ok();
  }
  Status parse_torch(profile::TorchOptions& options) const {
    if (torch_ != "auto" && torch_ != "hook" && torch_ != "daemon" && torch_ != "off")
      return error(Code::kInvalid, "--torch '{}': give auto, hook, daemon or off", torch_);
    if (torch_rank_ < 0)
      return error(Code::kInvalid, "--torch-rank {}: give a rank, 0 or more", torch_rank_);
    const bool cupti_needed = full_ || !counters_.empty() || !stalls_.empty();
    options.daemon = torch_ == "daemon";
    if (options.daemon && cupti_needed)
      return error(Code::kInvalid,
                   "--torch daemon leaves CUPTI to PyTorch: leave out --full, --counters and "
                   "--stalls, or use --torch hook");
    options.on = options.daemon || torch_ == "hook" || (torch_ == "auto" && !cupti_needed);
    options.jax = torch_ == "auto" || torch_ == "hook";  // needs no CUPTI
    options.on_request = idle_;
    options.rank = torch_rank_;
    return Status::ok();
  }

  Status parse_budget(profile::CaptureOptions& options) const {
    std::string_view text = budget_;
    double scale = 1;
    if (!text.empty() && text.back() == '%') text.remove_suffix(1), scale = 0.01;
    const std::optional<double> value = parse_double(text);
    // A bare 1 would be the whole time; the user means 1 %.
    if (!value || !(*value * scale >= 0.0001 && *value * scale <= 1) || (scale == 1 && *value == 1))
      return error(Code::kInvalid, "--budget '{}': give a share from 0.01% to 100%, such as 1%",
                   budget_);
    options.budget = *value * scale;
    return Status::ok();
  }

  Status parse_window(profile::CaptureOptions& options) const {
    if (window_.empty()) return Status::ok();
    if (full_)
      return error(Code::kInvalid,
                   "--window is about parts of a run and --full about all of it: "
                   "give one of them");
    const std::vector<std::string> parts = split(window_, '@');
    std::optional<double> length, cell;
    if (parts.size() == 2) length = parse_duration_s(parts[0]), cell = parse_duration_s(parts[1]);
    if (!length || !cell || *length < 0.01 || *length > *cell || *cell > 86'400)
      return error(Code::kInvalid,
                   "--window '{}': give a length from 10ms and how often, at most a day, such as "
                   "2s@60s",
                   window_);
    options.full_window_s = *length;
    options.full_cell_s = *cell;
    return Status::ok();
  }

  Status parse_sample(profile::CaptureOptions& options) const {
    if (sample_.empty()) return Status::ok();
    options.sample_auto = sample_ == "auto";
    if (options.sample_auto) return Status::ok();
    const std::optional<double> n =
        sample_.starts_with("1/") ? parse_double(sample_.substr(2)) : std::nullopt;
    if (!n || *n < 1 || *n > 1'000'000 || *n != static_cast<int>(*n))
      return error(Code::kInvalid, "--sample '{}': give 1/N, such as 1/16, or auto", sample_);
    options.sample = static_cast<int>(*n);
    return Status::ok();
  }

  // The exponent of the nearest power of two, which the GPU supports; 0 without --stalls.
  Result<std::uint32_t> stall_period() const {
    if (stalls_.empty()) return std::uint32_t{0};
    const std::optional<std::int64_t> cycles = parse_int(stalls_);
    if (!cycles || *cycles < 32 || *cycles > INT32_MAX)
      return error(Code::kInvalid,
                   "--stalls '{}': give the GPU cycles between two samples, from 32 to {}; a power "
                   "of two is used exactly",
                   stalls_, INT32_MAX);
    return static_cast<std::uint32_t>(std::lround(std::log2(static_cast<double>(*cycles))));
  }

  Status parse_counters(profile::CaptureOptions& options) const {
    std::vector<std::string_view> topics;
    if (counters_.empty() && (!kernels_.empty() || replays_ != options.counter_replays))
      return error(Code::kInvalid,
                   "--kernel and --launches select kernels for counters: give "
                   "--counters, too");
    if (!counters_.empty() && counters_ != "full" && !parse_counter_topics(counters_, topics))
      return error(Code::kInvalid,
                   "--counters '{}': give full, all, or some of {} with commas between", counters_,
                   join({std::begin(kCounterTopics), std::end(kCounterTopics)}, ", "));
    if (!counters_.empty() && !stalls_.empty())
      return error(Code::kInvalid,
                   "--counters and --stalls need the same hardware: profile the program twice");
    // The capture library matches with libc's functions. What both read alike is allowed.
    if (!kernels_.empty()) {
      const Result<Regex> regex =
          Regex::compile(kernels_, {.ignore_case = false, .syntax = Regex::Syntax::kPosix});
      if (!regex.is_ok())
        return error(Code::kInvalid, "--kernel '{}' is no regular expression (POSIX, extended): {}",
                     kernels_, regex.status().message());
    }
    if (replays_ < 1 || replays_ > 1000)
      return error(Code::kInvalid, "--launches {}: give 1 to 1000", replays_);
    options.counters = counters_;
    options.counter_kernels = kernels_;
    options.counter_replays = replays_;
    return Status::ok();
  }

  // Notes the requested options that need CUDA, where the program used only OpenCL.
  void note_cuda_only(Profile& profile) const {
    const std::vector<ProcessInfo>& processes = profile.processes;
    if (processes.empty() || !std::all_of(processes.begin(), processes.end(),
                                          [](const auto& one) { return one.layer == "opencl"; }))
      return;
    std::vector<std::string> asked;
    const auto note = [&](bool given, const char* flag) {
      if (given) asked.emplace_back(flag);
    };
    note(!counters_.empty(), "--counters");
    note(!stalls_.empty(), "--stalls");
    note(waits_, "--waits");
    note(idle_, "--idle");
    note(!window_.empty(), "--window");
    note(windows_ == "on", "--windows");
    note(ops_ == "on", "--ops on");
    note(gemm_shapes_, "--gemm-shapes");
    note(copies_ == "off", "--copies off");
    if (!asked.empty())
      profile.coverage.notes.push_back(
          {"cuda_only", join(asked, ", ") + ": of CUDA alone; this program used OpenCL, which is "
                                            "recorded launch by launch"});
  }

  // A full disk must not lose a run of hours.
  Status write(const Profile& profile) {
    const Status written = profile::write_profile(output_, profile);
    if (written.is_ok()) return written;
    const Result<std::string> folder = make_temporary_directory("purlin-profile");
    if (!folder.is_ok()) return written;
    const std::string kept = join_path(*folder, "run.plprof");
    if (profile::write_profile(kept, profile).is_ok())
      return written.with_context(fmt::format("the profile is kept in {}", kept));
    (void)remove_tree(*folder);
    return written;
  }

  std::string output_, build_, period_ = "1s", ops_ = "auto", copies_ = "auto", windows_ = "auto",
                               budget_ = "1%", torch_ = "auto", window_, sample_, stalls_,
                               counters_, kernels_;
  int torch_rank_ = 0;
  int replays_ = profile::CaptureOptions().counter_replays;
  bool full_ = false, json_ = false, gemm_shapes_ = false, idle_ = false, waits_ = false,
       anonymous_ = false;
  std::vector<std::string> command_;
};

}  // namespace

std::unique_ptr<Command> make_profile_command() { return std::make_unique<ProfileCommand>(); }

}  // namespace purlin::cli
