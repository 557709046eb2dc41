// SPDX-License-Identifier: Apache-2.0
// `purlin export`: a profile's timeline in open formats.
#include "profile/export/export.h"

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/profile_files.h"

#include <optional>

namespace purlin::cli {
namespace {

class ExportCommand : public Command {
 public:
  std::string_view name() const override { return "export"; }
  std::string_view summary() const override {
    return "Write a profile's timeline for another tool: Chrome, Perfetto, CSV";
  }
  std::string_view details() const override {
    return "Formats:\n"
           "  chrome    JSON trace events as PyTorch writes them, with links from each launch to "
           "its\n"
           "            kernel; opens in ui.perfetto.dev and chrome://tracing\n"
           "  perfetto  Perfetto's protobuf trace: half the size, opens faster\n"
           "  csv       one line for each kernel, copy and set, with the call that launched it\n"
           "Overlapping work of one stream goes to further tracks of it: nothing is dropped.\n\n"
           "Examples:\n"
           "  purlin export run.plprof --format perfetto -o run.pftrace\n"
           "  purlin export trace.json.gz --format csv | head\n\n"
           "The formats are described in docs/formats/export.md. Exit code: 0, or 2 if the file "
           "cannot\n"
           "be read or has no timeline (a profile that kept histograms only has none).\n";
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "profiles or traces to read; several are merged");
    flags.option("--format", format_, "'chrome', 'perfetto' or 'csv'", "FORMAT");
    flags.option("-o,--output", output_, "file to write; standard output without it", "FILE");
  }

  Result<int> run(Context& context) override {
    if (format_ == "otlp")
      return error(Code::kInvalid,
                   "--format otlp is not supported yet: give 'chrome', 'perfetto' or 'csv'");
    const auto write = format_ == "chrome"     ? profile::export_chrome
                       : format_ == "perfetto" ? profile::export_perfetto
                       : format_ == "csv"      ? profile::export_csv
                                               : nullptr;
    if (write == nullptr)
      return error(Code::kInvalid, "--format '{}': give 'chrome', 'perfetto' or 'csv'", format_);
    if (output_.empty() && format_ == "perfetto" && context.terminal.interactive())
      return error(Code::kInvalid, "a Perfetto trace is binary: give -o FILE, or a pipe");
    PURLIN_ASSIGN(const Profile profile, read_profiles(context, files_));
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
    context.log.info("{} events and {} links from calls to their work{}", counts.events,
                     counts.links, output_.empty() ? "" : " written to " + output_);
    if (profile.timeline.left_out > 0)
      context.log.warn("{} activities beyond the memory bound are not in it",
                       profile.timeline.left_out);
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  std::string format_, output_;
};

}  // namespace

std::unique_ptr<Command> make_export_command() { return std::make_unique<ExportCommand>(); }

}  // namespace purlin::cli
