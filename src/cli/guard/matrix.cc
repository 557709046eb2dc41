// SPDX-License-Identifier: Apache-2.0
// `purlin guard matrix`: one suite over builds, toolkits, drivers and devices, to find the cause of
// a slowdown.
#include "guard/matrix/matrix.h"

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "cli/guard/device.h"
#include "cli/guard/suite_run.h"
#include "cli/guard/workload.h"
#include "guard/gate/signed_rank.h"
#include "model/document.h"

#include <algorithm>
#include <optional>

namespace purlin::cli {
namespace {

class GuardMatrix : public Command {
 public:
  std::string_view name() const override { return "guard matrix"; }
  std::string_view summary() const override {
    return "Find the cause of slower kernels: build, toolkit, driver or device";
  }
  VerbText text() const override {
    return {.description =
                "MATRIX names a suite or a command, and factors with their levels, from old to "
                "new. This machine runs the cells that it can: one fresh process of each cell per "
                "round, in random order.\n\nOther cells, such as another driver's, are recorded on "
                "their machine with --record DIR --here driver=570, and named in the file. The "
                "change between the first and the last levels is divided among the factors. The "
                "result has intervals and the interactions of the factors.",
            .examples = {{"purlin guard matrix upgrade.toml --journal upgrade.jsonl"}},
            .exit_codes = {{0, "No kernel is slower"},
                           {1, "Some kernels are slower"},
                           {2, "Error"},
                           {3, "Cells are missing"}},
            .see = {"docs/guide/guard.md", "docs/formats/matrix.md"}};
  }
  void declare(Flags& flags) override {
    flags.positional("MATRIX", path_, "Matrix file (TOML, docs/formats/matrix.md)");
    flags.list(
        "--here", here_,
        {"Level of a factor on this machine; repeatable", "It replaces the level in the file."},
        "FACTOR=LEVEL");
    flags.option("--repo", repository_, "Git repository of the revisions", "DIR");
    flags.own_option("--build", build_, "Shell command that builds a revision, run at its root",
                     "CMD");
    flags.option("--work", work_, "Folder for worktrees; built worktrees are used again", "DIR");
    flags.option("--device", device_, "Device, instead of the suite's", "DEVICE");
    flags.option("--cache", cache_, "Directory of the config cache", "DIR");
    flags.option("--journal", journal_, "File of the rounds; a killed run continues from it",
                 "FILE");
    flags.option("--record", record_, "Folder for a CSV file of each cell, for other machines",
                 "DIR");
    watched_.declare(flags);
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.guard-matrix/1."});
  }

  Result<int> run(Context& context) override {
    std::map<std::string, std::string> here;
    for (const std::string& assignment : here_) {
      const std::size_t at = assignment.find('=');
      if (at == 0 || at == std::string::npos)
        return error(Code::kInvalid, "--here takes FACTOR=LEVEL, not '{}'", assignment);
      here[assignment.substr(0, at)] = assignment.substr(at + 1);
    }
    PURLIN_ASSIGN(const guard::Matrix matrix, guard::load_matrix(path_, here));
    GuardWorkload::Choice choice{matrix.suite, repository_, build_, work_, device_, cache_};
    GuardWorkload opener(std::move(choice), matrix.command);
    PURLIN_ASSIGN(guard::Workload workload, opener.open(false));
    PURLIN_TRY(watched_.open(context, workload.device));
    PURLIN_ASSIGN(const std::string work, opener.open_work(context, workload));
    Result<guard::MatrixResult> result = run_cells(context, matrix, opener, workload, work);
    opener.clean_up(context);
    PURLIN_TRY(result.status());
    context.print(json_ ? document(matrix, *result, workload).dump(2) + "\n"
                        : text(matrix, *result, context.terminal));
    // After the result: an error of the folder must not lose it.
    if (!record_.empty()) PURLIN_TRY(record(matrix, *result));
    return exit_code(*result);
  }

 private:
  Result<guard::MatrixResult> run_cells(Context& context, const guard::Matrix& matrix,
                                        GuardWorkload& opener, const guard::Workload& workload,
                                        const std::string& work) {
    Random random = unguessable_random();
    std::optional<Progress> progress;
    progress.emplace(stderr, context.error_terminal, !context.quiet);
    PURLIN_ASSIGN(const std::string text, read_file(path_, std::size_t{1} << 20));
    return guard::run_matrix(
        {matrix,
         [&](const guard::Cell& cell,
             const guard::CellVariant& levels) -> Result<guard::Contender> {
           guard::Variant variant;
           if (!levels.revision.empty()) {
             PURLIN_ASSIGN(variant, opener.revision(context, levels.revision, work));
           }
           variant.label = matrix.text(cell);
           variant.environment = levels.environment;
           variant.cache = levels.cache;
           return guard::make_contender(workload, variant);
         },
         random, journal_, text + opener.identity(),
         [&](const std::string& doing, int done, int of) {
           if (progress) progress->update(fmt::format("matrix: {}, {}/{}", doing, done, of));
         },
         watched_.watch(), watched_.locked_mhz()});
  }

  Status record(const guard::Matrix& matrix, const guard::MatrixResult& result) const {
    PURLIN_TRY(make_directories_durably(record_));
    for (const guard::MatrixCell& cell : result.cells)
      if (!cell.elsewhere && cell.problem.empty())
        PURLIN_TRY(write_atomic(join_path(record_, matrix.text(cell.cell) + ".csv"),
                                guard::samples_csv(cell)));
    return Status::ok();
  }

  static bool slower(const guard::Attribution& found) {
    return found.shares.empty() ? false : !found.cause.empty() && found.ratio > 1;
  }
  static int exit_code(const guard::MatrixResult& result) {
    int code = result.items.empty() ? kExitInconclusive : kExitOk;
    for (const auto& item : result.items) {
      if (slower(item.attribution)) return kExitRegression;
      if (item.attribution.shares.empty()) code = kExitInconclusive;
    }
    return code;
  }

  static std::string names(const guard::Matrix& matrix, const guard::Share& share) {
    std::vector<std::string> names;
    for (const std::size_t factor : share.factors)
      names.push_back(matrix.factors[factor].factor.name);
    return join(names, "+");
  }
  static std::string with_interval(double ratio, double low, double high, bool paired) {
    return paired ? fmt::format("{:.3f}x [{:.3f}, {:.3f}]", ratio, low, high)
                  : fmt::format("{:.3f}x", ratio);
  }

  static std::string text(const guard::Matrix& matrix, const guard::MatrixResult& result,
                          const Terminal& terminal) {
    Table table;
    table.column("kernel");
    table.column("last / first");
    for (const guard::MatrixFactor& factor : matrix.factors) table.column(factor.factor.name);
    table.column("cause");
    for (const auto& item : result.items) {
      const guard::Attribution& found = item.attribution;
      std::vector<std::string> row = {
          item.item.text(), found.shares.empty()
                                ? "-"
                                : with_interval(found.ratio, found.low, found.high, found.paired)};
      for (std::size_t factor = 0; factor < matrix.factors.size(); ++factor) {
        std::string cell = "-";
        for (const guard::Share& share : found.shares)
          if (std::find(share.factors.begin(), share.factors.end(), factor) != share.factors.end())
            cell = (share.factors.size() > 1 ? names(matrix, share) + " " : "") +
                   fmt::format("{:.3f}x", share.ratio);
        row.push_back(std::move(cell));
      }
      row.push_back(
          found.cause.empty()
              ? "-"
              : terminal.paint(found.ratio > 1 ? Style::kRed : Style::kGreen, found.cause));
      table.row(std::move(row));
    }
    std::string text = table.render(terminal);
    for (const auto& item : result.items)
      text += fmt::format("  {}: {}\n", item.item.text(), item.attribution.reason);
    for (const guard::MatrixCell& cell : result.cells)
      if (!cell.problem.empty())
        text += fmt::format("  left out: {}: {}\n", matrix.text(cell.cell), cell.problem);
    for (const guard::MatrixCell& cell : result.cells)
      for (const auto& [item, why] : cell.failures)
        text += fmt::format("  left out: {}: {}: {}\n", matrix.text(cell.cell), item.text(), why);
    return text;
  }

  static Json document(const guard::Matrix& matrix, const guard::MatrixResult& result,
                       const guard::Workload& workload) {
    Json json = new_document("purlin.guard-matrix/1", GuardWorkload::environment(workload));
    json.set("matrix", matrix.name);
    Json factors = Json::array();
    for (const guard::MatrixFactor& factor : matrix.factors)
      factors.push(Json::object({{"name", factor.factor.name},
                                 {"kind", factor.factor.kind},
                                 {"levels", Json::array_of(factor.factor.levels)}}));
    json.set("factors", std::move(factors));
    Json cells = Json::array();
    for (const guard::MatrixCell& cell : result.cells) {
      Json items = Json::array();
      for (const auto& [item, times] : cell.times_ns) {
        std::vector<double> kept;
        for (const double time : times)
          if (time > 0) kept.push_back(time);
        if (kept.empty()) continue;
        items.push(Json::object({{"kernel", item.kernel},
                                 {"shape", item.shape},
                                 {"p50_ns", guard::median_of(kept)},
                                 {"rounds", kept.size()}}));
      }
      Json failures = Json::array();
      for (const auto& [item, why] : cell.failures)
        failures.push(Json::object({{"item", item.text()}, {"reason", why}}));
      cells.push(Json::object({{"cell", matrix.text(cell.cell)},
                               {"source", cell.elsewhere ? cell.source : "here"},
                               {"problem", cell.problem},
                               {"failures", std::move(failures)},
                               {"items", std::move(items)}}));
    }
    json.set("cells", std::move(cells));
    Json items = Json::array();
    for (const auto& item : result.items) {
      const guard::Attribution& found = item.attribution;
      Json shares = Json::array();
      for (const guard::Share& share : found.shares)
        shares.push(Json::object({{"factor", names(matrix, share)},
                                  {"ratio", share.ratio},
                                  {"low", share.paired ? Json(share.low) : Json()},
                                  {"high", share.paired ? Json(share.high) : Json()},
                                  {"p_value", share.paired ? Json(share.p_value) : Json()},
                                  {"paired", share.paired}}));
      items.push(Json::object({{"kernel", item.item.kernel},
                               {"shape", item.item.shape},
                               {"variant", item.item.variant},
                               {"ratio", found.shares.empty() ? Json() : Json(found.ratio)},
                               {"low", found.paired ? Json(found.low) : Json()},
                               {"high", found.paired ? Json(found.high) : Json()},
                               {"cause", found.cause},
                               {"reason", found.reason},
                               {"interaction", found.interaction},
                               {"shares", std::move(shares)}}));
    }
    json.set("items", std::move(items));
    json.set("measurement", measurement(result.measurement));
    return json;
  }

  static Json measurement(const guard::PairsRecord& record) {
    const Json all = guard::to_json(record);
    Json json = Json::object({{"launches", record.launches},
                              {"replayed_rounds", record.replayed},
                              {"rejected_launches", record.rejected_pairs}});
    for (const char* name : {"rejected_because", "locked_clock_mhz", "device", "other_processes"})
      if (const Json* value = all.find(name); value != nullptr) json.set(name, *value);
    return json;
  }

  GuardDevice watched_;
  std::string path_, repository_ = ".", build_, work_, device_, cache_, journal_, record_;
  std::vector<std::string> here_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_guard_matrix_command() { return std::make_unique<GuardMatrix>(); }

}  // namespace purlin::cli
