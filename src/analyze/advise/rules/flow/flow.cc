// SPDX-License-Identifier: Apache-2.0
// What a recorded data flow shows: results of a step that nothing reads, results of which a part is
// read, results that an earlier op or each earlier step had already. Where it was recorded, no rule
// guesses these from sizes (Walk::known).
#include "analyze/advise/rules/flow/autograd.h"
#include "analyze/advise/rules/flow/launches.h"
#include "analyze/advise/rules/flow/part.h"
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
constexpr std::size_t kMostOpNames = 4, kMostPlaces = 3;
// Of an op's time that is left, where a part is computed: more is no change; of less, other rules
// have nothing to gain.
constexpr double kMostLeftOver = 0.97, kLittleLeft = 0.5;

// How a result is kept, by an op that makes it or is around it.
struct Kept {
  std::string_view ops;  // separated by '|'
  std::string_view how;
  bool in_step = true;  // also where only the step has it more than once
};
constexpr Kept kKept[] = {
    {"aten::_weight_norm|aten::_weight_norm_interface|aten::norm_except_dim",
     "PyTorch: torch.nn.utils.parametrize.remove_parametrizations(layer, \"weight\"), or "
     "torch.nn.utils.remove_weight_norm(layer), once before inference",
     false},
    {"aten::_to_copy|aten::to",
     "PyTorch: keep the weights in the type of the products, model.to(torch.bfloat16) once, "
     "instead of autocast or a cast for each use"},
    {"aten::contiguous|aten::clone",
     "PyTorch: store the tensor in the layout that is read: .t().contiguous() once, as a parameter "
     "or buffer",
     false},
    {"aten::cos|aten::sin|aten::arange|aten::linspace|aten::triu|aten::tril|aten::eye|"
     "aten::one_hot|aten::full|aten::ones|aten::zeros|aten::fill_|aten::zero_",
     "PyTorch: self.register_buffer(name, table, persistent=False) for tables, masks and "
     "constants"},
    {"aten::mm|aten::addmm|aten::bmm|aten::matmul|aten::addmm_",
     "a product of weights alone: merge it once, as merge_and_unload of PEFT does for adapters",
     false},
    {"aten::round|aten::clamp|aten::quantize_per_tensor|aten::quantize_per_channel|"
     "aten::fake_quantize_per_tensor_affine|aten::dequantize",
     "quantise or expand the weights once, and keep the result"},
    {"aten::embedding|aten::index_select|aten::index|aten::gather",
     "look the same rows up once, and keep them"},
};

struct Named {
  double count = 0, ns = 0;
};
// "8 aten::mm, 4 aten::add, 3 others", most time first.
std::string in_words(const std::map<std::string_view, Named>& names, std::size_t most) {
  std::vector<std::pair<std::string_view, Named>> all(names.begin(), names.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  std::vector<std::string> out;
  double others = 0;
  for (const auto& [name, named] : all)
    if (out.size() < most)
      out.push_back(fmt::format("{:.0f} {}", named.count, clean(name)));
    else
      others += named.count;
  if (others > 0) out.push_back(fmt::format("{:.0f} others", others));
  return join(out, ", ");
}

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
  using Works = std::vector<const FlowWork*>;

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
        (is_gradient(work) ? gradients_ : unread_).push_back(&work);
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
  template <class Look>
  void around(std::uint32_t op, const Look& look) const {
    int seen = 0;
    for (; op < timeline_.ops.size() && ++seen < kMostOpsAround; op = timeline_.ops[op].parent)
      look(name_in(timeline_, timeline_.ops[op].name));
  }
  bool is_gradient(const FlowWork& work) const {
    bool out = false;
    around(work.ops.front(),
           [&](std::string_view name) { out = out || starts_with(name, "autograd::engine"); });
    return out;
  }

  // Where the program runs an op: the node of the backward pass, its own range, or the outermost
  // op.
  std::string place_of(std::uint32_t number) const {
    std::string_view node, outermost;
    around(number, [&](std::string_view name) {
      outermost = name;
      if (starts_with(name, kBackwardNode)) node = name.substr(kBackwardNode.size());
    });
    if (!node.empty()) return std::string(node);
    const Op& op = timeline_.ops[number];
    if (const std::string_view range = range_of(op); !range.empty()) return std::string(range);
    return std::string(outermost);
  }
  // The shortest range of the program around an op.
  std::string_view range_of(const Op& op) const {
    constexpr std::ptrdiff_t kMostLooks = 256;
    auto at =
        std::partition_point(timeline_.ranges.begin(), timeline_.ranges.end(),
                             [&](const Range& range) { return range.start_ns <= op.start_ns; });
    const Range* out = nullptr;
    for (std::ptrdiff_t looks = 0; at != timeline_.ranges.begin() && looks < kMostLooks; ++looks) {
      const Range& range = *--at;
      if (range.kind != RangeKind::kUser || range.process != op.process ||
          range.thread != op.thread || end_of(range) < end_of(op))
        continue;
      if (out == nullptr || range.duration_ns < out->duration_ns) out = &range;
    }
    return out != nullptr ? name_in(timeline_, out->name) : std::string_view();
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
  std::uint32_t node_around(std::uint32_t activity) const {
    const std::uint32_t call = walk_.at(activity).call;
    std::uint32_t op = call < timeline_.calls.size() ? timeline_.calls[call].op : kNone;
    int seen = 0;
    for (; op < timeline_.ops.size() && ++seen < kMostOpsAround; op = timeline_.ops[op].parent)
      if (starts_with(name_in(timeline_, timeline_.ops[op].name), kBackwardNode)) return op;
    return kNone;
  }
  std::set<std::uint32_t> nodes_of(const Launches& launches) const {
    std::set<std::uint32_t> out;
    for (const std::uint32_t one : launches)
      if (const std::uint32_t node = node_around(one); node != kNone) out.insert(node);
    if (out.empty()) return out;
    const std::set<std::uint32_t> gone(launches.begin(), launches.end());
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i)
      if (!gone.contains(i)) out.erase(node_around(i));
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
  void show(const char* what, const Works& works, const Launches& launches,
            Intervention& out) const {
    std::map<std::string_view, Named> ops;
    std::map<std::string, Named> places;
    std::size_t steps = 0;
    for (const FlowWork* work : works) {
      const double ns = time_of(*work);
      ops[work->fact->op].count += 1;
      ops[work->fact->op].ns += ns;
      Named& at = places[place_of(work->ops.front())];
      at.count += 1;
      at.ns += ns;
      steps = std::max(steps, work->ops.size());
    }
    out.evidence.push_back(
        {what,
         fmt::format(
             "{}, {}{}, {}", counted(works.size(), "op"),
             counted(in_one_unit(facts_, static_cast<double>(launches.size())), "launch"),
             a_unit(facts_),
             of_total(in_one_unit(facts_, walk_.duration(launches)), facts_.unit.baseline_ns.mid)),
         "data flow and timeline"});
    out.evidence.push_back({"these ops", in_words(ops, kMostOpNames), "data flow"});
    std::map<std::string_view, Named> where(places.begin(), places.end());
    if (where.size() > 1 || where.begin()->first != ops.begin()->first)
      out.evidence.push_back({"where they run", in_words(where, kMostPlaces), "timeline"});
    show_longest(works, out);
    if (steps < found_.steps)
      out.evidence.push_back({"steps that have the recorded ops",
                              fmt::format("{} of {}", steps, found_.steps), "timeline"});
  }

  double time_of(const FlowWork& work) const { return walk_.duration(work.all()); }
  // For the reader to find it: its place in the step, and its heaviest kernel.
  void show_longest(const Works& works, Intervention& out) const {
    const FlowWork& longest = **std::max_element(
        works.begin(), works.end(),
        [&](const FlowWork* a, const FlowWork* b) { return time_of(*a) < time_of(*b); });
    const FlowFact& fact = *longest.fact;
    const Launches all = longest.all();
    const std::uint32_t launch = *std::max_element(
        all.begin(), all.end(),
        [&](std::uint32_t a, std::uint32_t b) { return walk_.duration(a) < walk_.duration(b); });
    std::string text =
        fmt::format("number {} of {} {} of a step", fact.ordinal + 1, fact.count, clean(fact.op));
    if (walk_.at(launch).kind == ActivityKind::kKernel)
      text += ": " + problem_text(walk_.stat(launch));
    out.evidence.push_back({works.size() > 1 ? "the longest one" : "it", text, "data flow"});
    if (longest.earlier != kNone)
      out.evidence.push_back(
          {"its result was made before",
           fmt::format("by number {}, in {}", fact.earlier + 1, clean(place_of(longest.earlier))),
           "data flow"});
    if (fact.kind == FlowKind::kPartlyRead)
      out.evidence.push_back({"elements of its result that are read",
                              percent(fact.read_share) +
                                  (fact.reader.empty() ? "" : ", most by " + clean(fact.reader)),
                              "data flow"});
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
    show(what, works, launches, out);
    out.assumptions.push_back(
        fmt::format("other steps read no more than the {} recorded ones", flow_.steps));
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  // Ways to keep the results, those of most time first.
  void add_ways(const Works& works, bool in_step, Intervention& out) const {
    std::map<std::string_view, double> ways;
    for (const FlowWork* work : works) {
      std::set<std::string_view> names;
      around(work->ops.front(), [&](std::string_view name) { names.insert(name); });
      for (const Kept& kept : kKept) {
        const auto ops = split(kept.ops, '|');
        if (in_step && !kept.in_step) continue;
        if (std::none_of(ops.begin(), ops.end(),
                         [&](const std::string& op) { return names.contains(op); }))
          continue;
        ways[kept.how] += time_of(*work);
        break;
      }
    }
    std::vector<std::pair<double, std::string_view>> sorted;
    for (const auto& [how, ns] : ways) sorted.emplace_back(-ns, how);
    std::sort(sorted.begin(), sorted.end());
    std::size_t at = 0;
    for (const auto& [ns, how] : sorted)
      out.how.insert(out.how.begin() + static_cast<std::ptrdiff_t>(at++), std::string(how));
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
    show(what, works, launches, out);
    const bool each_step = &words == &kBeforeLoop;
    add_ways(works, !each_step, out);
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
    show("results of a step that are read in part", works, launches, out);
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
