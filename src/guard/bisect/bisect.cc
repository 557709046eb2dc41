// SPDX-License-Identifier: Apache-2.0
#include "guard/bisect/bisect.h"

#include "base/json/json_lines.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace purlin::guard {
namespace {

// Standard normal quantile of an error of 1 in 2,000 in each direction.
constexpr double kStepQuantile = 3.3;
constexpr int kMinPairs = 8, kMaxPairs = 40;
constexpr int kMaxUnfit = 6;

// For fnmatch: a pattern that matches only the text itself.
std::string literal(const std::string& text) {
  std::string glob;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

// Standard deviation of the log ratio of one pair, from the width of an interval of many.
double pair_deviation(const Effect& effect) {
  const double width = std::log(effect.high / effect.low);
  return width / (2 * 1.96) * std::sqrt(static_cast<double>(effect.pairs));
}

std::string short_name(const std::string& commit) { return commit.substr(0, 12); }

std::string_view probe_name(Probe probe) {
  switch (probe) {
    case Probe::kGood:
      return "good";
    case Probe::kBad:
      return "bad";
    case Probe::kUntriable:
      return "untriable";
    case Probe::kUntried:
      break;
  }
  return "untried";
}

Probe probe_of(const std::string& name) {
  for (const Probe probe : {Probe::kGood, Probe::kBad, Probe::kUntriable})
    if (probe_name(probe) == name) return probe;
  return Probe::kUntried;
}

class Bisector {
 public:
  explicit Bisector(const BisectSetup& setup) : setup_(setup), search_(setup.commits.size()) {}

  Result<Bisection> run() {
    const std::int64_t begin = setup_.clock.monotonic_ns();
    if (!setup_.journal.empty()) PURLIN_TRY(open_journal());
    PURLIN_TRY(show_whole());
    if (!result_.nothing_to_find.empty()) return std::move(result_);
    PURLIN_TRY(search());
    result_.good = setup_.commits[search_.good()];
    result_.bad = setup_.commits[search_.bad()];
    for (std::size_t i = search_.good() + 1; i <= search_.bad(); ++i)
      result_.candidates.push_back(setup_.commits[i]);
    if (search_.found()) PURLIN_TRY(confirm());
    result_.seconds = static_cast<double>(setup_.clock.monotonic_ns() - begin) / 1e9;
    return std::move(result_);
  }

 private:
  void say(const std::string& line) const {
    if (setup_.say) setup_.say(line);
  }

  Status open_journal() {
    PURLIN_ASSIGN(JsonLines file, JsonLines::open(setup_.journal));
    const Json head = Json::object({{"schema", "purlin.bisect/1"},
                                    {"identity", setup_.identity},
                                    {"commits", Json::array_of(setup_.commits)},
                                    {"filter", setup_.filter}});
    const std::vector<Json> lines = file.take_lines();
    if (lines.empty()) {
      PURLIN_TRY(file.append(head));
    } else if (!(lines.front() == head)) {
      return error(Code::kInvalid,
                   "'{}' is the journal of another bisection; remove it or name another --journal",
                   setup_.journal);
    }
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const auto commit =
          std::find(setup_.commits.begin(), setup_.commits.end(), lines[i]["commit"].as_string());
      const Probe probe = probe_of(lines[i]["probe"].as_string());
      if (commit == setup_.commits.end() || probe == Probe::kUntried) continue;
      BisectStep step{*commit, probe, lines[i]["reason"].as_string(), {}};
      step.effect.pairs = static_cast<int>(lines[i]["pairs"].as_int());
      step.effect.ratio = lines[i]["ratio"].as_double(1);
      known_[*commit] = std::move(step);
    }
    journal_.emplace(std::move(file));
    return Status::ok();
  }

  Result<Report> judge(const std::string& before, const std::string& after,
                       const std::string& filter, const std::string& journal) {
    PURLIN_ASSIGN(const Contender a, setup_.open(before));
    PURLIN_ASSIGN(const Contender b, setup_.open(after));
    Result<Report> report =
        compare({before + " vs " + after, *a.arm, *b.arm, setup_.design,
                 [&](const Item& item) { return b.thresholds_of(item, setup_.thresholds); }, filter,
                 "code", setup_.environment, journal, setup_.options, setup_.random, setup_.clock});
    if (report.is_ok()) result_.measurement.merge(report->measurement);
    return report;
  }

  // The last commit against the first: the item with a proven slowdown, and its size.
  Status show_whole() {
    say(fmt::format("is {} slower than {}?", short_name(setup_.commits.back()),
                    short_name(setup_.commits.front())));
    PURLIN_ASSIGN(const Report report,
                  judge(setup_.commits.front(), setup_.commits.back(), setup_.filter,
                        setup_.journal.empty() ? "" : setup_.journal + ".whole"));
    const ReportItem* clearest = nullptr;
    const auto clarity = [](const ReportItem& item) {
      return std::log(item.result.effect.ratio) / pair_deviation(item.result.effect);
    };
    for (const ReportItem& item : report.items)
      if (item.result.verdict == Verdict::kRegression &&
          (clearest == nullptr || clarity(item) > clarity(*clearest)))
        clearest = &item;
    if (clearest == nullptr) {
      std::string said;
      bool faster = false;
      for (const ReportItem& item : report.items) {
        faster |= item.result.verdict == Verdict::kImprovement;
        said += fmt::format("\n  {} {}: {} {}", item.kernel, item.shape,
                            verdict_name(item.result.verdict), item.result.reason);
      }
      if (faster) said += "\nIt is faster. The first revision must be the fast one.";
      result_.nothing_to_find =
          fmt::format("{} is not slower than {} beyond doubt, so there is no culprit to find:{}",
                      short_name(setup_.commits.back()), short_name(setup_.commits.front()), said);
      return Status::ok();
    }
    result_.item = {clearest->kernel, clearest->shape, clearest->variant};
    result_.whole = clearest->result;
    const double deviation = pair_deviation(result_.whole.effect);
    slowdown_ = std::log(result_.whole.effect.ratio);
    pairs_ = setup_.pairs > 0 ? setup_.pairs : pairs_for_step(slowdown_, deviation);
    say(fmt::format("{}: {:.3f}x; {} between, {} a step, at most {} unless builds fail",
                    result_.item.text(), result_.whole.effect.ratio,
                    counted(setup_.commits.size() - 2, "commit"), counted(pairs_, "pair"),
                    counted(search_.tries_left(), "step")));
    return Status::ok();
  }

  Status search() {
    while (const std::optional<std::size_t> next = search_.next()) {
      const std::string& commit = setup_.commits[*next];
      const auto known = known_.find(commit);
      const bool replayed = known != known_.end();
      BisectStep step;
      if (replayed) {
        step = known->second;
      } else {
        PURLIN_ASSIGN(step, measure(commit));
        if (journal_)
          PURLIN_TRY(journal_->append(Json::object({{"commit", commit},
                                                    {"probe", probe_name(step.probe)},
                                                    {"reason", step.reason},
                                                    {"pairs", step.effect.pairs},
                                                    {"ratio", step.effect.ratio}})));
      }
      say(fmt::format("{}: {}{}{}", short_name(commit), probe_name(step.probe),
                      step.probe == Probe::kUntriable
                          ? ": " + step.reason.substr(0, step.reason.find('\n'))
                          : fmt::format(", {:.3f}x", step.effect.ratio),
                      replayed ? " (from the journal)" : ""));
      search_.tell(*next, step.probe);
      result_.steps.push_back(std::move(step));
    }
    return Status::ok();
  }

  Result<BisectStep> measure(const std::string& commit) {
    BisectStep step{commit, Probe::kUntriable, "", {}};
    const auto untriable = [&](const Status& why) -> Result<BisectStep> {
      if (why.code() != Code::kFailed) return why.with_context(short_name(commit));
      step.reason = why.message();
      if (setup_.close) setup_.close(commit);
      return std::move(step);
    };
    PURLIN_TRY(open_good());
    Result<Contender> candidate = setup_.open(commit);
    if (!candidate.is_ok()) return untriable(candidate.status());
    if (const Status ready = candidate->arm->prepare(); !ready.is_ok()) return untriable(ready);
    // Unmeasured first, as in the gate: compiles, and verifies items with a reference.
    if (const auto first = ask(*candidate->arm, true); !first.is_ok())
      return untriable(first.status());
    std::vector<Pair> pairs;
    for (int unfit = 0; static_cast<int>(pairs.size()) < pairs_;) {
      const bool candidate_first = setup_.random.next() >> 63;
      Pair pair;
      bool fit = true;
      for (const bool now : {candidate_first, !candidate_first}) {
        Result<ProcessReading> reading = ask(now ? *candidate->arm : *good_->arm, false);
        if (!reading.is_ok()) {
          if (now) return untriable(reading.status());
          return reading.status().with_context("the good commit, which ran before");
        }
        (now ? pair.current : pair.baseline) = reading->reading;
        fit = fit && reading->unfit.empty();
        if (!reading->unfit.empty()) unfit_ = reading->unfit;
      }
      if (fit)
        pairs.push_back(pair);
      else
        result_.measurement.reject(unfit_);
      unfit = fit ? 0 : unfit + 1;
      if (unfit == kMaxUnfit)
        return error(Code::kUnavailable, "the machine is not fit to measure on: {}", unfit_);
    }
    step.effect = effect_of(pairs, setup_.design.interval_tail);
    step.probe = std::log(step.effect.ratio) > slowdown_ / 2 ? Probe::kBad : Probe::kGood;
    if (setup_.close) setup_.close(commit);
    return step;
  }

  Status open_good() {
    if (good_) return Status::ok();
    PURLIN_ASSIGN(Contender good, setup_.open(setup_.commits.front()));
    PURLIN_TRY(good.arm->prepare());
    good_.emplace(std::move(good));
    return ask(*good_->arm, true).status();
  }

  Result<ProcessReading> ask(Arm& arm, bool rehearsal) {
    const std::vector<Item> wanted = {result_.item};
    Watch* const watch = rehearsal ? nullptr : setup_.options.watch;
    if (watch != nullptr) watch->begin();
    Result<Readings> launched = rehearsal ? arm.rehearse(wanted) : arm.launch(wanted);
    Conditions conditions;
    if (watch != nullptr) conditions = watch->end();
    result_.measurement.conditions.merge(conditions);
    result_.measurement.launches += rehearsal ? 0 : 1;
    PURLIN_TRY(launched.status());
    for (ItemReading& reading : *launched) {
      if (!(reading.item == result_.item)) continue;
      if (!reading.status.is_ok()) return error(Code::kFailed, "{}", reading.status.message());
      if (reading.process.unfit.empty()) reading.process.unfit = conditions.unfit;
      return std::move(reading.process);
    }
    return error(Code::kFailed, "it does not have {}", result_.item.text());
  }

  Status confirm() {
    say(fmt::format("confirming {} against its parent {}", short_name(result_.bad),
                    short_name(result_.good)));
    Result<Report> report = judge(result_.good, result_.bad, literal(result_.item.text()), "");
    if (!report.is_ok() && report.status().code() == Code::kFailed) {
      result_.confirmation.reason = report.status().message();
      return Status::ok();
    }
    PURLIN_TRY(report.status());
    if (report->items.size() != 1)
      return error(Code::kInvalid, "confirming gave {} items", report->items.size());
    result_.confirmation = report->items.front().result;
    result_.confirmed = result_.confirmation.verdict == Verdict::kRegression;
    return Status::ok();
  }

  const BisectSetup& setup_;
  BisectSearch search_;
  Bisection result_;
  std::optional<JsonLines> journal_;
  std::map<std::string, BisectStep> known_;  // from the journal
  std::optional<Contender> good_;
  double slowdown_ = 0;  // log ratio of the whole
  int pairs_ = kMinPairs;
  std::string unfit_;
};

}  // namespace

int pairs_for_step(double slowdown, double pair_deviation) {
  // The mean of n pairs must stay on its side of slowdown / 2. Hodges-Lehmann needs 5 % more pairs
  // than the mean where noise is normal, and fewer where it is not.
  const double needed = 1.05 * std::pow(kStepQuantile * pair_deviation / (slowdown / 2), 2);
  if (!(needed < kMaxPairs)) return kMaxPairs;
  return std::max(kMinPairs, static_cast<int>(std::ceil(needed)));
}

Result<Bisection> bisect(const BisectSetup& setup) {
  if (setup.commits.size() < 2)
    return error(Code::kInvalid, "there are no commits between the good and the bad one");
  return Bisector(setup).run();
}

}  // namespace purlin::guard
