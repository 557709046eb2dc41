// SPDX-License-Identifier: Apache-2.0
// Time for memory: activations that the backward pass computes again (checkpointing) could be
// stored; activations that fill the memory could be computed again, at a loss of time.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr Remedy kRecompute[] = {
    {"recompute_less", "Store activations instead of computing them again",
     Pillar::kArithmeticIntensity, Level::kAlgorithm, "compute", "hours", "low", "api-independent",
     "application",
     "PyTorch: where memory is left, no torch.utils.checkpoint around these blocks, or around "
     "fewer|"
     "PyTorch: selective checkpointing recomputes pointwise ops and stores products "
     "(create_selective_checkpoint_contexts)",
     "memory: the stored activations must fit at the greatest batch"},
    {"checkpointing", "Compute activations again instead of storing them",
     Pillar::kArithmeticIntensity, Level::kAlgorithm, "compute", "hours", "low", "api-independent",
     "application",
     "PyTorch: torch.utils.checkpoint around each block: its forward pass runs twice|"
     "use the freed memory: a larger batch, or a longer sequence",
     "time: this costs time, and pays only where the memory is needed"}};

// What only a forward pass runs; the gradients' formulas call other ops.
constexpr std::string_view kForward[] = {
    "aten::linear",     "aten::gelu",    "aten::relu",       "aten::silu",
    "aten::layer_norm", "aten::conv2d",  "aten::batch_norm", "aten::scaled_dot_product_attention",
    "aten::softmax",    "aten::dropout", "aten::embedding",  "aten::rms_norm"};
constexpr std::string_view kBackward = "autograd::engine::evaluate_function";
// Of the host's time between the start of a node of the backward pass and the last op that it
// computes again. It is the checkpoint's own: hooks, random states, a second graph.
constexpr Interval3 kHostLeft = {0.5, 0.1, 0};
// Of its other time outside of the optimizer, where a checkpoint without reentry has hooks in
// Python for each tensor that is saved, in both passes.
constexpr std::string_view kHooked = "_NoopSaveInputs", kOptimizer = "Optimizer.step#";
constexpr Interval3 kHostWithoutHooks = {1, 0.7, 0.5};
constexpr double kMuchMemory = 0.10;  // of the device's, by one step's activations
constexpr double kMostParents = 64;
constexpr double kBusyForward = 0.6, kIdleForward = 0.3;  // shares of the roofs
constexpr double kMostlyKnown = 0.5;                      // of the time

class Recompute {
 public:
  Recompute(Walk& walk, Advice& advice) : walk_(walk), advice_(advice) {}

  void run() {
    const Timeline& timeline = walk_.facts().profile->timeline;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t activity : run) {
        const std::uint32_t call = walk_.at(activity).call;
        if (call < timeline.calls.size()) place(activity, timeline.calls[call].op);
      }
    if (!backward_) return;
    if (!again_.empty()) {
      store();
    } else {
      offer();
    }
  }

 private:
  void place(std::uint32_t activity, std::uint32_t op) {
    const Timeline& timeline = walk_.facts().profile->timeline;
    bool forward = false, within = false;
    double seen = 0;
    std::uint32_t node = kNone, again = kNone;
    for (; op < timeline.ops.size() && ++seen < kMostParents; op = timeline.ops[op].parent) {
      const std::string_view name = name_in(timeline, timeline.ops[op].name);
      if (std::find(std::begin(kForward), std::end(kForward), name) != std::end(kForward)) {
        forward = true;
        again = op;
      }
      if (starts_with(name, kBackward)) {
        within = true;
        node = op;
      }
    }
    backward_ = backward_ || within;
    if (within && forward) {
      again_.push_back(activity);
      lengthen(timeline.ops[node], timeline.ops[again]);
    }
    if (!within) forward_.push_back(activity);
  }
  // The host's time in a node that computes again, up to the last op that does.
  void lengthen(const Op& node, const Op& again) {
    Interval& host = host_[begin_of(node)];
    host = {begin_of(node), std::max(host.end, end_of(again))};
  }
  edit::ScaleHost host_change() const {
    edit::ScaleHost out{kHostLeft, {}, kNone};
    for (const auto& [begin, interval] : host_)
      if (out.when.empty() || out.when.back().end <= begin) out.when.push_back(interval);
    return out;
  }
  void drop_hooks(Change& change) const {
    const Timeline& timeline = walk_.facts().profile->timeline;
    if (std::find(timeline.names.begin(), timeline.names.end(), kHooked) == timeline.names.end())
      return;
    std::vector<Interval> without;
    for (const auto& [begin, interval] : host_) without.push_back(interval);
    for (const Range& range : timeline.ranges)
      if (starts_with(name_in(timeline, range.name), kOptimizer))
        without.push_back(interval_of(range));
    scale_host(walk_.facts(), kHostWithoutHooks, without, change);
  }
  double written(const Launches& work) const {
    double bytes = 0;
    for (const std::uint32_t activity : work) bytes += walk_.touch(activity).written;
    return in_one_unit(walk_.facts(), bytes);
  }

  void store() {
    Intervention out = from_remedy(kRecompute[0]);
    remove_launches(walk_, again_, {0.8, 1, 1}, out);
    out.change.edits.emplace_back(host_change());
    drop_hooks(out.change);
    for (const std::uint32_t activity : again_) name_kernel(walk_.stat(activity), out);
    out.freed_bytes = -written(again_);
    out.evidence.push_back(
        {"forward ops within the backward pass", launches_in_words(walk_, again_), "timeline"});
    out.evidence.push_back({"memory that storing their results takes, at most",
                            format_bytes(-out.freed_bytes), "shape model"});
    out.assumptions.emplace_back("the device has the memory; how much is free was not recorded");
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  // How busy the forward pass keeps the memory and the arithmetic, by time.
  struct Use {
    double memory = 0, compute = 0, known_ns = 0;
    // Computing again is nearly free where the arithmetic waits for the memory.
    bool has_spare_arithmetic() const { return memory > kBusyForward && compute < kIdleForward; }
  };
  Use use_of(const Launches& work) const {
    Use use;
    double all = 0;
    for (const std::uint32_t activity : work) {
      const auto ns = static_cast<double>(walk_.at(activity).duration_ns);
      const Roof& roof = walk_.stat(activity).roof;
      all += ns;
      if (roof.utilization <= 0) continue;
      use.known_ns += ns;
      use.memory += ns * roof.memory_share;
      use.compute += ns * roof.compute_share;
    }
    if (use.known_ns < kMostlyKnown * all || use.known_ns <= 0) return {};
    use.memory /= use.known_ns;
    use.compute /= use.known_ns;
    return use;
  }
  void judge_use(Intervention& out) const {
    const Use use = use_of(forward_);
    if (use.known_ns <= 0) return;
    out.evidence.push_back({"forward pass: share of the bandwidth, and of the arithmetic",
                            fmt::format("{:.0f}% and {:.0f}%", 100 * use.memory, 100 * use.compute),
                            "shape model"});
    if (use.has_spare_arithmetic()) {
      out.how.emplace_back(
          "the memory is busy and the arithmetic is not: compute cheap results again within the "
          "kernel that reads them, as FlashAttention's backward pass does");
    } else {
      out.assumptions.emplace_back(
          "only for the memory: the arithmetic has no time to spare, or the memory is not what "
          "binds");
    }
  }

  // The other way round: a trade that costs time.
  void offer() {
    const Facts& facts = walk_.facts();
    const auto& devices = facts.profile->environment.devices;
    const double memory = devices.empty() ? 0 : static_cast<double>(devices.front().memory_bytes);
    const double stored = written(forward_);
    if (memory <= 0 || stored < kMuchMemory * memory) return;
    Intervention out = from_remedy(kRecompute[1]);
    const double forward = in_one_unit(facts, walk_.duration(forward_));
    out.saved_ns = {-forward, -0.9 * forward, -0.5 * forward};
    out.freed_bytes = 0.6 * stored;
    out.evidence.push_back({"forward pass, which would run twice",
                            of_total(forward, facts.unit.baseline_ns.mid), "timeline"});
    out.evidence.push_back({"results that the forward pass writes",
                            fmt::format("{} of {}", format_bytes(stored), format_bytes(memory)),
                            "shape model"});
    judge_use(out);
    out.confidence = "C";
    advice_.trades.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Launches again_, forward_;
  std::map<std::int64_t, Interval> host_;  // by its begin
  bool backward_ = false;
};

}  // namespace

const Rule kRecomputeRule = {kRecompute,
                             [](Walk& walk, Advice& advice) { Recompute(walk, advice).run(); }};

}  // namespace purlin::analyze
