// SPDX-License-Identifier: Apache-2.0
// `purlin advise`: recommended changes, their savings, and the evidence.
#include "analyze/advise/advice.h"
#include "analyze/advise/savings/applied.h"
#include "analyze/advise/training_log.h"
#include "analyze/phase/slice.h"
#include "analyze/report/supplement.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/profile/files.h"
#include "cli/profile/measured_ceilings.h"
#include "cli/profile/outcomes.h"
#include "cli/profile/phase_option.h"
#include "profile/export/export.h"

#include <fmt/format.h>

#include <optional>

namespace purlin::cli {
namespace {

class AdviseCommand : public Command {
 public:
  std::string_view name() const override { return "advise"; }
  std::string_view summary() const override {
    return "Recommend changes, with the end-to-end time each would save";
  }
  VerbText text() const override {
    return {
        .description =
            "Reads profiles of Purlin or of other tools (see `purlin import`). It reports the "
            "level at which time is lost: schedule, kernels, algorithm or hardware. It then "
            "lists changes, largest saving first.",
        .more =
            "Each saving is an interval of the end-to-end time, bounded by Amdahl's law, with "
            "its evidence. The answer also lists changes that would not help, kernels to tune, "
            "and with --against the kernels that became slower. Where no change is worth the "
            "work, or the profile has too little data, the answer reports that. --outcome records "
            "what a change saved, by a profile before it and one after it; five outcomes of a "
            "rule replace its model's interval.",
        .examples = {{"purlin advise trace.json.gz"},
                     {"purlin advise --json run.plprof | jq '.interventions[0]'"},
                     {"purlin advise --against monday.json.gz tuesday.json.gz"},
                     {"purlin advise trace.json.gz --apply cuda_graphs -o after.pftrace"},
                     {"purlin advise --outcome before.json.gz after.json.gz --id cuda_graphs"}},
        .exit_codes = {{0, "Done"},
                       {2, "A file cannot be read"},
                       {3, "The profile holds no kernels"}},
        .see = {"docs/guide/advise.md", "docs/formats/advise.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Profiles to read; - for stdin");
    flags.option("--against", against_, "Earlier profile: also show kernels that became slower",
                 "FILE");
    flags.flag("--outcome", outcome_,
               {"Record what a change saved: FILE before it, FILE after it, and --id",
                "Kept in the state folder, and used by later advice of the same rule."});
    flags.option("--id", id_, "With --outcome: the change that was carried out", "REMEDY");
    flags.option("--apply", apply_,
                 {"Show the timeline replayed with one of the changes",
                  "Give the change's id, or its number in the list."},
                 "ID");
    flags.option("-o,--output", output_, "With --apply: write the replayed timeline for Perfetto",
                 "FILE");
    flags.option("--top", top_, "Interventions in the text, 0 for all");
    flags.option("--list", list_, "Entries of the lists: kernels to tune, slower kernels");
    flags.option("--smallest", smallest_, "Smallest saving to show, as a share of the time");
    flags.option("--data-cut", data_cut_,
                 {"What if the program worked on less data: 60%, or 0.6",
                  "The answer has what that saves, next to the tuning of all kernels."},
                 "SHARE");
    flags.option("--phase", phase_, kPhaseOption, "PHASE");
    flags.option("--gpu", gpu_, "GPU of a profile that does not name it: V100-SXM2, H200", "NAME");
    flags.list("--shape", shapes_,
               {"Problem of a kernel, where not recorded; repeatable",
                "For example sgemm=gemm,f32,M=4096,N=4096,K=1024: kernel name, op class, element "
                "type, dimensions."},
               "KERNEL=PROBLEM");
    flags.option("--stalls", stalls_, "Stall samples of the kernels: CSV, or Nsight Compute's CSV",
                 "FILE");
    flags.option("--training-log", training_log_,
                 "Log of the training: count the steps that a loss scale left out", "FILE");
    flags.option("--target-compute", compute_, "Reachable share of the compute roof");
    flags.option("--target-memory", memory_, "Reachable share of the bandwidth roof");
    flags.flag("--json", json_, {"Print one JSON document", "The schema is purlin.advise/1."});
  }

  Result<int> run(Context& context) override {
    if (!output_.empty() && apply_.empty())
      return error(Code::kInvalid, "-o '{}': only with --apply ID", output_);
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    if (list_ < 0) return error(Code::kInvalid, "--list {}: give how many entries", list_);
    if (!(smallest_ >= 0 && smallest_ < 1))
      return error(Code::kInvalid, "--smallest {}: give a share, 0.01 for 1 %", smallest_);
    PURLIN_ASSIGN(const double data_cut, data_cut_share());
    for (const auto& [flag, value] :
         {std::pair{"--target-compute", compute_}, std::pair{"--target-memory", memory_}})
      if (!(value > 0 && value <= 1))
        return error(Code::kInvalid, "{} {}: give a share of the roof above 0, at most 1", flag,
                     value);
    if (outcome_ != !id_.empty() || (outcome_ && files_.size() != 2))
      return error(Code::kInvalid, "--outcome: give a profile before, one after, and --id");
    PURLIN_ASSIGN(const analyze::PhaseChoice phase, analyze::phase_from_text(phase_));
    if (outcome_) return record(context, phase);
    PURLIN_ASSIGN(Profile profile, read_profiles(context, files_));
    if (!gpu_.empty()) PURLIN_TRY(analyze::name_gpu(profile, gpu_).with_context("--gpu"));
    for (const std::string& shape : shapes_)
      PURLIN_TRY(analyze::give_shape(profile, shape).with_context("--shape"));
    if (!stalls_.empty()) {
      PURLIN_ASSIGN(const Profile samples,
                    read_profiles(context, std::vector<std::string>{stalls_}));
      PURLIN_TRY(analyze::give_stalls(profile, samples).with_context("--stalls"));
    }
    const analyze::TrackRecords records = analyze::track_records(read_outcomes(context));
    analyze::AdviceOptions options;
    options.records = &records;
    options.targets = {compute_, memory_};
    options.list = static_cast<std::size_t>(list_);
    options.smallest = smallest_;
    options.data_cut = data_cut;
    std::optional<analyze::Diff> diff;
    if (!against_.empty()) {
      PURLIN_ASSIGN(const Profile before,
                    read_profiles(context, std::vector<std::string>{against_}));
      PURLIN_ASSIGN(diff, analyze::diff_profiles(before, profile));
      diff->a.path = against_;
      options.against = &*diff;
    }
    PURLIN_ASSIGN(const analyze::TimelineAnalysis timeline, analyze::select_phase(profile, phase));
    analyze::Advice advice =
        analyze::advise(profile, timeline, measured_ceilings(profile.environment), options);
    advice.files = files_;
    if (!training_log_.empty()) {
      PURLIN_ASSIGN(const std::string log, read_file(training_log_));
      const std::string found = analyze::to_text(analyze::read_training_log(log));
      advice.notes.push_back(
          training_log_ + ": " +
          (found.empty() ? "no line names a loss scale or a skipped step" : found));
    }
    if (!apply_.empty()) return apply(context, profile, timeline, advice);
    if (json_) {
      context.print(to_json(advice).dump(2) + "\n");
    } else {
      context.print(analyze::render_advice(advice, context.terminal, top_));
      context.print(next_after(profile));
    }
    return profile.kernels.empty() ? kExitInconclusive : kExitOk;
  }

 private:
  Result<double> data_cut_share() const {
    if (data_cut_.empty()) return 0.0;
    const bool percent = ends_with(data_cut_, "%");
    const auto number =
        parse_double(trim(std::string_view(data_cut_).substr(0, data_cut_.size() - percent)));
    const double share = number.value_or(-1) / (percent ? 100 : 1);
    if (share > 0 && share < 1) return share;
    return error(Code::kInvalid, "--data-cut '{}': give the share that is cut: 60%, or 0.6",
                 data_cut_);
  }

  // The advice of one file, by the rules' models alone.
  Result<analyze::Advice> advice_of(Context& context, analyze::PhaseChoice phase,
                                    const std::string& file) const {
    PURLIN_ASSIGN(Profile profile, read_profiles(context, std::vector<std::string>{file}));
    if (!gpu_.empty()) PURLIN_TRY(analyze::name_gpu(profile, gpu_).with_context("--gpu"));
    PURLIN_ASSIGN(const analyze::TimelineAnalysis timeline, analyze::select_phase(profile, phase));
    analyze::AdviceOptions options;
    options.targets = {compute_, memory_};
    options.smallest = 0;
    return analyze::advise(profile, timeline, measured_ceilings(profile.environment), options);
  }

  Result<int> record(Context& context, analyze::PhaseChoice phase) {
    PURLIN_ASSIGN(const analyze::Advice before, advice_of(context, phase, files_[0]));
    PURLIN_ASSIGN(const analyze::Advice after, advice_of(context, phase, files_[1]));
    PURLIN_ASSIGN(analyze::Outcome outcome, analyze::outcome_of(before, after, id_));
    outcome.recorded = format_rfc3339(system_clock().wall_ns());
    PURLIN_TRY(append_outcome(outcome));
    if (json_) {
      context.print(to_json(outcome).dump(2) + "\n");
      return kExitOk;
    }
    const analyze::TrackRecords records = analyze::track_records(read_outcomes(context));
    const analyze::TrackRecord& record = records.at(id_);
    context.print(fmt::format(
        "{}: predicted {:.1f}% ({:.1f} to {:.1f}), measured {:.1f}%: {} the interval\n"
        "in the interval so far: {} of {}; recorded in {}\n",
        id_, 100 * outcome.predicted.mid, 100 * outcome.predicted.low, 100 * outcome.predicted.high,
        100 * outcome.measured, outcome.inside() ? "inside" : "outside", record.inside,
        counted(record.outcomes, "outcome"), outcomes_path()));
    context.print(next_step({"purlin", "advise", files_[1]}));
    return kExitOk;
  }

  Result<int> apply(Context& context, const Profile& profile,
                    const analyze::TimelineAnalysis& timeline,
                    const analyze::Advice& advice) const {
    PURLIN_ASSIGN(const analyze::AppliedChange applied,
                  analyze::apply_intervention(
                      profile, timeline, measured_ceilings(profile.environment), advice, apply_));
    if (!output_.empty()) {
      PURLIN_ASSIGN(AtomicFile file, AtomicFile::create(output_));
      PURLIN_ASSIGN(
          const profile::ExportCounts counts,
          profile::export_perfetto(applied.timeline, [&](std::string_view piece) -> Status {
            return file.append(piece);
          }));
      PURLIN_TRY(file.commit());
      context.log.info("{} written to {}", counted(counts.events, "event"), output_);
    }
    context.print(json_ ? to_json(applied, advice).dump(2) + "\n"
                        : analyze::render_applied(applied, context.terminal) + next_after(profile));
    return kExitOk;
  }

  // A change is made, then measured.
  std::string next_after(const Profile& profile) const {
    if (profile.kernels.empty()) return next_step({"purlin", "doctor"});
    if (!against_.empty()) return next_step({"purlin", "diff", against_, files_.front()});
    if (profile.source != "purlin")
      return next_step(
          {"purlin", "diff", files_.front() == "-" ? "FILE" : files_.front(), "AFTER"});
    return next_step({"purlin", "profile", "-o", "after.plprof", "--", "COMMAND"});
  }

  std::vector<std::string> files_, shapes_;
  std::string id_, apply_, output_, against_, gpu_, stalls_, data_cut_, training_log_,
      phase_ = "steady";
  int top_ = 5, list_ = 5;
  double smallest_ = 0.01, compute_ = 0.78, memory_ = 0.92;
  bool json_ = false, outcome_ = false;
};

}  // namespace

std::unique_ptr<Command> make_advise_command() { return std::make_unique<AdviseCommand>(); }

}  // namespace purlin::cli
