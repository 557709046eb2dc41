// SPDX-License-Identifier: Apache-2.0
// Passes of one network over equal inputs in a training step, more than the backward pass goes
// through: a critic asked again for its values, a frozen backbone run for each head.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kFewestOfPass = 2, kMostOfStep = 600;  // of a pass; of a step
constexpr double kLeastPasses = 0.05;                        // of the unit
// Another network of the same sizes, or another batch, looks alike: the low estimate is 0.
constexpr Interval3 kSameNetwork = {0, 0.6, 1};
constexpr double kFresh = 0.9;  // of its input, that the product before did not write

class Passes {
 public:
  Passes(Walk& walk, Advice& advice)
      : walk_(walk), timeline_(walk.facts().profile->timeline), advice_(advice) {}

  void run() {
    if (!walk_.trains() || walk_.facts().unit.kind != "step" || walk_.known().repeats) return;
    std::map<int, Step> steps;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t one : run) place(one, steps[walk_.step_of(walk_.at(one))]);
    for (auto& [number, step] : steps)
      if (number >= 0 && step.products.size() <= kMostOfStep) look_at(step);
    add();
  }

 private:
  struct Step {
    Launches forward;
    std::vector<std::size_t> products;               // indices into forward
    std::map<double, std::set<std::uint32_t>> back;  // ops of the backward pass, by their weights
  };
  // What tells the weights of a product apart, and is the same in the backward pass.
  double weights_of(std::uint32_t one) const {
    const Touch& touch = walk_.touch(one);
    if (touch.kind == TouchKind::kProduct)
      return touch.batch * touch.m * touch.columns * touch.depth;
    return touch.kind == TouchKind::kOther ? touch.weights : 0;
  }
  void place(std::uint32_t one, Step& step) {
    const std::uint32_t call = walk_.at(one).call;
    const std::uint32_t op = call < timeline_.calls.size() ? timeline_.calls[call].op : kNone;
    if (in_backward(timeline_, walk_.at(one))) {
      if (const double weights = weights_of(one); weights > 0) step.back[weights].insert(op);
      return;
    }
    const bool more_of_it = !step.products.empty() && op != kNone && op == last_op_;
    if (walk_.touch(one).multiplies() && !more_of_it) step.products.push_back(step.forward.size());
    if (walk_.touch(one).multiplies()) last_op_ = op;
    step.forward.push_back(one);
  }
  std::uint32_t product(const Step& step, std::size_t at) const {
    return step.forward[step.products[at]];
  }
  std::size_t row(const Step& step, std::size_t at) const {
    return walk_.facts().row_of[walk_.at(product(step, at)).row];
  }
  // Whether a product may not read what the one before it has written: it starts a pass.
  bool fresh(const Step& step, std::size_t at) const {
    if (at == 0) return true;
    const Touch &touch = walk_.touch(product(step, at)),
                &before = walk_.touch(product(step, at - 1));
    const double input = touch.kind == TouchKind::kProduct ? touch.batch * touch.m * touch.depth
                         : touch.in_size > 0 ? touch.read / touch.in_size - touch.weights
                                             : 0;
    return before.n < kFresh * input || made_anew(step, at, input);
  }
  // Whether a kernel right before it makes its input of as many elements, and none of more.
  bool made_anew(const Step& step, std::size_t at, double input) const {
    bool made = false;
    for (std::size_t i = step.products[at - 1] + 1; i < step.products[at]; ++i) {
      const std::string_view what = walk_.stat(step.forward[i]).name.op_class;
      const Touch& touch = walk_.touch(step.forward[i]);
      if (what == "layout" || touch.multiplies()) continue;
      if (touch.kind == TouchKind::kUnknown || (touch.out == input && touch.n > input))
        return false;
      made = made || (touch.out == input && touch.n == input);
    }
    return made && walk_.touch(product(step, at - 1)).n != input;
  }
  std::size_t equal_from(const Step& step, std::size_t a, std::size_t b) const {
    std::size_t length = 0;
    while (a + length < b && b + length < step.products.size() &&
           row(step, a + length) == row(step, b + length) &&
           (length == 0 || !(fresh(step, a + length) && fresh(step, b + length))))
      ++length;
    return length;
  }
  // The places where one pass begins; what takes most time, and has passes to spare.
  void look_at(const Step& step) {
    struct Found {
      std::vector<std::size_t> starts;
      std::size_t length = 0;
      double ns = 0;
    };
    std::vector<Found> all;
    for (std::size_t a = 0; a + 1 < step.products.size(); ++a) {
      if (!fresh(step, a)) continue;
      std::vector<std::size_t> starts = {a};
      std::size_t common = step.products.size();
      for (std::size_t b = a + 1; b < step.products.size(); ++b) {
        if (b < starts.back() + kFewestOfPass || !fresh(step, b)) continue;
        const std::size_t equal = equal_from(step, starts.back(), b);
        if (equal < kFewestOfPass) continue;
        common = std::min(common, equal);
        starts.push_back(b);
      }
      std::set<std::size_t> distinct;
      for (std::size_t i = 0; i < common && starts.size() > 1; ++i)
        distinct.insert(row(step, a + i));
      if (distinct.size() < kFewestOfPass) continue;
      double ns = 0;
      for (const std::size_t start : starts) ns += walk_.duration(launches(step, start, common));
      all.push_back({std::move(starts), common, ns});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& a, const Found& b) { return a.ns > b.ns; });
    for (const Found& one : all)
      if (judge(step, one.starts, one.length)) return;
  }
  Launches launches(const Step& step, std::size_t start, std::size_t length) const {
    const auto at = [&](std::size_t i) {
      return step.forward.begin() + static_cast<std::ptrdiff_t>(i);
    };
    return {at(step.products[start]), at(step.products[start + length - 1] + 1)};
  }
  bool judge(const Step& step, const std::vector<std::size_t>& starts, std::size_t length) {
    // The backward pass has two products for each of the forward pass; of the first one.
    std::map<double, double> forward;
    for (std::size_t i = 0; i < length; ++i) forward[weights_of(product(step, starts[0] + i))] += 1;
    double back = 0, each = 2 * static_cast<double>(length) - 1;
    for (const auto& [weights, count] : forward)
      if (const auto found = step.back.find(weights); found != step.back.end())
        back += static_cast<double>(found->second.size());
    const auto passes = static_cast<double>(starts.size());
    const double trained = std::min(passes, std::ceil(back / each - 0.25));
    const double kept = std::max(1.0, trained);
    if (back <= 0 || passes - kept < 1) return false;
    for (std::size_t i = static_cast<std::size_t>(kept); i < starts.size(); ++i) {
      const Launches gone = launches(step, starts[i], length);
      work_.insert(work_.end(), gone.begin(), gone.end());
      const std::uint32_t first = walk_.at(gone.front()).call, last = walk_.at(gone.back()).call;
      if (first < timeline_.calls.size() && last < timeline_.calls.size() &&
          timeline_.calls[first].thread == timeline_.calls[last].thread)
        host_.push_back({begin_of(timeline_.calls[first]), end_of(timeline_.calls[last])});
    }
    passes_ = passes, trained_ = trained, length_ = static_cast<double>(length);
    return true;
  }
  void add() {
    const Facts& facts = walk_.facts();
    const double ns = in_one_unit(facts, walk_.duration(work_));
    if (ns < kLeastPasses * facts.unit.baseline_ns.mid) return;
    Intervention out = reuse_result();
    remove_launches(walk_, work_, kSameNetwork, out);
    const Interval3& gone = kSameNetwork;
    out.change.edits.emplace_back(
        edit::ScaleHost{{1 - gone.low, 1 - gone.mid, 1 - gone.high}, host_, kNone});
    for (const std::uint32_t one : work_) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {"equal passes of one network in a step, and passes with gradients",
         fmt::format("{:.0f} and {:.0f}, {} each", passes_, trained_, counted(length_, "product")),
         "timeline, shapes and ops of the host"});
    out.evidence.push_back(
        {"kernels of the passes to spare", of_total(ns, facts.unit.baseline_ns.mid), "timeline"});
    out.how.emplace_back(
        "keep the result of the first pass: values.detach() where no gradient is "
        "needed; a frozen backbone once for all heads");
    out.assumptions.emplace_back(
        "the passes are of one network over one input; another network of the same sizes, such as "
        "a target network, looks alike: the low estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Timeline& timeline_;
  Advice& advice_;
  std::uint32_t last_op_ = kNone;
  Launches work_;
  std::vector<Interval> host_;  // of the passes to spare
  double passes_ = 0, trained_ = 0, length_ = 0;
};

}  // namespace

const Rule kPassesRule = {{}, [](Walk& walk, Advice& advice) { Passes(walk, advice).run(); }};

}  // namespace purlin::analyze
