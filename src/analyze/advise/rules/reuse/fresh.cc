// SPDX-License-Identifier: Apache-2.0
// Chains that a step computes several times, and that begin with arrays that none of its kernels
// has written: weights and constants. Codes of weights are expanded for each chunk, or links
// between nodes follow from the same vectors in each layer.
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kFewestOfChain = 2;
constexpr double kLargeArray = 1 << 20;  // elements of what a chain makes
constexpr double kLeastOfChains = 0.08;  // of the unit
// Layers of equal sizes look alike, each with its weights: the low estimate is 0.
constexpr Interval3 kPerhapsSame = {0, 0.7, 1};

class FreshChains {
 public:
  FreshChains(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), advice_(advice), chains_(walk) {}

  void run() {
    if (facts_.unit.kind != "step" || walk_.known().repeats) return;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t one : run) note_written(one);
    convert();
    for (const CopyRow& copy : facts_.profile->copies)
      if (copy.kind != "d2h" && copy.duration.count() > 0)
        copied_.insert(copy.bytes / copy.duration.count());
    for (const Launches& run : walk_.runs())
      for (std::size_t i = 0; i < run.size();) i = std::max(i + 1, chain(run, i));
    for (const Chain* chain : chains_.all()) judge(*chain);
  }

 private:
  using Array = std::pair<double, double>;  // elements, and bytes of one
  void note_written(std::uint32_t one) {
    const Touch& touch = walk_.touch(one);
    if (touch.kind == TouchKind::kUnknown || in_backward(facts_.profile->timeline, walk_.at(one)))
      return;
    const Array out = {touch.out > 0 ? touch.out : touch.n, touch.out_size()};
    if (is_conversion(one)) {
      converted_.insert({out, {touch.n, touch.in_size}});
    } else {
      written_.insert(out);
    }
  }
  bool is_conversion(std::uint32_t one) const {
    const Touch& touch = walk_.touch(one);
    return touch.kind == TouchKind::kPointwise && touch.inputs == 1 && touch.out == touch.n &&
           walk_.stat(one).name.op_class == "copy" && touch.out_size() != touch.in_size;
  }
  // What is converted from written arrays is written as well.
  void convert() {
    for (bool more = true; more;) {
      more = false;
      for (const auto& [out, in] : converted_)
        if (written_.contains(in)) more = written_.insert(out).second || more;
    }
  }
  bool is_fresh(double elements, double size) const {
    return !written_.contains({elements, size}) && !copied_.contains(elements * size);
  }
  // Reads only arrays of a size, or of a type, that nothing writes.
  bool begins(std::uint32_t one) const {
    const Touch& touch = walk_.touch(one);
    if (walk_.taken(one)) return false;
    if (touch.kind == TouchKind::kProduct)
      return is_fresh(touch.batch * touch.m * touch.depth, touch.in_size) &&
             is_fresh(touch.batch * touch.depth * touch.columns, touch.in_size);
    return touch.kind == TouchKind::kPointwise && touch.inputs == 1 && touch.n >= kLargeArray &&
           is_fresh(touch.n, touch.in_size);
  }
  bool goes_on(std::uint32_t one, double n) const {
    const Touch& touch = walk_.touch(one);
    return !walk_.taken(one) &&
           (touch.kind == TouchKind::kPointwise || touch.kind == TouchKind::kNorm) &&
           touch.inputs <= 1 && touch.n == n && touch.out == n;
  }
  std::size_t chain(const Launches& run, std::size_t at) {
    if (!begins(run[at]) || in_backward(facts_.profile->timeline, walk_.at(run[at]))) return at;
    const double n = walk_.touch(run[at]).n;
    if (n < kLargeArray) return at;
    std::size_t end = at + 1;
    while (end < run.size() && goes_on(run[end], n)) ++end;
    if (end - at < kFewestOfChain) return at;
    chains_.add({run.data() + at, end - at});
    return end;
  }

  // Another rule has found it by what the next product reads.
  bool is_advised(const Chain& chain) const {
    const std::string& label = walk_.stat(chain.groups.front().front()).label;
    return std::any_of(
        advice_.interventions.begin(), advice_.interventions.end(), [&](const Intervention& one) {
          return one.id == "reuse_result" &&
                 std::find(one.kernels.begin(), one.kernels.end(), label) != one.kernels.end();
        });
  }
  void judge(const Chain& chain) {
    std::map<int, std::size_t> in_step;
    for (const Launches& group : chain.groups) ++in_step[walk_.step_of(walk_.at(group.front()))];
    std::size_t most = 0;
    Launches spare;
    std::map<int, std::size_t> seen;
    for (const auto& [step, count] : in_step) most = std::max(most, count);
    if (most < 2 || is_advised(chain)) return;
    for (const Launches& group : chain.groups)
      if (seen[walk_.step_of(walk_.at(group.front()))]++ > 0)
        spare.insert(spare.end(), group.begin(), group.end());
    const double ns = in_one_unit(facts_, walk_.duration(spare));
    if (ns < kLeastOfChains * facts_.unit.baseline_ns.mid) return;
    Intervention out = reuse_result();
    remove_launches(walk_, spare, kPerhapsSame, out);
    for (const std::uint32_t one : spare) name_kernel(walk_.stat(one), out);
    out.evidence.push_back(
        {"a chain of kernels that begins with arrays that no kernel of the step writes",
         fmt::format("{} of {}{}, {}; all but the first take {}",
                     format_count(static_cast<double>(most)),
                     counted(static_cast<double>(chain.rows.size()), "kernel"), a_unit(facts_),
                     problem_text(walk_.stat(chain.groups.front().front())),
                     of_total(ns, facts_.unit.baseline_ns.mid)),
         "timeline and shapes"});
    out.assumptions.emplace_back(
        "the chains read the same arrays; other weights of the same sizes look alike: the low "
        "estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  Advice& advice_;
  std::set<Array> written_;
  std::set<std::pair<Array, Array>> converted_;
  std::set<double> copied_;  // bytes
  Chains chains_;
};

}  // namespace

const Rule kFreshRule = {{}, [](Walk& walk, Advice& advice) { FreshChains(walk, advice).run(); }};

}  // namespace purlin::analyze
