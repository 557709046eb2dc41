// SPDX-License-Identifier: Apache-2.0
#include "tune/session/report.h"

#include "base/text.h"
#include "measure/workbench.h"
#include "model/device/launch_counters.h"
#include "tune/session/ranking.h"

#include <algorithm>
#include <map>

namespace purlin::tune {
namespace {

struct Failures {
  std::size_t count = 0;
  const Evaluation* first = nullptr;
};

std::map<EvaluationStatus, Failures> failures_of(const SessionResult& result) {
  std::map<EvaluationStatus, Failures> failures;
  for (const Evaluation& evaluation : result.evaluations) {
    if (evaluation.ok()) continue;
    Failures& kind = failures[evaluation.status];
    if (kind.count++ == 0) kind.first = &evaluation;
  }
  return failures;
}

// FLOPs and bytes of one launch; zero where the spec does not say.
measure::Work work_of(const ReportInput& input, const Config& config) {
  if (input.spec == nullptr) return {};
  return measure::work_of(*input.spec, input.problem, config, input.device)
      .value_or(measure::Work{});
}

void add_rates(Json& json, const ReportInput& input, const Config& config, double time_ms) {
  const measure::Work work = work_of(input, config);
  if (work.flops > 0) json.set("gflops", work.flops / time_ms * 1e-6);
  if (work.bytes > 0) json.set("gbytes_per_s", work.bytes / time_ms * 1e-6);
}

const Config& config_of(const ReportInput& input, const Finalist& finalist) {
  return input.result.evaluations[finalist.evaluation].config;
}

Json finalist_json(const ReportInput& input, const Finalist& finalist) {
  Json samples = Json::array(), clocks = Json::array();
  bool clocks_known = false;
  for (const Sample& sample : finalist.samples) {
    samples.push(sample.ms);
    clocks.push(sample.sm_clock_mhz);
    clocks_known |= sample.sm_clock_mhz > 0;
  }
  Json json = Json::object(
      {{"config", to_json(config_of(input, finalist))}, {"time_ms", finalist.time_ms}});
  if (input.objective == Objective::kTime)
    json.set("interval_ms", Json::array({finalist.interval.low, finalist.interval.high}));
  if (finalist.energy_mj > 0)
    json.set("energy_mj", finalist.energy_mj).set("power_w", finalist.power_w);
  add_rates(json, input, config_of(input, finalist), finalist.time_ms);
  json.set("is_default", finalist.is_default);
  if (!finalist.problem.empty()) json.set("problem", finalist.problem);
  if (finalist.beaten) json.set("beaten", true);
  json.set("samples_ms", std::move(samples));
  if (clocks_known) json.set("sm_clock_mhz", std::move(clocks));
  return json;
}

// The evaluations in the order made. One that was in the finals has its time and samples from
// there, and those of the search in "search".
Json evaluations_json(const ReportInput& input) {
  const SessionResult& result = input.result;
  std::vector<const Finalist*> finalists(result.evaluations.size());
  if (result.verdict && result.verdict->rounds > 0)
    for (const Finalist& finalist : result.verdict->finalists)
      finalists[finalist.evaluation] = &finalist;
  std::vector<std::size_t> ranks(result.evaluations.size());
  std::size_t rank = 0;
  for (const RankedConfig& each : ranking(result, input.objective)) ranks[each.evaluation] = ++rank;
  Json evaluations = Json::array();
  for (std::size_t i = 0; i < result.evaluations.size(); ++i) {
    Json json = to_json(result.evaluations[i]);
    if (const Finalist* finalist = finalists[i]) {
      Json search =
          Json::object({{"time_ms", json["time_ms"]}, {"samples_ms", json["samples_ms"]}});
      Json final = finalist_json(input, *finalist);
      for (const char* key : {"time_ms", "samples_ms", "sm_clock_mhz"})
        if (const Json* value = final.find(key)) json.set(key, *value);
      if (!finalist->problem.empty()) json.set("problem", finalist->problem);
      json.set("search", std::move(search));
    }
    if (ranks[i] > 0)
      json.set("rank", ranks[i]).set("from", finalists[i] != nullptr ? "finals" : "search");
    evaluations.push(std::move(json));
  }
  return evaluations;
}

Json space_json(const ReportInput& input) {
  Json pruned = Json::array();
  for (const Pruned& by : input.space.pruned())
    pruned.push(Json::object(
        {{"constraint", by.constraint}, {"where", by.where}, {"configs", by.configs}}));
  return Json::object({{"cartesian", input.space.cartesian()},
                       {"valid", input.space.size()},
                       {"pruned", std::move(pruned)},
                       {"build_s", input.space_s}});
}

std::string_view state_name(TransferOutcome::State state) {
  switch (state) {
    case TransferOutcome::State::kKept:
      return "kept";
    case TransferOutcome::State::kDropped:
      return "dropped";
    default:
      return "undecided";
  }
}

Json transfer_json(const ReportInput& input) {
  Json sources = Json::array();
  for (const PriorSource& source : input.transfer_sources)
    sources.push(Json::object({{"source", source.name},
                               {"device", source.device},
                               {"shape", source.shape},
                               {"toolkit", source.toolkit},
                               {"configs", source.configs},
                               {"failed", source.failed},
                               {"left_out", source.left_out}}));
  Json json = Json::object({{"sources", std::move(sources)}});
  if (!input.transfer) return json.set("state", "unused");
  const TransferOutcome& outcome = *input.transfer;
  return json.set("state", state_name(outcome.state))
      .set("why", outcome.why)
      .set("proposed", outcome.proposed)
      .set("failed", outcome.failed)
      .set("drawn", outcome.drawn)
      .set("runs_dropped", outcome.runs_dropped)
      .set("belief", outcome.belief)
      .set("evidence_nats", outcome.evidence);
}

// "started from 3 runs (A100, A4000, MI250X): dropped, for their order is no better than chance".
std::string transfer_text(const ReportInput& input) {
  if (!input.transfer || input.transfer_sources.empty()) return "";
  std::vector<std::string> names;
  for (const PriorSource& source : input.transfer_sources) {
    if (source.configs == 0) continue;
    const std::string& name = source.device.empty() ? source.name : source.device;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const TransferOutcome& outcome = *input.transfer;
  return fmt::format("started from {} run{} ({}): {}{}\n", input.transfer_sources.size(),
                     input.transfer_sources.size() == 1 ? "" : "s",
                     elide_middle(join(names, ", "), 80), state_name(outcome.state),
                     outcome.why.empty() ? "" : ", for " + outcome.why);
}

// Of how many evaluations the hardware's counters were read in the session, and what that took.
struct Counted {
  std::size_t configs = 0;
  double seconds = 0;
};

Counted counted_of(const SessionResult& result) {
  Counted counted;
  for (const Evaluation& evaluation : result.evaluations) {
    counted.seconds += evaluation.counters_s;
    counted.configs +=
        evaluation.counters_s > 0 &&
        std::any_of(evaluation.counters.begin(), evaluation.counters.end(),
                    [](const auto& counter) { return is_hardware_counter(counter.first); });
  }
  return counted;
}

// Explains the winner's speed by its shares of the device's peaks.
std::string counted_text(const ReportInput& input) {
  const Counted counted = counted_of(input.result);
  if (counted.configs == 0) return "";
  std::string text = fmt::format("hardware counters of {} configs were read in {:.1f} s",
                                 counted.configs, counted.seconds);
  constexpr std::pair<const char*, const char*> kShares[] = {
      {"dram_busy_pct", "DRAM"},           {"issue_busy_pct", "issue slots"},
      {"tensor_busy_pct", "tensor cores"}, {"fma_busy_pct", "FMA pipe"},
      {"achieved_occupancy_pct", "warps"}, {"l2_hit_pct", "L2 hits"}};
  const Evaluation& winner = input.result.evaluations[input.result.verdict->best().evaluation];
  std::vector<std::string> shares;
  for (const auto& [name, label] : kShares)
    if (const auto found = winner.counters.find(name); found != winner.counters.end())
      shares.push_back(fmt::format("{} {:.0f} %", label, found->second));
  if (!shares.empty()) text += "; the winner's: " + join(shares, ", ");
  return text + "\n";
}

// "12.3 TFLOP/s", or bandwidth where the spec counts no operations.
std::string rate_text(const ReportInput& input, const Config& config, double time_ms) {
  const measure::Work work = work_of(input, config);
  if (work.flops > 0) {
    const double gflops = work.flops / time_ms * 1e-6;
    return gflops >= 1000 ? fmt::format("{:.2f} TFLOP/s", gflops / 1000)
                          : fmt::format("{:.1f} GFLOP/s", gflops);
  }
  return work.bytes > 0 ? fmt::format("{:.1f} GB/s", work.bytes / time_ms * 1e-6) : "";
}

// Of a session that measured the cache's winner again, and nothing that the cache does not know.
std::string confirmed_text(const SessionResult& result) {
  const Finalist& winner = result.verdict->best();
  return std::string(winner.is_default ? "the cached winner, which is the default, still works"
                                       : "the cached winner was confirmed against the default") +
         ", nothing was searched (--fresh searches)";
}

std::string first_line(std::string_view text) { return split(text, '\n').front(); }

// A message is printed once: the error about no config that works, and the warning about the
// default, have theirs.
void append_failures(std::string& text, const ReportInput& input, const Terminal& terminal) {
  const SessionResult& result = input.result;
  const Evaluation* warned =
      result.default_evaluation ? &result.evaluations[*result.default_evaluation] : nullptr;
  for (const auto& [status, kind] : failures_of(result)) {
    text += terminal.paint(Style::kYellow,
                           fmt::format("{} failed ({})", kind.count, status_name(status)));
    if (kind.first == warned)
      text += ", first the default";
    else if (result.verdict)
      text += fmt::format(", first {}: {}", kind.first->config.text(),
                          elide_middle(first_line(kind.first->message), 200));
    text += "\n";
  }
}

}  // namespace

Json report_document(const ReportInput& input, const Environment& environment) {
  const SessionResult& result = input.result;
  Json document = new_document("purlin.tune/1", environment);
  document.set("kernel", input.kernel);
  if (input.spec != nullptr) {
    document.set("spec", Json::object({{"file", input.spec->file}, {"op", input.spec->op}}));
    document.set("problem", to_json(input.problem));
  }
  document.set("device", input.device.id)
      .set("strategy", input.strategy)
      .set("strategy_used", input.strategy_used)
      .set("seed", input.seed)
      .set("budget", input.budget.text())
      .set("objective", objective_name(input.objective))
      .set("policy", to_json(input.policy))
      .set("space", space_json(input));
  if (input.confirmed) document.set("confirmed", true);
  if (result.verdict) {
    const Verdicts& verdict = *result.verdict;
    const double best_ms = verdict.best().time_ms;
    document.set("best", finalist_json(input, verdict.best()));
    if (verdict.fallback) {
      const Finalist& fallback = verdict.finalists[*verdict.fallback];
      document.set("default", finalist_json(input, fallback));
      document.set("speedup_over_default", fallback.time_ms / best_ms);
    }
    document.set("worst_over_best", worst_over_best(result));
    if (verdict.machine_change != 1) document.set("machine_change", verdict.machine_change);
    Json ties = Json::array(), finalists = Json::array();
    for (const std::size_t tie : verdict.ties)
      ties.push(to_json(config_of(input, verdict.finalists[tie])));
    for (const Finalist& finalist : verdict.finalists)
      finalists.push(finalist_json(input, finalist));
    document.set("ties", std::move(ties));
    document.set("finals",
                 Json::object({{"rounds", verdict.rounds}, {"finalists", std::move(finalists)}}));
  } else {
    document.set("best", nullptr);
  }
  Json failures = Json::object();
  for (const auto& [status, kind] : failures_of(result))
    failures.set(status_name(status), Json::object({{"count", kind.count},
                                                    {"first_config", to_json(kind.first->config)},
                                                    {"first_message", kind.first->message}}));
  if (input.transfer || !input.transfer_sources.empty())
    document.set("transfer", transfer_json(input));
  if (const Counted counted = counted_of(result);
      counted.seconds > 0 || !input.counters_problem.empty()) {
    Json json = Json::object({{"configs", counted.configs}, {"seconds", counted.seconds}});
    if (!input.counters_problem.empty()) json.set("problem", input.counters_problem);
    document.set("hardware_counters", std::move(json));
  }
  document.set("failures", std::move(failures))
      .set("end", end_name(result.end))
      .set("resumed", result.resumed)
      .set("elapsed_s", result.elapsed_s)
      .set("cost_s", result.evaluations.empty() ? 0 : result.evaluations.back().cumulative_cost_s);
  if (!input.session_directory.empty()) document.set("session", input.session_directory);
  if (!input.stored_key.empty())
    document.set("stored",
                 Json::object({{"cache", input.stored_directory}, {"key", input.stored_key}}));
  if (result.noise > 0) document.set("noise", result.noise);
  if (const Rematched& again = result.rematched; again.rounds > 0)
    document.set("rematches", Json::object({{"rounds", again.rounds},
                                            {"configs", again.configs},
                                            {"out", again.out},
                                            {"seconds", again.seconds}}));
  return document.set("evaluations", evaluations_json(input));
}

std::string report_text(const ReportInput& input, const Terminal& terminal, std::size_t top) {
  const SessionResult& result = input.result;
  std::string text = terminal.paint(Style::kBold, input.kernel);
  if (!input.problem.empty()) text += "  " + input.problem.text();
  text += fmt::format("  on {} ({})\n", input.device.name, input.device.id);
  const std::string evaluated =
      fmt::format("{} of {} valid configs evaluated ({:.0f} in the Cartesian product)",
                  result.evaluations.size(), input.space.size(), input.space.cartesian());
  text += (input.confirmed ? confirmed_text(result) + ": " : "") + evaluated + "\n\n";
  if (!result.verdict) {
    append_failures(text, input, terminal);
    return text;
  }
  const Verdicts& verdict = *result.verdict;
  const std::vector<RankedConfig> rows = ranking(result, input.objective);
  Table table;
  table.column("#", Table::Align::kRight);
  table.column("time", Table::Align::kRight);
  table.column("of best", Table::Align::kRight);
  table.column("rate", Table::Align::kRight);
  const bool energy = std::any_of(result.evaluations.begin(), result.evaluations.end(),
                                  [](const Evaluation& e) { return e.energy_mj > 0; });
  if (energy) {
    table.column("energy", Table::Align::kRight);
    table.column("power", Table::Align::kRight);
  }
  table.column("config");
  table.column("");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RankedConfig& row = rows[i];
    const bool is_default = row.evaluation == result.default_evaluation;
    if (i >= top && !is_default) continue;
    const Config& config = result.evaluations[row.evaluation].config;
    // Racing stopped early: it is at least this slow, and that is all that is known.
    const bool raced_out = row.finalist == nullptr && result.evaluations[row.evaluation].raced_out;
    const char* const bound = raced_out ? "> " : "";
    std::string note = is_default ? "default" : "";
    if (verdict.rounds > 0 && row.finalist == nullptr) note += note.empty() ? "search" : ", search";
    if (row.is_tie) note += note.empty() ? "tie" : ", tie";
    if (i == 0) note += note.empty() ? "best" : ", best";
    std::vector<std::string> cells = {
        std::to_string(i + 1), bound + format_ns(row.time_ms * 1e6),
        fmt::format("{}{:.2f}x", bound, row.time_ms / verdict.best().time_ms),
        raced_out ? "" : rate_text(input, config, row.time_ms)};
    if (energy) {
      const Evaluation& searched = result.evaluations[row.evaluation];
      const double mj = row.finalist != nullptr ? row.finalist->energy_mj : searched.energy_mj;
      const double watts = row.finalist != nullptr ? row.finalist->power_w : searched.power_w;
      cells.push_back(mj > 0 ? fmt::format("{:.3g} mJ", mj) : "");
      cells.push_back(watts > 1e6 ? fmt::format("{:.3g} W", watts)
                      : watts > 0 ? fmt::format("{:.0f} W", watts)
                                  : "");
    }
    cells.push_back(config.text());
    cells.push_back(i == 0 ? terminal.paint(Style::kGreen, note) : note);
    table.row(cells);
  }
  text += table.render(terminal) + "\n";
  append_failures(text, input, terminal);
  if (const std::string claim = claim_text(verdict); !claim.empty()) text += claim + "; ";
  text += fmt::format("worst to best {:.1f}x\n", worst_over_best(result));
  text += transfer_text(input);
  text += counted_text(input);
  if (const Rematched& again = result.rematched; again.rounds > 0)
    text += fmt::format(
        "rematches: while compilers worked, {} {} measured again in {} {}, {:.1f} s; {} of them "
        "lost\n",
        again.configs, again.configs == 1 ? "leader was" : "leaders were", again.rounds,
        noun_for(again.rounds, "round"), again.seconds, again.out);
  if (verdict.rounds > 0)
    text += fmt::format("finals: {} {} measured again in {} {}\n", verdict.finalists.size(),
                        noun_for(verdict.finalists.size(), "config"), verdict.rounds,
                        noun_for(verdict.rounds, "round"));
  if (verdict.machine_change != 1)
    text += fmt::format(
        "the machine's state changed before the finals: the same configs take {:.1f} times as "
        "long\n",
        verdict.machine_change);
  return text;
}

Status nothing_worked(const SessionResult& result) {
  const Failures* worst = nullptr;
  EvaluationStatus status = EvaluationStatus::kOk;
  const auto failures = failures_of(result);
  for (const auto& [kind, found] : failures)
    if (worst == nullptr || found.count > worst->count) worst = &found, status = kind;
  if (worst == nullptr)
    return error(Code::kCancelled, "stopped before the first config was evaluated");
  return error(Code::kFailed,
               "none of the {} configs evaluated works; {} failed with '{}', first "
               "{}:\n{}",
               result.evaluations.size(), worst->count, status_name(status),
               worst->first->config.text(), worst->first->message);
}

}  // namespace purlin::tune
