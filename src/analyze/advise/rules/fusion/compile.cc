// SPDX-License-Identifier: Apache-2.0
// A PyTorch program that runs op by op, compiled. Between kernels of libraries, all light kernels
// become one, casts too. The host launches the rest from one call.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/device/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

namespace purlin::analyze {
namespace {

constexpr Remedy kCompile = {
    "compile_model",
    "Compile the model",
    Pillar::kArithmeticIntensity,
    Level::kAlgorithm,
    "memory",
    "hours",
    "medium",
    "api-independent",
    "framework",
    "PyTorch: model = torch.compile(model); the loss inside the compiled function|"
    "PyTorch: TORCH_LOGS=graph_breaks,recompiles names what cuts it; dynamic=False for fixed "
    "shapes|"
    "PyTorch: mode=\"reduce-overhead\" adds CUDA graphs",
    "the first steps compile; rounding may differ where intermediate results were stored in 16 "
    "bits"};

// All else stays a separate launch.
constexpr std::string_view kLight[] = {"elementwise", "copy",    "reduction", "softmax",
                                       "norm",        "dropout", "layout"};
// These add or write at places that a tensor holds, and take as long in compiled code.
constexpr std::string_view kAtPlaces[] = {"aten::index_add",
                                          "aten::index_copy",
                                          "aten::index_put",
                                          "aten::_index_put",
                                          "aten::scatter",
                                          "aten::index_reduce",
                                          "aten::embedding_dense_backward"};
constexpr std::string_view kCompiled[] = {"Torch-Compiled Region", "CompiledFxGraph",
                                          "CompiledFunction"};
constexpr std::string_view kBreaks[] = {"aten::item", "aten::_local_scalar_dense", "aten::nonzero",
                                        "aten::is_nonzero"};
constexpr double kMostBreaks = 2;  // a step: a loss that is read at its end is none
// Of the traffic between two kernels of a group, what goes: its reads; and what is written for the
// backward pass stays.
constexpr Interval3 kWriteGone = {0, 0.6, 1}, kReadGone = {0.5, 1, 1};
// Of what has the size of a tensor that the group holds already, so that it may be that one.
constexpr Interval3 kHeldGone = {0, 0.5, 1};
// Of the time, where the shape is not known; and of launches that do not fill the device.
constexpr Interval3 kUnknownShape = {0.95, 0.5, 0.15}, kFewBlocks = {1, 0.9, 0.5};
constexpr std::size_t kInOneKernel = 16;  // launches at most, that become one
constexpr double kCompiledMemory = 0.7;   // of the bandwidth; high: the target
// What the host takes for a compiled step, of its time outside of the optimizer. Compiled code
// saves the dispatch of the ops between the launches of libraries. Its own cost is that of the
// launches that stay: guards, the run time of the graph, hooks of the backward pass. So it pays
// with many ops between them. Ten programs on an H100 (bench/results/advice_pairs.md): training
// small networks with 8 and 9 ops a launch became slower (1.1 and 1.3); 20 and 21 ops took 0.70 and
// 0.76.
constexpr Interval3 kHostTaken = {0.85, 0.5, 0.2};
constexpr Interval3 kHostTakenTraining = {1.1, 0.75, 0.5}, kHostTakenFewOps = {1.45, 1.15, 0.85};
constexpr double kManyOps = 13;       // for each launch of a library
constexpr double kLeastShare = 0.03;  // of the unit
// Where the device sets the pace, and kernels of libraries take most of its time, the light kernels
// may cost as much after as before: a block of convolutions gained nothing.
constexpr double kHostSetsPace = 0.1, kMostlyLibrary = 0.6;

class Compile {
 public:
  Compile(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {}

  void run() {
    if (facts_.unit.kind != "step" || !eager()) return;
    find_optimizer();
    for (const Launches& run : walk_.runs()) group(run);
    if (chains_.all().empty()) return;
    finish();
  }

 private:
  const Timeline& timeline() const { return facts_.profile->timeline; }

  bool eager() const {
    bool ops = false;
    for (const std::string& name : timeline().names) {
      for (const std::string_view mark : kCompiled)
        if (name.find(mark) != std::string::npos) return false;
      ops = ops || starts_with(name, "aten::");
    }
    return ops && !timeline().ops.empty() &&
           std::none_of(facts_.rows.kernels.begin(), facts_.rows.kernels.end(),
                        [](const KernelStat& kernel) {
                          return starts_with(kernel.name.full, "triton_poi_") ||
                                 starts_with(kernel.name.full, "triton_red_") ||
                                 starts_with(kernel.name.full, "triton_per_");
                        });
  }

  // A compiled model leaves the optimizer unchanged.
  void find_optimizer() {
    for (const Range& range : timeline().ranges)
      if (starts_with(name_in(timeline(), range.name), "Optimizer.step#"))
        optimizer_.push_back(interval_of(range));
    std::sort(optimizer_.begin(), optimizer_.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  }
  static bool within(const std::vector<Interval>& intervals, std::int64_t at) {
    const auto next = std::partition_point(intervals.begin(), intervals.end(),
                                           [&](const Interval& one) { return one.end <= at; });
    return next != intervals.end() && next->begin <= at;
  }
  bool in_optimizer(const Activity& activity) const {
    return activity.call < timeline().calls.size() &&
           within(optimizer_, begin_of(timeline().calls[activity.call]));
  }
  bool light(std::uint32_t activity) const {
    const std::string_view c = walk_.stat(activity).name.op_class;
    return std::find(std::begin(kLight), std::end(kLight), c) != std::end(kLight) &&
           walk_.stat(activity).name.family != "cudnn" && !orders_elements(walk_.stat(activity)) &&
           !at_places(walk_.stat(activity)) && !in_optimizer(walk_.at(activity));
  }
  static bool at_places(const KernelStat& kernel) {
    return std::any_of(std::begin(kAtPlaces), std::end(kAtPlaces),
                       [&](std::string_view op) { return starts_with(kernel.op, op); });
  }

  void group(const Launches& run) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= run.size(); ++i) {
      if (i < run.size() && light(run[i])) continue;
      if (i >= begin + 2) keep({run.data() + begin, i - begin});
      begin = i + 1;
    }
  }
  // Two kernels with one input each that take turns may work on two tensors.
  void keep(std::span<const std::uint32_t> launches) {
    std::set<std::size_t> distinct;
    bool joins = false;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      distinct.insert(facts_.row_of[walk_.at(launches[i]).row]);
      const Touch& touch = walk_.touch(launches[i]);
      joins = joins || touch.kind != TouchKind::kPointwise || (i > 0 && touch.inputs >= 2);
    }
    if (distinct.size() < 2 || (distinct.size() == 2 && !joins)) return;
    for (std::size_t at = 0; at + 1 < launches.size();) {
      const std::size_t left = launches.size() - at;
      // None stays alone.
      const std::size_t size = left == kInOneKernel + 1 ? left : std::min(kInOneKernel, left);
      chains_.add(launches.subspan(at, size));
      at += size;
    }
  }

  // What is left of a group's time in each scenario: its traffic without what goes from one kernel
  // to the next, as fast as now, or as a fused kernel moves it.
  Interval3 left_of(const Chain& chain) const {
    Interval3 left;
    double known = 0, shortest = 0, as_fast_ns = 0, fused_bytes = 0, fewest_bytes = 0;
    for (std::size_t i = 0; i < chain.rows.size(); ++i) {
      const double ns = facts_.profile->kernels[chain.rows[i]].duration.mean_ns();
      const Touch& touch = walk_.row_touch(chain.rows[i]);
      if (few_blocks(facts_.profile->kernels[chain.rows[i]])) {
        left = left + kFewBlocks * ns;
        continue;
      }
      if (!touch.light() || touch.bytes() <= 0) {
        left = left + kUnknownShape * ns;
        continue;
      }
      shortest = known > 0 ? std::min(shortest, ns) : ns;
      known += ns;
      const double read =
          i > 0 && passes(chain, i - 1) ? std::min(touch.n * touch.in_size, touch.read) : 0;
      const double written = passes(chain, i) ? touch.written : 0;
      const double perhaps =
          read_before(chain, i, touch.read - read) + (written > 0 ? 0 : read_later(chain, i));
      const auto moved = [&](double reads, double writes, double held) {
        return touch.bytes() - read * reads - written * writes - perhaps * held;
      };
      as_fast_ns += moved(kReadGone.low, kWriteGone.low, kHeldGone.low) / touch.bytes() * ns;
      fused_bytes += moved(kReadGone.mid, kWriteGone.mid, kHeldGone.mid);
      fewest_bytes += moved(kReadGone.high, kWriteGone.high, kHeldGone.high);
    }
    const KernelStat& first = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const double bandwidth = facts_.bandwidth_of(first);
    if (bandwidth <= 0 || known <= 0) return left + Interval3{known, known, known};
    // However few bytes it moves, a fused kernel starts and drains.
    const double least = std::min(shortest, kLeastLaunch);
    const auto at = [&](double moved, double share) {
      return std::min(known, std::max(least, moved / (bandwidth * share) * 1e9));
    };
    return left + Interval3{as_fast_ns, at(fused_bytes, kCompiledMemory),
                            at(fewest_bytes, facts_.targets.memory)};
  }
  // Of `read` bytes, what an earlier kernel of the group has read or written, by its size.
  double read_before(const Chain& chain, std::size_t at, double read) const {
    const Touch& touch = walk_.row_touch(chain.rows[at]);
    const double one = touch.n * touch.in_size;
    for (std::size_t i = 0; i < at; ++i)
      if (const Touch& known = walk_.row_touch(chain.rows[i]); known.light() && known.n == touch.n)
        return std::floor(read / one) * one;
    return 0;
  }
  // What a kernel of several inputs, further on in the group, may read.
  double read_later(const Chain& chain, std::size_t at) const {
    const Touch& touch = walk_.row_touch(chain.rows[at]);
    for (std::size_t i = at + 2; i < chain.rows.size(); ++i)
      if (const Touch& next = walk_.row_touch(chain.rows[i]);
          next.kind == TouchKind::kPointwise && next.inputs >= 2 && next.n == touch.out)
        return touch.written;
    return 0;
  }
  // Another grid is another change.
  bool few_blocks(const KernelRow& row) const {
    const auto& devices = facts_.profile->environment.devices;
    const double units = devices.empty() ? 0 : static_cast<double>(units_of(devices.front()));
    return row.duration.mean_ns() > kShortLaunch &&
           static_cast<double>(row.launch.blocks()) < 0.75 * units;
  }
  // Whether the next kernel of the group may read what this one writes.
  bool passes(const Chain& chain, std::size_t at) const {
    if (at + 1 >= chain.rows.size()) return false;
    const Touch &one = walk_.row_touch(chain.rows[at]), &next = walk_.row_touch(chain.rows[at + 1]);
    return one.light() && next.light() && one.out > 0 && one.out <= next.n &&
           (one.out == next.n || one.kind == TouchKind::kReduction);
  }

  // Ops for which the host waits; those on tensors of the host cut nothing.
  double breaks_in_a_step() const {
    std::set<std::uint32_t> ops;
    for (const Call& call : timeline().calls) {
      if ((call.kind != CallKind::kSync && call.kind != CallKind::kCopy) ||
          call.op >= timeline().ops.size() || within(optimizer_, begin_of(call)))
        continue;
      const std::string_view name = name_in(timeline(), timeline().ops[call.op].name);
      if (std::find(std::begin(kBreaks), std::end(kBreaks), name) != std::end(kBreaks))
        ops.insert(call.op);
    }
    return static_cast<double>(ops.size()) / facts_.unit.count;
  }

  // Ops of the framework for each launch of a library, both outside of the optimizer.
  // Many where no library launches.
  double ops_for_a_launch() const {
    double ops = 0, launches = 0;
    for (const Op& op : timeline().ops)
      if (starts_with(name_in(timeline(), op.name), "aten::") && !within(optimizer_, begin_of(op)))
        ++ops;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t launch : run)
        if (!light(launch) && !in_optimizer(walk_.at(launch))) ++launches;
    return launches > 0 ? ops / launches : std::numeric_limits<double>::infinity();
  }
  // Of the light kernels, launched one by one, in a step that long kernels of libraries fill.
  bool bound_by_libraries(double light_ns) const {
    const Unit& unit = facts_.unit;
    const double idle = std::max(0.0, unit.host_ns - unit.recorder_ns.high);
    return idle < kHostSetsPace * unit.baseline_ns.low &&
           in_one_unit(facts_, light_ns) < (1 - kMostlyLibrary) * unit.busy_ns;
  }
  // The host's time is scaled as a whole, so the launches of a group stay, each with its part of
  // the group's time.
  void shorten(const Chain& chain, Interval3 left, Intervention& out) const {
    Intervention by_kernels;
    replace_quietly(facts_, chain, left, 1, by_kernels);
    out.saved_ns = out.saved_ns + by_kernels.saved_ns;
    Launches all;
    for (const Launches& one : chain.groups) all.insert(all.end(), one.begin(), one.end());
    const double each = std::max(1.0, chain.each_ns());
    out.change.edits.emplace_back(edit::Scale{Affected::of(std::move(all)), left * (1 / each)});
  }

  void finish() {
    const double breaks = breaks_in_a_step();
    if (breaks > kMostBreaks) return;
    Intervention out = from_remedy(kCompile);
    double ns = 0, launches = 0, groups = 0;
    Interval3 left;
    std::set<std::string> named;
    double light_ns = 0;
    for (const Chain* chain : chains_.all()) light_ns += chain->ns;
    const bool bound = bound_by_libraries(light_ns);
    for (const Chain* chain : chains_.all()) {
      Interval3 each = left_of(*chain);
      if (bound) each.low = std::max(each.low, chain->each_ns());
      shorten(*chain, each, out);
      name_kernels(facts_, chain->rows, out);
      ns += chain->ns;
      left = left + each * chain->count();
      launches += chain->count() * static_cast<double>(chain->rows.size());
      groups += chain->count();
    }
    const double ops = ops_for_a_launch();
    const bool few_ops = walk_.trains() && ops < kManyOps;
    Interval3 host_left = few_ops          ? kHostTakenFewOps
                          : walk_.trains() ? kHostTakenTraining
                                           : kHostTaken;
    if (bound) {
      host_left.low = std::max(1.0, host_left.low);
      out.assumptions.emplace_back(
          "the device sets the pace, and kernels of libraries take most of its time: the low "
          "estimate is 0");
    }
    scale_host(facts_, host_left, optimizer_, out.change);
    const double late = facts_.unit.host_ns;
    if (in_one_unit(facts_, ns - left.mid) + late < kLeastShare * facts_.unit.baseline_ns.mid)
      return;
    out.saved_ns = out.saved_ns + Interval3{(1 - host_left.low) * late, (1 - host_left.mid) * late,
                                            (1 - host_left.high) * late};
    out.evidence.push_back(
        {"light kernels between those of libraries, launched one by one",
         fmt::format("{} in {}{}, {}", counted(in_one_unit(facts_, launches), "launch"),
                     counted(in_one_unit(facts_, groups), "group"), a_unit(facts_),
                     of_total(in_one_unit(facts_, ns), facts_.unit.baseline_ns.mid)),
         "timeline"});
    out.evidence.push_back({"their time in one kernel for each group",
                            fmt::format("{} ({} to {})", short_ns(in_one_unit(facts_, left.mid)),
                                        short_ns(in_one_unit(facts_, left.high)),
                                        short_ns(in_one_unit(facts_, left.low))),
                            "shape model"});
    out.evidence.push_back({"ops that cut a graph, such as .item()",
                            fmt::format("{:.1f}{}", breaks, a_unit(facts_)), "timeline"});
    if (std::isfinite(ops))
      out.evidence.push_back(
          {"ops for each launch of a library", fmt::format("{:.0f}", ops), "timeline"});
    out.assumptions.push_back(fmt::format(
        "the host's time outside of the optimizer becomes {:.2f}, {:.2f} or {:.2f} of what it is{}",
        host_left.low, host_left.mid, host_left.high,
        few_ops ? ": few ops are between the launches of libraries, and such networks became "
                  "slower in training: measure it"
                : ""));
    out.assumptions.emplace_back(
        "the forward pass is one graph: data-dependent control flow was not recorded");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  Chains chains_;
  std::vector<Interval> optimizer_;
};

}  // namespace

const Rule kCompileRule = {{&kCompile, 1},
                           [](Walk& walk, Advice& advice) { Compile(walk, advice).run(); }};

}  // namespace purlin::analyze
