// SPDX-License-Identifier: Apache-2.0
// `purlin report`: merges profiles and ranks their kernels.
#include "analyze/report/report.h"

#include "analyze/advise/advice.h"
#include "analyze/page/documents.h"
#include "analyze/phase/slice.h"
#include "analyze/report/selection.h"
#include "analyze/report/supplement.h"
#include "analyze/report/text.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/page/kernel_cache.h"
#include "cli/page/write_page.h"
#include "cli/profile/files.h"
#include "cli/profile/measured_ceilings.h"
#include "cli/profile/outcomes.h"
#include "cli/profile/phase_option.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr std::size_t kShownAmbiguous = 10;

class ReportCommand : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override { return "Rank the kernels of one or more profiles"; }
  VerbText text() const override {
    return {.description =
                "Merges profiles of Purlin or of other tools (see `purlin import`) and lists the "
                "kernels with the largest share of the time. The coverage block reports what the "
                "profile did not see.",
            .more =
                "A row shows the share, total and count of a kernel, the median and 95th "
                "percentile of a launch, its bound, and its distance from the bound. With a "
                "timeline, the report shows the busy and idle time of the devices, with causes. A "
                "damaged profile is reported as far as it can be read, and marked partial.",
            .examples = {{"purlin report run.plprof"},
                         {"purlin report --sort headroom --filter 'gemm|attention' run.plprof"},
                         {"purlin report --kernel saxpy run.plprof"},
                         {"purlin report --json rank0.plprof rank1.plprof | jq '.kernels[0]'"},
                         {"purlin report --html report.html run.plprof"}},
            .exit_codes = {{0, "Done"},
                           {2, "A file cannot be read, or the kernel or device does not exist"}},
            .see = {"docs/guide/report.md", "docs/formats/report.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Profiles to read; - for stdin");
    flags.option("--top", top_, "Rows in the text, 0 for all");
    flags.option("--by", by_,
                 {"Rows: kernel, shape, launch, op or op_class",
                  "",
                  {{"kernel", ""}, {"shape", ""}, {"launch", ""}, {"op", ""}, {"op_class", ""}}},
                 "UNIT");
    flags.option("--sort", sort_,
                 {"Order of the rows: total, count, p95 or headroom",
                  "",
                  {{"total", ""}, {"count", ""}, {"p95", ""}, {"headroom", ""}}},
                 "ORDER");
    flags.option("--filter", filter_, "Only rows whose name, op or class matches", "REGEX");
    flags.option("--phase", phase_, kPhaseOption, "PHASE");
    flags.own_option("--device", device_,
                     "Only work of this device: cuda:0, its index or its model", "DEVICE");
    flags.option("--kernel", kernel_, "Details of one kernel, by name or a part of the name",
                 "NAME");
    flags.option("--gpu", gpu_, "GPU of a profile that does not name it: V100-SXM2, H200", "NAME");
    flags.list("--shape", shapes_,
               {"Problem of a kernel, where not recorded; repeatable",
                "For example sgemm=gemm,f32,M=4096,N=4096,K=1024: kernel name, op class, element "
                "type, dimensions."},
               "KERNEL=PROBLEM");
    flags.option("--stalls", stalls_, "Stall samples of the kernels: CSV, or Nsight Compute's CSV",
                 "FILE");
    flags.option("--target-compute", compute_, "Reachable share of the compute roof");
    flags.option("--target-memory", memory_, "Reachable share of the bandwidth roof");
    flags.flag("--json", json_,
               {"Print all rows as one JSON document", "The schema is purlin.report/1."});
    flags.flag("--csv", csv_, "Print all rows as CSV");
    flags.option("--html", html_, "Write a page that opens offline; - for stdout", "FILE");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(check_options());
    PURLIN_ASSIGN(const analyze::SortBy sort, analyze::sort_from_text(sort_));
    PURLIN_ASSIGN(const analyze::GroupBy by, analyze::group_by_from_text(by_));
    PURLIN_ASSIGN(const analyze::PhaseChoice phase, analyze::phase_from_text(phase_));
    PURLIN_ASSIGN(Profile profile, read_profiles(context, files_));
    if (!gpu_.empty()) PURLIN_TRY(analyze::name_gpu(profile, gpu_).with_context("--gpu"));
    for (const std::string& shape : shapes_)
      PURLIN_TRY(analyze::give_shape(profile, shape).with_context("--shape"));
    if (!stalls_.empty()) {
      PURLIN_ASSIGN(const Profile samples,
                    read_profiles(context, std::vector<std::string>{stalls_}));
      PURLIN_TRY(analyze::give_stalls(profile, samples).with_context("--stalls"));
    }
    if (!device_.empty()) PURLIN_TRY(analyze::keep_device(profile, device_));
    const std::vector<Ceilings> measured = measured_ceilings(profile.environment);
    Profile whole;  // the page shows the timeline outside of the phase too
    if (!html_.empty()) whole = profile;
    PURLIN_ASSIGN(analyze::TimelineAnalysis timeline, analyze::select_phase(profile, phase));
    analyze::Report report = analyze::build_report(profile, std::move(timeline), by, measured);
    report.files = files_;
    report.targets = {compute_, memory_};
    analyze::Advice advice;
    if (!csv_ && kernel_.empty()) {
      analyze::AdviceOptions options;
      options.targets = report.targets;
      const analyze::TrackRecords records = analyze::track_records(read_outcomes(context));
      options.records = &records;
      advice = analyze::advise(profile, report.timeline, measured, options);
      advice.files = files_;
      put_advice(advice, report);
    }
    if (!filter_.empty()) PURLIN_TRY(analyze::filter_rows(report, filter_));
    if (sort != analyze::SortBy::kTotal) analyze::sort_rows(report, sort);
    if (!kernel_.empty()) PURLIN_TRY(keep_kernel(report));
    if (json_) {
      context.print(to_json(report).dump(2) + "\n");
    } else if (csv_) {
      context.print_data(analyze::to_csv(report));
    } else if (!html_.empty()) {
      const analyze::Report by_launch =
          analyze::build_rows(profile, analyze::GroupBy::kLaunch, measured);
      page::Page page;
      page.title = report.command.empty() ? join(files_, " ") : report.command;
      page.view = kernel_.empty() ? "overview" : "kernels";
      page.files.push_back(analyze::page_file(report, join(files_, " ")));
      page.documents =
          analyze::documents_of({whole, profile, report, by_launch, advice, measured}, 0);
      add_kernel_cache(context, page);
      PURLIN_TRY(write_page(context, page, html_));
    } else if (!kernel_.empty()) {
      const analyze::Report by_launch =
          analyze::build_rows(profile, analyze::GroupBy::kLaunch, measured);
      for (std::size_t i = 0; i < report.kernels.size(); ++i) {
        if (i > 0) context.print("\n");
        context.print(analyze::render_kernel(report.kernels[i], by, by_launch, context.terminal,
                                             {top_, false, report.targets}));
      }
    } else {
      context.print(analyze::render_text(
          report, context.terminal, {top_, sort == analyze::SortBy::kHeadroom, report.targets}));
    }
    if (!json_ && !csv_ && html_.empty()) context.print(next_after(report));
    return kExitOk;
  }

 private:
  std::string next_after(const analyze::Report& report) const {
    if (report.kernels.empty() && report.rows_left_out == 0) return next_step({"purlin", "doctor"});
    std::vector<std::string> words = {"purlin", "advise"};
    for (const std::string& file : files_) words.push_back(file == "-" ? "FILE" : file);
    return next_step(words);
  }

  Status check_options() const {
    if (top_ < 0) return error(Code::kInvalid, "--top {}: give 0 for all, or how many", top_);
    if (static_cast<int>(json_) + static_cast<int>(csv_) + static_cast<int>(!html_.empty()) > 1)
      return error(Code::kInvalid, "give one of --json, --csv and --html");
    for (const auto& [flag, value] :
         {std::pair{"--target-compute", compute_}, std::pair{"--target-memory", memory_}})
      if (!(value > 0 && value <= 1))
        return error(Code::kInvalid, "{} {}: give a share of the roof above 0, at most 1", flag,
                     value);
    return check_page_path(html_);
  }

  // Rows of the kernel of --kernel: of this exact name, else of the only name that contains it.
  Status keep_kernel(analyze::Report& report) const {
    const auto keep = [&](auto&& wanted) {
      std::vector<analyze::KernelStat> kept;
      std::copy_if(report.kernels.begin(), report.kernels.end(), std::back_inserter(kept), wanted);
      return kept;
    };
    std::vector<analyze::KernelStat> kept = keep([&](const analyze::KernelStat& kernel) {
      return kernel.name.full == kernel_ || kernel.label == kernel_;
    });
    if (kept.empty())
      kept = keep([&](const analyze::KernelStat& kernel) {
        return kernel.name.full.find(kernel_) != std::string::npos ||
               kernel.label.find(kernel_) != std::string::npos;
      });
    std::vector<std::string> names;
    for (const analyze::KernelStat& kernel : kept)
      if (std::find(names.begin(), names.end(), kernel.label) == names.end())
        names.push_back(kernel.label);
    if (names.empty())
      return error(Code::kNotFound, "--kernel '{}': no kernel of this profile has that in its name",
                   kernel_);
    if (names.size() > 1) {
      const std::size_t all = names.size();
      names.resize(std::min(all, kShownAmbiguous));
      std::string list;
      for (const std::string& name : names) list += "\n  " + name;
      if (all > names.size()) list += fmt::format("\n  and {} more", all - names.size());
      return error(Code::kInvalid, "--kernel '{}' could be any of {}:{}", kernel_, all, list);
    }
    report.rows_left_out += report.kernels.size() - kept.size();
    report.filter = kernel_;
    report.kernels = std::move(kept);
    return Status::ok();
  }

  std::vector<std::string> files_, shapes_;
  std::string gpu_, stalls_;
  int top_ = 20;
  double compute_ = 0.78, memory_ = 0.92;
  std::string by_ = "kernel", sort_ = "total", filter_, device_, kernel_, html_, phase_ = "steady";
  bool json_ = false, csv_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() { return std::make_unique<ReportCommand>(); }

}  // namespace purlin::cli
