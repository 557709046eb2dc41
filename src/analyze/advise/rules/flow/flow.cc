// SPDX-License-Identifier: Apache-2.0
// What a recorded data flow shows: results of a step that nothing reads, results of which a part is
// read, results that an earlier op or each earlier step had already. Where it was recorded, no rule
// guesses these from sizes (Walk::known).
#include "analyze/advise/rules/flow/autograd.h"
#include "analyze/advise/rules/flow/evidence.h"
#include "analyze/advise/rules/flow/kept.h"
#include "analyze/advise/rules/flow/launches.h"
#include "analyze/advise/rules/flow/part.h"
#include "analyze/advise/rules/flow/place.h"
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kGradients = {
    "Leave out the gradients that nothing reads", "hours",
    "PyTorch: requires_grad_(False) for weights that stay, inputs without requires_grad|"
    "PyTorch: torch.no_grad() or detach() around what the loss need not pass through|"
    "PyTorch: loss.backward(inputs=...) or torch.autograd.grad(loss, parameters) for some alone",
    "make sure that no code outside of the recorded steps reads these gradients: hooks, logs"};
constexpr RemedyCase kUnreadResults = {
    "Leave out what nothing reads", "hours",
    "do not compute it in this mode: auxiliary heads, losses and statistics that are only used in "
    "training or for logs|"
    "PyTorch: arguments such as output_hidden_states, output_attentions and need_weights off|"
    "compute it in the steps that read it alone",
    "make sure that no code outside of the recorded steps reads it: every hundredth step, logs"};
constexpr RemedyCase kInStep = {
    "Compute the repeated result once", "hours",
    "keep the first result and pass it on to where it is computed again|"
    "PyTorch: where only one of them needs gradients, keep that one, and detach() it for the other|"
    "PyTorch: torch.compile removes equal expressions within one graph",
    "a result that is changed in place must not be shared"};
constexpr RemedyCase kBeforeLoop = {
    "Make once before the loop what no step changes", "hours",
    "compute it before the loop and pass it in",
    "make it again where its inputs change: other weights, another size"};

constexpr Interval3 kAllGoes = {0.9, 1, 1};
constexpr Interval3 kItsHost = {0.1, 0, 0};  // of the host's time in the ops
constexpr double kLeastOfFlow = 0.01;        // smaller ones stay with the other rules
// Of an op's time that is left, where a part is computed: more is no change; of less, other rules
// have nothing to gain.
constexpr double kMostLeftOver = 0.97, kLittleLeft = 0.5;

class Flow {
 public:
  Flow(Walk& walk, Advice& advice)
      : walk_(walk),
        facts_(walk.facts()),
        timeline_(facts_.profile->timeline),
        flow_(facts_.profile->data_flow),
        advice_(advice) {}

  void run() {
    if (!flow_.recorded()) return;
    found_ = find_flow(walk_);
    const bool known = found_.tells_all();
    const bool repeats = known && !flow_.host_numbers;
    walk_.know({known && knows_readers(), repeats, repeats && !flow_.same_data});
    note();
    for (const FlowWork& work : found_.work) place(work);
    keep_what_autograd_needs();
    add_gone(gradients_, from_remedy(kReduceRemedy, kGradients),
             "gradients of a step that no op reads", "A");
    add_gone(unread_, from_remedy(kReduceRemedy, kUnreadResults),
             "results of a step that no op reads", "A");
    add_kept(unchanged_, kBeforeLoop, "results that are the same in each recorded step");
    add_kept(repeated_, kInStep, "results that an earlier op of the step has made");
    for (const auto& [part, all] : parts_) add_parts(part, all);
  }

 private:
  using Works = FlowWorks;

  // Where memory is read that no op wrote, the data flow has no facts of reading.
  bool knows_readers() const {
    return std::any_of(flow_.facts.begin(), flow_.facts.end(), [](const FlowFact& fact) {
      return fact.kind == FlowKind::kUnread || fact.kind == FlowKind::kPartlyRead;
    });
  }
  void note() {
    if (found_.missing > 0)
      advice_.notes.push_back(fmt::format(
          "{} not found in the timeline, whose steps have another number of such ops: record both "
          "from one program with the same inputs",
          found_.missing == 1 ? "one result of the data flow is"
                              : fmt::format("{} results of the data flow are", found_.missing)));
    if (flow_.same_data)
      advice_.notes.emplace_back(
          "each recorded step computes the same from the same data, so the data flow does not show "
          "what no step changes: record steps with different data");
  }
  void place(const FlowWork& work) {
    const bool launches = std::any_of(work.groups.begin(), work.groups.end(),
                                      [](const Launches& group) { return !group.empty(); });
    if (!launches) return;
    switch (work.fact->kind) {
      case FlowKind::kUnread:
        (in_backward_pass(timeline_, work.ops.front()) ? gradients_ : unread_).push_back(&work);
        break;
      case FlowKind::kUnchanged:
        unchanged_.push_back(&work);
        break;
      case FlowKind::kRepeated:
      case FlowKind::kGradientOfRepeated:
        repeated_.push_back(&work);
        break;
      case FlowKind::kPartlyRead:
        if (const PartOf part = part_of(*work.fact); part != PartOf::kNothing)
          parts_[part].push_back(&work);
        break;
    }
  }
  void keep_what_autograd_needs() {
    const Works needed = with_backward_nodes(timeline_, unread_);
    const std::set<const FlowWork*> stay(needed.begin(), needed.end());
    std::erase_if(unread_, [&](const FlowWork* work) { return stay.contains(work); });
    if (gradients_.empty() || updates_weights(timeline_)) return;
    gradients_.clear();
    advice_.notes.emplace_back(
        "nothing reads some gradients, but no op updates weights: record steps with the optimizer");
  }
  Launches launches_of(const Works& works) const {
    Launches out;
    for (const FlowWork* work : works) {
      const Launches all = work->all();
      out.insert(out.end(), all.begin(), all.end());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  // The host's time in the ops, in all steps; of a node of the backward pass that launches nothing
  // else, all of it.
  edit::ScaleHost host_of(const Works& works, const Launches& launches) const {
    std::set<std::uint32_t> ops = nodes_of(launches);
    for (const FlowWork* work : works) ops.insert(work->ops.begin(), work->ops.end());
    edit::ScaleHost out{kItsHost, {}, kNone};
    for (const std::uint32_t op : ops)
      if (const Interval interval = interval_of(timeline_.ops[op]);
          out.when.empty() || out.when.back().end <= interval.begin)
        out.when.push_back(interval);
    return out;
  }
  std::uint32_t node_of(std::uint32_t activity) const {
    const std::uint32_t call = walk_.at(activity).call;
    return backward_node_of(timeline_,
                            call < timeline_.calls.size() ? timeline_.calls[call].op : kNone);
  }
  std::set<std::uint32_t> nodes_of(const Launches& launches) const {
    std::set<std::uint32_t> out;
    for (const std::uint32_t one : launches)
      if (const std::uint32_t node = node_of(one); node != kNone) out.insert(node);
    if (out.empty()) return out;
    const std::set<std::uint32_t> gone(launches.begin(), launches.end());
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i)
      if (!gone.contains(i)) out.erase(node_of(i));
    return out;
  }
  void name_all(const Launches& launches, Intervention& out) const {
    std::map<std::uint32_t, double> rows;
    for (const std::uint32_t one : launches)
      if (walk_.at(one).kind == ActivityKind::kKernel)
        rows[walk_.at(one).row] += walk_.duration(one);
    std::vector<std::pair<double, std::uint32_t>> heaviest;
    for (const auto& [row, ns] : rows) heaviest.emplace_back(-ns, row);
    std::sort(heaviest.begin(), heaviest.end());
    for (const auto& [ns, row] : heaviest)
      name_kernel(facts_.rows.kernels[facts_.row_of[row]], out);
  }
  void remove(const Works& works, const Launches& launches, Intervention& out) {
    remove_launches(walk_, launches, kAllGoes, out);
    out.change.edits.emplace_back(host_of(works, launches));
    name_all(launches, out);
    walk_.take(launches);
  }
  // Of the device's time, and of the host's where the device waits for it.
  bool is_worth(const Works& works, const Launches& launches) const {
    double host = 0;
    for (const FlowWork* work : works)
      for (const std::uint32_t op : work->ops)
        host += static_cast<double>(interval_of(timeline_.ops[op]).length());
    const double baseline = facts_.unit.baseline_ns.mid;
    const double idle = baseline > 0 ? std::clamp(1 - facts_.unit.busy_ns / baseline, 0.0, 1.0) : 0;
    return in_one_unit(facts_, walk_.duration(launches) + idle * host) >= kLeastOfFlow * baseline;
  }
  void add_gone(const Works& works, Intervention out, const char* what, const char* confidence) {
    const Launches launches = launches_of(works);
    if (works.empty() || !is_worth(works, launches)) return;
    remove(works, launches, out);
    show_work(walk_, found_, what, works, launches, out);
    out.assumptions.push_back(
        fmt::format("other steps read no more than the {} recorded ones", flow_.steps));
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  double written(const Works& works) const {
    double bytes = 0;
    for (const FlowWork* work : works)
      for (const std::uint32_t one : work->groups.front())
        bytes += walk_.at(one).kind == ActivityKind::kKernel
                     ? walk_.touch(one).written
                     : static_cast<double>(walk_.at(one).bytes);
    return bytes;
  }
  void add_kept(const Works& works, const RemedyCase& words, const char* what) {
    const Launches launches = launches_of(works);
    if (works.empty() || !is_worth(works, launches)) return;
    Intervention out = reuse_result();
    out.title = words.title;
    out.how = split(words.how, '|');
    out.guard = words.guard;
    remove(works, launches, out);
    show_work(walk_, found_, what, works, launches, out);
    const bool each_step = &words == &kBeforeLoop;
    const std::vector<std::string> ways = ways_to_keep(walk_, works, !each_step);
    out.how.insert(out.how.begin(), ways.begin(), ways.end());
    if (each_step) {
      out.freed_bytes = -written(works);
      if (out.freed_bytes < 0)
        out.evidence.push_back(
            {"memory to keep the results, at most", format_bytes(-out.freed_bytes), "shape model"});
      out.assumptions.push_back(fmt::format("what {} leave unchanged, later ones do too",
                                            counted(flow_.steps, "recorded step")));
    } else {
      out.assumptions.emplace_back("the first result can be kept until its last reader");
      if (std::any_of(works.begin(), works.end(), [](const FlowWork* work) {
            return work->fact->kind == FlowKind::kGradientOfRepeated;
          }))
        out.assumptions.emplace_back(
            "the backward pass of the first result takes the sum of the gradients, so that of the "
            "others goes too");
    }
    out.confidence = each_step ? "B" : "A";
    advice_.interventions.push_back(std::move(out));
  }

  void add_parts(PartOf part, const Works& all) {
    Works works, little;  // of which little is left
    Intervention out = from_remedy(kReduceRemedy, case_of(part));
    for (const FlowWork* work : all) {
      Interval3 left;
      double ns = 0;
      for (const Launches& group : work->groups) {
        if (group.empty()) continue;
        const double length = walk_.duration(group);
        left = left + left_of(walk_, *work->fact, group) * length;
        ns += length;
      }
      if (ns <= 0 || left.mid > kMostLeftOver * ns) continue;
      shrink_launches(walk_, work->all(), left * (1 / ns), out);
      works.push_back(work);
      if (left.mid <= kLittleLeft * ns) little.push_back(work);
    }
    const Launches launches = launches_of(works);
    if (works.empty() || !is_worth({}, launches)) return;
    name_all(launches, out);
    show_work(walk_, found_, "results of a step that are read in part", works, launches, out);
    out.assumptions.push_back(
        fmt::format("other steps read no more than the {} recorded ones", flow_.steps));
    out.confidence = sure_of(part);
    walk_.take(launches_of(little));
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  const Timeline& timeline_;
  const DataFlow& flow_;
  Advice& advice_;
  FlowFound found_;
  Works gradients_, unread_, unchanged_, repeated_;
  std::map<PartOf, Works> parts_;
};

}  // namespace

const Rule kFlowRule = {{}, [](Walk& walk, Advice& advice) { Flow(walk, advice).run(); }};

}  // namespace purlin::analyze
