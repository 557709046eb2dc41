// SPDX-License-Identifier: Apache-2.0
// `purlin guard run`: measures a suite as the gate does, without a verdict.
#include "base/csv.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/guard/suite_run.h"
#include "guard/gate/signed_rank.h"
#include "guard/history/history.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

double p50_ns(const guard::Measured& item) {
  std::vector<double> times;
  for (const guard::ProcessReading& process : item.processes)
    times.push_back(process.reading.time_ns);
  return times.empty() ? 0 : guard::median_of(times);
}

class GuardRun : public Command {
 public:
  std::string_view name() const override { return "guard run"; }
  std::string_view summary() const override { return "Measure a suite once, without a verdict"; }
  VerbText text() const override {
    return {.description =
                "Verifies each item, then measures it in --rounds fresh processes. The "
                "[[commands]] of the suite are measured after its kernels.",
            .examples = {{"purlin guard run gate.toml --rounds 30 --samples before.csv"}},
            .exit_codes = {{0, "Measured"}, {2, "An item or the machine fails"}},
            .see = {"docs/guide/guard.md", "docs/formats/samples.md"}};
  }
  void declare(Flags& flags) override {
    guard_.declare(flags);
    flags.option("--rounds", rounds_, "Processes per item");
    flags.option("--samples", samples_, "CSV file for every sample, for guard compare --samples",
                 "FILE");
    flags.option("--record", record_, "History to append the medians to (guard history)", "FILE");
    flags.option("--build", build_, "Label of the measured code for --record, such as a commit",
                 "LABEL");
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    if (rounds_ < 1 || rounds_ > 1000)
      return error(Code::kInvalid, "--rounds takes 1 to 1000, not {}", rounds_);
    PURLIN_TRY(guard_.open(context, SuiteRun::Commands::kTaken));
    PURLIN_ASSIGN(const std::vector<guard::Measured> items,
                  guard::measure_suite(guard_.run(), rounds_));
    guard_.end_progress();
    context.print(json_ ? document(items).dump(2) + "\n" : table(items, context.terminal));
    // After the result: an error of the file must not lose it.
    if (!samples_.empty()) PURLIN_TRY(write_atomic(samples_, samples_csv(items)));
    if (!record_.empty()) PURLIN_TRY(guard::append_history(record_, history_run(items)));
    for (const guard::Measured& item : items)
      if (!item.status.is_ok() && !item.skipped) return kExitError;
    return kExitOk;
  }

 private:
  static std::string status_of(const guard::Measured& item) {
    if (item.status.is_ok()) return "ok";
    return item.skipped ? "skipped" : "failed";
  }

  static std::string samples_csv(const std::vector<guard::Measured>& items) {
    std::string csv = "process,kernel,iteration,time_us,sm_clock_mhz\n";
    for (const guard::Measured& item : items) {
      const std::string kernel = csv_cell(item.item().text());
      for (std::size_t process = 0; process < item.processes.size(); ++process) {
        const guard::ProcessReading& reading = item.processes[process];
        for (std::size_t i = 0; i < reading.times_ns.size(); ++i)
          csv += fmt::format("{},{},{},{:.6f},{:.0f}\n", process + 1, kernel, i,
                             reading.times_ns[i] / 1e3, reading.clocks_mhz[i]);
      }
    }
    return csv;
  }

  Environment environment() {
    Environment environment = guard::environment_of(guard_.run());
    if (!build_.empty()) environment.build = build_;
    return environment;
  }

  guard::HistoryRun history_run(const std::vector<guard::Measured>& items) {
    guard::HistoryRun run;
    run.environment = environment();
    run.suite = guard_.suite().name;
    for (const guard::Measured& item : items) {
      guard::HistoryItem kept{item.item(), {}};
      for (const guard::ProcessReading& process : item.processes)
        kept.processes_ns.push_back(process.reading.time_ns);
      if (item.status.is_ok() && !kept.processes_ns.empty()) run.items.push_back(std::move(kept));
    }
    return run;
  }

  Json document(const std::vector<guard::Measured>& items) {
    Json json = new_document("purlin.guard-run/1", environment());
    json.set("suite", guard_.suite().name);
    Json list = Json::array();
    for (const guard::Measured& item : items) {
      Json processes = Json::array();
      for (const guard::ProcessReading& process : item.processes)
        processes.push(Json::object({{"time_ns", process.reading.time_ns},
                                     {"p95_ns", process.p95_ns},
                                     {"cycles", process.reading.cycles},
                                     {"clock_mhz", process.clock_mhz},
                                     {"iterations", process.iterations}}));
      list.push(Json::object({{"kernel", item.kernel},
                              {"shape", item.problem.text()},
                              {"variant", item.variant},
                              {"config", to_json(item.config)},
                              {"status", status_of(item)},
                              {"message", item.status.message()},
                              {"p50_ns", p50_ns(item)},
                              {"processes", std::move(processes)}}));
    }
    json.set("items", std::move(list));
    return json;
  }

  static std::string table(const std::vector<guard::Measured>& items, const Terminal& terminal) {
    Table table;
    table.column("kernel");
    table.column("shape");
    table.column("config");
    table.column("p50", Table::Align::kRight);
    table.column("processes", Table::Align::kRight);
    std::string problems;
    for (const guard::Measured& item : items) {
      const bool ok = item.status.is_ok();
      table.row({item.kernel, item.problem.text(), item.config.text(),
                 ok             ? format_ns(p50_ns(item))
                 : item.skipped ? status_of(item)
                                : terminal.paint(Style::kRed, status_of(item)),
                 std::to_string(item.processes.size())});
      if (!ok) problems += fmt::format("  {}: {}\n", item.kernel, item.status.message());
    }
    return table.render(terminal) + problems;
  }

  SuiteRun guard_;
  std::string samples_, record_, build_;
  int rounds_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_run_command() { return std::make_unique<GuardRun>(); }

}  // namespace purlin::cli
