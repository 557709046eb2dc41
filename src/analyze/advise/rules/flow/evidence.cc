// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/evidence.h"

#include "analyze/advise/rules/flow/place.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kMostOpNames = 4, kMostPlaces = 3;

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

// For the reader to find it: its place in the step, and its heaviest kernel.
void show_longest(const Walk& walk, const FlowWorks& works, Intervention& out) {
  const Timeline& timeline = walk.facts().profile->timeline;
  const FlowWork& longest = **std::max_element(
      works.begin(), works.end(),
      [&](const FlowWork* a, const FlowWork* b) { return time_of(walk, *a) < time_of(walk, *b); });
  const FlowFact& fact = *longest.fact;
  const Launches all = longest.all();
  const std::uint32_t launch = *std::max_element(
      all.begin(), all.end(),
      [&](std::uint32_t a, std::uint32_t b) { return walk.duration(a) < walk.duration(b); });
  std::string text =
      fmt::format("number {} of {} {} of a step", fact.ordinal + 1, fact.count, clean(fact.op));
  if (walk.at(launch).kind == ActivityKind::kKernel) text += ": " + problem_text(walk.stat(launch));
  out.evidence.push_back({works.size() > 1 ? "the longest one" : "it", text, "data flow"});
  if (longest.earlier != kNone)
    out.evidence.push_back({"its result was made before",
                            fmt::format("by number {}, in {}", fact.earlier + 1,
                                        clean(place_of(timeline, longest.earlier))),
                            "data flow"});
  if (fact.kind == FlowKind::kPartlyRead)
    out.evidence.push_back(
        {"elements of its result that are read",
         percent(fact.read_share) + (fact.reader.empty() ? "" : ", most by " + clean(fact.reader)),
         "data flow"});
}

}  // namespace

void show_work(const Walk& walk, const FlowFound& found, const char* what, const FlowWorks& works,
               const Launches& launches, Intervention& out) {
  const Facts& facts = walk.facts();
  const Timeline& timeline = facts.profile->timeline;
  std::map<std::string_view, Named> ops;
  std::map<std::string, Named> places;
  std::size_t steps = 0;
  for (const FlowWork* work : works) {
    const double ns = time_of(walk, *work);
    ops[work->fact->op].count += 1;
    ops[work->fact->op].ns += ns;
    Named& at = places[place_of(timeline, work->ops.front())];
    at.count += 1;
    at.ns += ns;
    steps = std::max(steps, work->ops.size());
  }
  out.evidence.push_back(
      {what,
       fmt::format(
           "{}, {}{}, {}", counted(works.size(), "op"),
           counted(in_one_unit(facts, static_cast<double>(launches.size())), "launch"),
           a_unit(facts),
           of_total(in_one_unit(facts, walk.duration(launches)), facts.unit.baseline_ns.mid)),
       "data flow and timeline"});
  out.evidence.push_back({"these ops", in_words(ops, kMostOpNames), "data flow"});
  std::map<std::string_view, Named> where(places.begin(), places.end());
  if (where.size() > 1 || where.begin()->first != ops.begin()->first)
    out.evidence.push_back({"where they run", in_words(where, kMostPlaces), "timeline"});
  show_longest(walk, works, out);
  if (steps < found.steps)
    out.evidence.push_back({"steps that have the recorded ops",
                            fmt::format("{} of {}", steps, found.steps), "timeline"});
}

}  // namespace purlin::analyze
