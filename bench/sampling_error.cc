// SPDX-License-Identifier: Apache-2.0
// bench_sampling_error [SEEDS [SECONDS]]: what the overhead controller's sampling does to a
// profile, without a GPU. SHARED_DATA names the folder of recorded traces (../shared/data where it
// is not set).
//
// Launch streams recorded on GPUs (data/traces) are replayed through the overhead controller by a
// clock of their own: repeated for SECONDS (default 60) at a given number of launches a second,
// with noise on every duration, a clock that drifts, and phases in which only a part of the step
// runs; what is recorded runs slower by what the cost model says, or twice as slow. Each of SEEDS
// (default 1,000) draws other windows over the same launches. What the windows record, weighed by
// time and by ids of launches, is compared with all launches: total and count, shares of the 20
// kernels that own most, their p50 and p95. Rows at rates and budgets where the overhead controller
// neither records everything nor, launch bound, stops after the head, and one of each of those.
// Exit code 1 where the mean of the totals by ids is off by more than three of its standard errors
// and a thousandth.
#include "base/files.h"
#include "base/text.h"
#include "model/profile/profile.h"
#include "profile/capture/sampling/launch_counter.h"
#include "profile/capture/sampling/overhead_controller.h"
#include "profile/import/import.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace purlin;
using profile::capture::ControllerOptions;
using profile::capture::LaunchCounter;
using profile::capture::OverheadController;

namespace {

constexpr double kSecondNs = 1e9;
constexpr double kPi = 3.14159265358979323846;
constexpr std::size_t kTop = 20;

struct Launch {
  std::int64_t start_ns = 0;
  std::uint32_t kernel = 0;
  float duration_ns = 0;
};

struct Stream {
  std::vector<Launch> launches;  // in order of time
  std::size_t kernels = 0;
  bool nodes = false;    // of a graph that is replayed, a step each time
  std::size_t unit = 1;  // launches that have one id, and are recorded together
  double slower = 1;     // times as long a stretch of it takes while it is recorded
};

struct Totals {
  std::vector<Sketch> kernels;
  double time_ns = 0, count = 0;

  explicit Totals(std::size_t size) : kernels(size) {}
  void add(const Launch& launch, double weight) {
    kernels[launch.kernel].add(launch.duration_ns, weight);
    time_ns += static_cast<double>(launch.duration_ns) * weight;
    count += weight;
  }
};

// A step of the trace, as it was recorded.
Result<Stream> step_of(const std::string& path) {
  PURLIN_ASSIGN(const Profile profile, profile::open_profile(path));
  Stream step;
  std::map<std::uint32_t, std::uint32_t> kernels;
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.kind != ActivityKind::kKernel) continue;
    const auto id = static_cast<std::uint32_t>(kernels.size());
    const std::uint32_t kernel = kernels.try_emplace(activity.row, id).first->second;
    step.launches.push_back({activity.start_ns, kernel, static_cast<float>(activity.duration_ns)});
  }
  std::sort(step.launches.begin(), step.launches.end(),
            [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
  step.kernels = kernels.size();
  return step;
}

// The step again and again at `rate` launches a second.
Stream program_of(const Stream& step, double rate, double seconds) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  Stream program;
  program.kernels = step.kernels;
  program.nodes = step.nodes;
  program.unit = step.unit;
  program.slower = step.slower;
  const auto launches = static_cast<double>(step.launches.size());
  const std::int64_t first = step.launches.front().start_ns;
  const double span = static_cast<double>(step.launches.back().start_ns - first) * launches /
                      std::max(1.0, launches - 1);
  const double stretch = launches / rate * kSecondNs / std::max(1.0, span);
  for (double begin = 0; begin < seconds * kSecondNs; begin += span * stretch) {
    // Three seconds of every twenty are an evaluation: the first third of the step.
    const bool part = program.unit == 1 && std::fmod(begin / kSecondNs, 20) > 17;
    const double drift = 1 + 0.1 * std::sin(2 * kPi * begin / (37 * kSecondNs));
    const std::size_t end = part ? step.launches.size() / 3 : step.launches.size();
    for (std::size_t i = 0; i < end; ++i) {
      Launch launch = step.launches[i];
      launch.start_ns =
          static_cast<std::int64_t>(begin + static_cast<double>(launch.start_ns - first) * stretch);
      if (static_cast<double>(launch.start_ns) >= seconds * kSecondNs) break;
      launch.duration_ns *= static_cast<float>(drift * std::exp(noise(random)));
      program.launches.push_back(launch);
    }
  }
  return program;
}

// The collector scheduler's part, with a clock that only this moves.
class Replay {
 public:
  Replay(const Stream& program, double budget, std::uint64_t seed, bool ids)
      : program_(program),
        controller_(options(budget, seed), {{}}, 0),
        seen_(program.kernels),
        ids_(ids) {}

  // All of the program, however long it takes under capture.
  Totals run() {
    std::int64_t now = 0;
    while (next_ < program_.launches.size()) {
      const OverheadController::Decision decision = controller_.decide(now);
      if (open_ && decision.tier != 0) {
        controller_.closed(0, now);
        controller_.spent(0, 20'000);
        open_ = false;
        closed_ns_ = now;
      }
      if (decision.new_period) {
        settle(now, false);
        known_ = controller_.weight_is_final();
      }
      if (!open_ && decision.tier == 0) {
        controller_.opened(0, now);
        controller_.spent(0, 30'000);
        open_ = true;
      }
      if (decision.cycle) start_counter(now, true);
      if (open_ && controller_.totals().windows > 1) start_counter(now, false);
      // The session's thread wakes at least ten times a second while something is open.
      std::int64_t next = std::min(decision.ask_again_ns, now + 100'000'000);
      next = std::max(next, now + 1000);
      advance(next);
      now = next;
      controller_.spent(0, 25'000);  // a flush, as far as the program waits for it
    }
    controller_.interrupted(now);
    if (open_) closed_ns_ = now;
    counter_.see_now(static_cast<std::uint32_t>(kFirstId + (next_ - 1) / program_.unit), now);
    settle(now, true);
    return std::move(seen_);
  }
  const OverheadController& controller() const { return controller_; }

 private:
  static ControllerOptions options(double budget, std::uint64_t seed) {
    ControllerOptions result;
    result.budget = budget;
    result.seed = seed;
    return result;
  }
  void start_counter(std::int64_t now, bool stood_still) {
    if (counter_.running()) return;
    counter_.start(now, stood_still);
    controller_.take_alone_ns();
  }
  void advance(std::int64_t to_ns) {
    const std::size_t from = next_;
    const auto elapsed = static_cast<double>(to_ns - std::exchange(now_ns_, to_ns));
    program_ns_ += open_ ? elapsed / program_.slower : elapsed;
    while (next_ < program_.launches.size() &&
           static_cast<double>(program_.launches[next_].start_ns) < program_ns_)
      ++next_;
    if (!open_) return;
    const std::size_t first = up(from), last = std::min(up(next_), program_.launches.size());
    if (first >= last) return;
    pending_.emplace_back(first, last);
    for (std::size_t id = first / program_.unit; id * program_.unit < last; ++id)
      counter_.see(static_cast<std::uint32_t>(kFirstId + id), known_ ? 1 : 0,
                   program_.launches[id * program_.unit].start_ns);
    const auto recorded = static_cast<double>(last - first);
    program_.nodes ? controller_.recorded(0, recorded) : controller_.recorded(recorded, 0);
  }
  // To whole units: one is launched with its first.
  std::size_t up(std::size_t index) const {
    return (index + program_.unit - 1) / program_.unit * program_.unit;
  }
  void settle(std::int64_t now, bool last) {
    const OverheadController::Standing standing = controller_.take_weight(last);
    LaunchCounter::Stretch stretch = {
        standing.weight, standing.time_ns, closed_ns_, now, true, last};
    stretch.alone_ns = controller_.take_alone_ns();
    const bool weighed = !known_ && ids_;
    if (!weighed) stretch.by_time = 1;
    const double by_ids = counter_.settle(stretch).value;
    add(pending_, weighed ? by_ids : standing.weight);
    if (weighed && !pending_.empty() && (!last || kept_.empty()))
      kept_.push_back({pending_, by_ids});
    if (kept_.size() > kMaxKept) kept_.pop_front();
    pending_.clear();
    if (last && ids_) share(counter_.left_out());
  }
  // As ActivityAggregator does it: what is left at the end is the last windows', by what each
  // stands for.
  void share(double launches) {
    double all = 0;
    for (const Kept& each : kept_)
      for (const auto& [from, to] : each.ranges)
        all += each.weight * static_cast<double>((to - from) / program_.unit);
    for (const Kept& each : kept_) add(each.ranges, launches * each.weight / std::max(all, 1.0));
  }
  void add(const std::vector<std::pair<std::size_t, std::size_t>>& ranges, double weight) {
    if (weight <= 0) return;
    for (const auto& [from, to] : ranges)
      for (std::size_t i = from; i < to; ++i) seen_.add(program_.launches[i], weight);
  }

  static constexpr std::uint32_t kFirstId = 0xfffff000;  // ids come round

  const Stream& program_;
  OverheadController controller_;
  Totals seen_;
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  struct Kept {
    Ranges ranges;
    double weight;
  };
  static constexpr std::size_t kMaxKept = 16;
  Ranges pending_;
  std::deque<Kept> kept_;
  std::size_t next_ = 0;
  std::int64_t now_ns_ = 0;
  double program_ns_ = 0;  // how far it has come: as its launches count time
  bool open_ = false, known_ = true;
  bool ids_;
  LaunchCounter counter_;
  std::int64_t closed_ns_ = 0;
};

struct Errors {
  double total = 0, count = 0;         // ratios
  double share = 0, p50 = 0, p95 = 0;  // the worst of the top kernels: points, ratio - 1
  double recorded = 0;                 // of the launches
};

Errors compare(const Totals& truth, const Totals& seen, const std::vector<std::size_t>& top) {
  Errors errors;
  errors.total = seen.time_ns / truth.time_ns;
  errors.count = seen.count / truth.count;
  for (const std::size_t kernel : top) {
    const Sketch &all = truth.kernels[kernel], &some = seen.kernels[kernel];
    const double share = all.total_ns() / truth.time_ns;
    errors.share = std::max(errors.share, 100 * std::abs(some.total_ns() / seen.time_ns - share));
    errors.p50 = std::max(errors.p50, std::abs(some.quantile(0.5) / all.quantile(0.5) - 1));
    errors.p95 = std::max(errors.p95, std::abs(some.quantile(0.95) / all.quantile(0.95) - 1));
  }
  return errors;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

template <class Value>
std::vector<double> each(const std::vector<Errors>& runs, Value value) {
  std::vector<double> result;
  for (const Errors& run : runs) result.push_back(value(run));
  return result;
}

// False where the total is biased.
bool row(const std::string& name, const Stream& step, double rate, double budget, bool ids,
         int seeds, double seconds) {
  const Stream program = program_of(step, rate, seconds);
  Totals truth(program.kernels);
  for (const Launch& launch : program.launches) truth.add(launch, 1);
  std::vector<std::size_t> top(program.kernels);
  for (std::size_t i = 0; i < top.size(); ++i) top[i] = i;
  std::sort(top.begin(), top.end(), [&](std::size_t a, std::size_t b) {
    return truth.kernels[a].total_ns() > truth.kernels[b].total_ns();
  });
  top.resize(std::min(top.size(), kTop));
  std::vector<Errors> runs;
  double open = 0;
  int bound = 0, within = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    Replay replay(program, budget, static_cast<std::uint64_t>(seed), ids);
    const Totals seen = replay.run();
    open += replay.controller().totals().recorded_ns / (seconds * kSecondNs) / seeds;
    bound += replay.controller().launch_bound() ? 1 : 0;
    runs.push_back(compare(truth, seen, top));
    const Errors& last = runs.back();
    within +=
        std::abs(last.total - 1) <= 0.02 && last.share <= 2 && last.p50 <= 0.05 && last.p95 <= 0.05;
  }
  const std::vector<double> totals = each(runs, [](const Errors& e) { return e.total; });
  double mean = 0, square = 0;
  for (const double total : totals) mean += total / seeds;
  for (const double total : totals)
    square += (total - mean) * (total - mean) / std::max(1, seeds - 1);
  const double error = std::sqrt(square / seeds);
  const auto worst = [&](auto value) { return quantile(each(runs, value), 0.99); };
  std::printf(
      "| %s | %.0f | %.2f | %g %% | %s | %.1f %% | %.5f ± %.5f | %.2f %% | %.2f | %.2f %% | %.2f "
      "%% | %.1f %% "
      "|\n",
      name.c_str(), rate, step.slower, budget * 100, ids ? "ids" : "time", open * 100, mean, error,
      100 * worst([](const Errors& e) { return std::abs(e.total - 1); }),
      worst([](const Errors& e) { return e.share; }),
      100 * worst([](const Errors& e) { return e.p50; }),
      100 * worst([](const Errors& e) { return e.p95; }), 100.0 * within / seeds);
  std::fflush(stdout);
  if (bound > 0) {
    std::printf("| | | | | | launch bound, the head only: %d of %d | | | | | | |\n", bound, seeds);
    if (bound > seeds / 2) return true;
  }
  return std::abs(mean - 1) <= 3 * error + 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 1000;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 60;
  std::string folder = environment_variable("SHARED_DATA");
  if (folder.empty()) folder = "../shared/data";
  std::printf(
      "Windows drawn by %d seeds over %.0f s of the same launches; worst: 99th percentile of the "
      "seeds.\n\n"
      "| launches of | per s | slower | budget | weights by | time open | total, mean | total, "
      "worst | share, worst, "
      "points | "
      "p50, worst | p95, worst | within all limits "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      seeds, seconds);
  struct Row {
    const char* name;
    const char* file;
    double rate, budget;
    bool nodes = false;
    double slower = 0;     // while it is recorded; 0: as the cost model has it
    bool replays = false;  // each step is one replay of a graph
  };
  const Row rows[] = {
      {"transformer training step", "transformer_train.json.gz", 4000, 0.01},
      {"transformer training step", "transformer_train.json.gz", 8000, 0.01},
      {"transformer training step", "transformer_train.json.gz", 9500, 0.01},
      {"transformer training step", "transformer_train.json.gz", 25655, 0.01},
      {"transformer training step", "transformer_train.json.gz", 25655, 0.03},
      {"ResNet-50 training step", "kineto_resnet50_v100_workers0.json.gz", 7500, 0.01},
      {"ResNet-50 training step", "kineto_resnet50_v100_workers0.json.gz", 1500, 0.002},
      {"graphs of a decoder", "graphs_decode_before.json.gz", 43865, 0.05},
      {"nodes of a replayed graph", "transformer_train.json.gz", 200'000, 0.01, true},
      {"nodes of a replayed graph", "transformer_train.json.gz", 200'000, 0.05, true},
      {"replays as on an H200", "transformer_train.json.gz", 547'000, 0.01, true, 1.1, true},
      {"twice as slow: training step", "transformer_train.json.gz", 9500, 0.01, false, 2},
      {"twice as slow: training step", "transformer_train.json.gz", 25655, 0.03, false, 2},
      {"twice as slow: replays", "transformer_train.json.gz", 200'000, 0.01, true, 2, true},
  };
  bool unbiased = true;
  for (const Row& each : rows) {
    Result<Stream> step = step_of(folder + "/traces/" + each.file);
    if (!step.is_ok()) {
      std::fprintf(stderr, "%s: %s\n", each.file, step.status().message().c_str());
      return 2;
    }
    step->nodes = each.nodes;
    const profile::capture::CostModel costs;
    step->slower = each.slower > 0
                       ? each.slower
                       : 1 + 1e-9 * each.rate * (each.nodes ? costs.node_ns : costs.launch_ns);
    if (each.replays) step->unit = step->launches.size();
    for (const bool ids : {false, true})
      if (!row(each.name, *step, each.rate, each.budget, ids, seeds, seconds) && ids)
        unbiased = false;
  }
  return unbiased ? 0 : 1;
}
