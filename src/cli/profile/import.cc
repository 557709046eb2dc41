// SPDX-License-Identifier: Apache-2.0
// `purlin import`: writes the traces of other tools as a profile, and lists its contents and gaps.
#include "profile/import/import.h"

#include "analyze/text/layout.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/profile/files.h"
#include "model/document.h"
#include "profile/format/documents.h"
#include "profile/format/file.h"

namespace purlin::cli {
namespace {

// The contents of a profile, as numbers.
struct Contents {
  double launches = 0, kernel_ns = 0, copies = 0, copy_bytes = 0;
  std::size_t with_shape = 0, with_counters = 0;

  explicit Contents(const Profile& profile) {
    for (const KernelRow& row : profile.kernels) {
      launches += row.duration.count();
      kernel_ns += row.duration.total_ns();
      with_shape += row.shape.empty() ? 0 : 1;
      with_counters += row.counters.empty() ? 0 : 1;
    }
    for (const CopyRow& row : profile.copies) {
      copies += row.duration.count();
      copy_bytes += row.bytes;
    }
  }
};

class ImportCommand : public Command {
 public:
  std::string_view name() const override { return "import"; }
  std::string_view summary() const override {
    return "Convert traces and exports of other tools to a profile";
  }
  VerbText text() const override {
    return {
        .description =
            "Reads traces and exports, plain or gzipped, and writes them as one profile. It "
            "recognises them by their contents. Several files are merged, such as the ranks of "
            "a job or the files of one rocprof run. `purlin report` and `purlin diff` read "
            "these files, too. An imported profile is smaller and faster to read.",
        .more =
            "Supported files:\n  Chrome traces of PyTorch (Kineto), JAX and others   "
            "trace.json, trace.json.gz\n  Execution traces of PyTorch, next to its trace: the data "
            "flow of a step\n  Nsight Systems    nsys export --type sqlite -o FILE "
            "report.nsys-rep\n  Nsight Compute    ncu --import report.ncu-rep --csv --page raw "
            "> FILE\n  rocprof, rocprofv2, rocprofv3, rocprof-compute      CSV files, or a "
            "folder of them\n  rocprofv3         FILE_results.json, FILE_results.db (rocpd)\n"
            "  Proton            FILE.hatchet\n  Purlin            profiles, to merge them",
        .examples = {{"purlin import trace.json.gz -o step.plprof"},
                     {"purlin import report.sqlite"},
                     {"ssh node cat trace.json.gz | purlin import - -o step.plprof"},
                     {"purlin import --build v2 --json rank*.json.gz -o job.plprof"}},
        .exit_codes = {{0, "Imported; a damaged file may give a part, marked partial"},
                       {2, "A file cannot be read"}},
        .see = {"docs/guide/import.md", "docs/formats/import.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_,
                      "Traces, exports, profiles, a folder of rocprof files; - for stdin");
    flags.option("-o,--output", output_, "Profile to write (default: only show the contents)",
                 "FILE");
    flags.option("--build", build_, "Label of the code under test, stored in the profile", "LABEL");
    flags.flag("--json", json_,
               {"Print the contents as one JSON document", "The schema is purlin.import/1."});
  }

  Result<int> run(Context& context) override {
    if (!output_.empty()) PURLIN_TRY(check_output());
    PURLIN_ASSIGN(const std::vector<ProfileFile> files, detect_profiles(files_));
    PURLIN_ASSIGN(Profile profile, read_profiles(context, files));
    if (!build_.empty()) {
      profile.environment.build = build_;
      for (KernelRow& row : profile.kernels) row.build = build_;
    }
    if (!output_.empty()) PURLIN_TRY(profile::write_profile(output_, profile));
    context.print(json_ ? json_text(files, profile) : text(context.terminal, files, profile));
    return kExitOk;
  }

 private:
  // Checked before minutes of reading.
  Status check_output() const {
    if (is_directory(output_))
      return error(Code::kInvalid, "-o '{}' is a folder: name the file to write, such as {}",
                   output_, join_path(output_, "imported.plprof"));
    if (const std::string folder = parent_path(absolute_path(output_)); !is_directory(folder))
      return error(Code::kNotFound, "-o '{}': there is no folder {}", output_, folder);
    for (const std::string& file : files_)
      if (absolute_path(file) == absolute_path(output_))
        return error(Code::kInvalid, "-o '{}' is also read: give another name", output_);
    return Status::ok();
  }

  std::string json_text(const std::vector<ProfileFile>& files, const Profile& profile) const {
    const Contents contents(profile);
    Json inputs = Json::array();
    for (const ProfileFile& file : files)
      inputs.push(Json::object({{"path", file.name}, {"format", profile::to_text(file.format)}}));
    const Timeline& timeline = profile.timeline;
    Json document = new_document("purlin.import/1", profile.environment);
    document.set("inputs", std::move(inputs))
        .set("output", output_.empty() ? Json(nullptr) : Json(output_))
        .set("source", profile.source)
        .set("command", profile.command)
        .set("wall_ns", profile.wall_ns)
        .set("partial", profile.partial)
        .set("kernel_rows", profile.kernels.size())
        .set("kernel_rows_with_shape", contents.with_shape)
        .set("kernel_rows_with_counters", contents.with_counters)
        .set("launches", contents.launches)
        .set("kernel_ns", contents.kernel_ns)
        .set("copies", contents.copies)
        .set("copy_bytes", contents.copy_bytes)
        .set("processes", profile.processes.size())
        .set("timeline", Json::object({{"activities", timeline.activities.size()},
                                       {"calls", timeline.calls.size()},
                                       {"ops", timeline.ops.size()},
                                       {"ranges", timeline.ranges.size()},
                                       {"left_out", timeline.left_out}}))
        .set("data_flow", profile.data_flow.recorded()
                              ? Json::object({{"steps", profile.data_flow.steps},
                                              {"ops", profile.data_flow.ops},
                                              {"same_data", profile.data_flow.same_data},
                                              {"facts", profile.data_flow.facts.size()}})
                              : Json(nullptr))
        .set("coverage", profile::to_json(profile.coverage));
    return document.dump(2) + "\n";
  }

  static std::string entry(const Terminal& terminal, std::string_view key, std::string_view text) {
    std::string out = analyze::fold(text, std::string(12, ' '), analyze::text_width(terminal));
    return out.replace(2, key.size(), key);
  }

  std::string text(const Terminal& terminal, const std::vector<ProfileFile>& files,
                   const Profile& profile) const {
    const Contents contents(profile);
    std::string out;
    for (const ProfileFile& file : files)
      out += fmt::format("{}  {}\n", file.name,
                         terminal.paint(Style::kDim, profile::to_text(file.format)));
    for (const DeviceInfo& device : profile.environment.devices)
      out += fmt::format("  {:<9} {}{}\n", "device", device.name.empty() ? device.id : device.name,
                         device.arch.empty() ? "" : "  " + device.arch);
    out += entry(terminal, "kernels",
                 fmt::format("{}, {} in {}; {} with problem shapes, {} with counters",
                             counted(contents.launches, "launch"), format_ns(contents.kernel_ns),
                             counted(profile.kernels.size(), "row"), contents.with_shape,
                             contents.with_counters));
    if (contents.copies > 0)
      out += fmt::format("  {:<9} {}{}\n", "copies", format_count(contents.copies),
                         contents.copy_bytes > 0 ? ", " + format_bytes(contents.copy_bytes) : "");
    const Timeline& timeline = profile.timeline;
    out += fmt::format("  {:<9} ", "timeline");
    out += timeline.activities.empty() && timeline.calls.empty()
               ? "none\n"
               : fmt::format("{}, {}, {}, {}\n", counted(timeline.activities.size(), "activity"),
                             counted(timeline.calls.size(), "call"),
                             counted(timeline.ops.size(), "op"),
                             counted(timeline.ranges.size(), "range"));
    if (profile.data_flow.recorded())
      out += entry(terminal, "data flow",
                   fmt::format("{} of {} in a step, from {}",
                               counted(profile.data_flow.facts.size(), "fact"),
                               counted(profile.data_flow.ops, "op"),
                               counted(profile.data_flow.steps, "step")));
    if (profile.partial)
      out +=
          "  " + terminal.paint(Style::kYellow, "partial") + "   a file is damaged or cut short\n";
    for (const CoverageNote& note : profile.coverage.notes) {
      const std::string count = note.count > 0 ? format_count(note.count) + ": " : "";
      out += entry(terminal, "note", count + note.text);
    }
    if (output_.empty()) return out + "not written: give -o FILE\n";
    const Result<std::uint64_t> size = file_size(output_);
    return out + fmt::format("written to {}{}\n", output_,
                             size.is_ok() ? ", " + format_bytes(static_cast<double>(*size)) : "");
  }

  std::vector<std::string> files_;
  std::string output_, build_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command() { return std::make_unique<ImportCommand>(); }

}  // namespace purlin::cli
