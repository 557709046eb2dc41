// SPDX-License-Identifier: Apache-2.0
// `purlin export`: the timeline of a profile, or tuning results, in formats of other tools.
#include "profile/export/export.h"

#include "base/files.h"
#include "base/output/escaped.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"
#include "profile/export/otlp.h"
#include "tune/records/export.h"
#include "tune/records/recordings.h"

#include <optional>

namespace purlin::cli {
namespace {

class ExportCommand : public Command {
 public:
  std::string_view name() const override { return "export"; }
  std::string_view summary() const override {
    return "Write a timeline or tuning results for another tool";
  }
  VerbText text() const override {
    return {
        .description =
            "Writes the timeline or the metrics of profiles, or tuning results, in an open format. "
            "Overlapping work of one stream goes to further tracks of the stream: nothing is "
            "dropped.",
        .more =
            "Tuning results are a document of `purlin tune --json`, the folder of a session, a "
            "Kernel Tuner cache, T4, JSON of KTT, wisdom of Kernel Launcher, or an entry of the "
            "cache.",
        .examples = {{"purlin export run.plprof --format perfetto -o run.pftrace"},
                     {"purlin export trace.json.gz --format csv | head"},
                     {"purlin export run.plprof --format pprof -o run.pb.gz"},
                     {"purlin export run.plprof --format otlp | curl --json @- "
                      "http://collector:4318/v1/metrics"},
                     {"purlin export tuned.json --format kernel-tuner -o gemm-H200.json"}},
        .exit_codes = {{0, "Written"},
                       {2,
                        "A file cannot be read, or has no timeline; metrics need histograms only"}},
        .see = {"docs/formats/export.md", "docs/formats/tuning-results.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_,
                      "Profiles or traces to merge, - for stdin; or tuning results");
    flags.option(
        "--format", format_,
        {"chrome, perfetto, csv, pprof or otlp; kernel-tuner, t4, json or csv",
         "The first three are formats of a timeline, pprof and otlp are of sums, the others are of "
         "tuning results.",
         {{"chrome",
           "Timeline: JSON trace events as PyTorch writes them, for ui.perfetto.dev and "
           "chrome://tracing. Each launch has a link to its kernel"},
          {"perfetto", "Timeline: Perfetto's protobuf trace, half the size, opens faster"},
          {"csv",
           "Timeline: one line for each kernel, memcpy and memset, with the call that launched it. "
           "Tuning results: one line for each config"},
          {"pprof",
           "Sums: GPU time as stacks of device, ops and kernel, for `go tool pprof`, Pyroscope and "
           "speedscope. No timeline is needed; with one, all enclosing ops are in the stacks"},
          {"otlp",
           "Metrics: OTLP/JSON for OpenTelemetry collectors, exponential histograms of the "
           "kernels' "
           "durations. No timeline is needed"},
          {"kernel-tuner", "Tuning results: a Kernel Tuner cache file"},
          {"t4", "Tuning results: the community's output schema, 1.0.0"},
          {"json", "Tuning results: Purlin's compact form (docs/formats/evaluations.md)"}}},
        "FORMAT");
    flags.option("-o,--output", output_, "File to write (default: standard output)", "FILE");
  }

  Result<int> run(Context& context) override {
    if (format_.empty())
      return error(Code::kInvalid,
                   "say what to write: --format chrome, perfetto or csv for a timeline, "
                   "pprof for stacks, otlp for metrics, kernel-tuner, t4, json or csv for results "
                   "of tuning");
    const bool tuning = format_ == "kernel-tuner" || format_ == "t4" || format_ == "json";
    // csv is a format of both: the kind of the file decides.
    if (tuning) return export_results(context);
    const Result<std::vector<ProfileFile>> files = detect_profiles(files_);
    if (const Status no_profile = files.status(); format_ == "csv" && !no_profile.is_ok()) {
      if (no_profile.code() == Code::kNotFound) return no_profile;
      const Result<int> results = export_results(context);
      if (results.is_ok()) return results;
      return error(results.status().code(), "{}; no results of tuning, either: {}",
                   no_profile.message(), results.status().message());
    }
    if (format_ == "otlp") {
      if (!files.is_ok()) return files.status();
      return export_metrics(context, *files);
    }
    const auto write = format_ == "chrome"     ? profile::export_chrome
                       : format_ == "perfetto" ? profile::export_perfetto
                       : format_ == "csv"      ? profile::export_csv
                       : format_ == "pprof"    ? profile::export_pprof
                                               : nullptr;
    if (write == nullptr)
      return error(
          Code::kInvalid,
          "--format '{}': there are chrome, perfetto, csv, pprof, otlp, kernel-tuner, t4 and json",
          format_);
    const bool binary = format_ == "perfetto" || format_ == "pprof";
    if (output_.empty() && binary && context.terminal.interactive())
      return error(Code::kInvalid, "{} is a binary format: give -o FILE, or a pipe", format_);
    if (!files.is_ok()) return files.status();
    PURLIN_ASSIGN(const Profile profile, read_profiles(context, *files));
    std::optional<AtomicFile> file;
    if (!output_.empty()) {
      PURLIN_ASSIGN(AtomicFile created, AtomicFile::create(output_));
      file = std::move(created);
    }
    PURLIN_ASSIGN(const profile::ExportCounts counts,
                  write(profile, [&](std::string_view piece) -> Status {
                    if (file) return file->append(piece);
                    if (std::fwrite(piece.data(), 1, piece.size(), context.out) != piece.size())
                      return error(Code::kIo, "cannot write to standard output");
                    return {};
                  }));
    if (file) PURLIN_TRY(file->commit());
    const std::string where = output_.empty() ? "" : " written to " + output_;
    if (format_ == "pprof")
      context.log.info("{} of {}{}", counted(counts.events, "stack"),
                       counted(counts.tracks, "name"), where);
    else
      context.log.info("{} and {} from calls to their work{}", counted(counts.events, "event"),
                       counted(counts.links, "link"), where);
    if (profile.timeline.left_out > 0)
      context.log.warn("the memory bound left {} out of it",
                       counted(profile.timeline.left_out, "activity"));
    return kExitOk;
  }

 private:
  Result<int> export_metrics(Context& context, const std::vector<ProfileFile>& files) const {
    PURLIN_ASSIGN(const Profile profile, read_profiles(context, files));
    PURLIN_ASSIGN(const Json request, profile::to_otlp(profile));
    PURLIN_TRY(write_or_print(context, request.dump() + "\n"));
    context.log.info("metrics of {}{}", counted(profile.kernels.size(), "row"),
                     output_.empty() ? "" : " written to " + output_);
    return kExitOk;
  }
  Status write_or_print(const Context& context, const std::string& text) const {
    if (!output_.empty()) return write_atomic(output_, shown_data(text));
    context.write(text);
    return {};
  }

  Result<int> export_results(const Context& context) const {
    if (files_.size() != 1)
      return error(Code::kInvalid, "results of tuning are written from one file at a time");
    PURLIN_ASSIGN(const std::vector<gpu::Recording> recordings,
                  tune::read_recordings(files_.front()));
    if (const std::string& note = recordings.front().note; !note.empty())
      context.log.warn("{}: {}", files_.front(), note);
    if (recordings.size() > 1)
      context.log.warn("'{}' has results of {} devices and problems; the first, {} {}, is written",
                       files_.front(), recordings.size(), recordings.front().device,
                       recordings.front().problem.text());
    PURLIN_ASSIGN(const std::string text, tune::export_recording(recordings.front(), format_));
    PURLIN_TRY(write_or_print(context, text));
    context.log.info("{}{}", counted(recordings.front().runs.size(), "config"),
                     output_.empty() ? "" : " written to " + output_);
    return kExitOk;
  }

  std::vector<std::string> files_;
  std::string format_, output_;
};

}  // namespace

std::unique_ptr<Command> make_export_command() { return std::make_unique<ExportCommand>(); }

}  // namespace purlin::cli
