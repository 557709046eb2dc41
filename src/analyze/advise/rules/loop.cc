// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/loop.h"

#include "analyze/timeline/host.h"
#include "analyze/timeline/sequences.h"
#include "analyze/timeline/streams.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>

namespace purlin::analyze {
namespace {

// Kernels of each step, stream by stream.
std::vector<Launches> kernels_by_step(const Facts& facts) {
  std::vector<Launches> out;
  const Timeline& timeline = facts.profile->timeline;
  const auto& steps = facts.timeline->steps;
  const Streams streams(timeline);
  for (const StreamWork& stream : streams.all()) {
    std::map<std::ptrdiff_t, Launches> by_step;
    for (const std::uint32_t i : stream.activities) {
      const Activity& activity = timeline.activities[i];
      if (activity.kind != ActivityKind::kKernel || activity.row >= facts.row_of.size()) continue;
      const auto step = std::partition_point(steps.begin(), steps.end(), [&](const StepTime& one) {
        return one.start_ns <= activity.start_ns;
      });
      by_step[step - steps.begin()].push_back(i);
    }
    for (auto& [step, launches] : by_step)
      if (step > 0) out.push_back(std::move(launches));
  }
  return out;
}

std::vector<Loop> loops_of(const Facts& facts, const Launches& launches) {
  std::vector<std::uint32_t> tokens;
  tokens.reserve(launches.size());
  for (const std::uint32_t i : launches)
    tokens.push_back(
        static_cast<std::uint32_t>(facts.row_of[facts.profile->timeline.activities[i].row]));
  std::vector<Loop> out;
  for (const Repetition& found : find_repetitions(tokens, {})) {
    if (found.rounds < kFewestRounds) continue;
    const auto begin = launches.begin() + static_cast<std::ptrdiff_t>(found.begin);
    out.push_back(
        {{begin, begin + static_cast<std::ptrdiff_t>(found.end() - found.begin)}, found.period});
  }
  return out;
}

// In the mean.
bool is_short(const Facts& facts, const Loop& loop) {
  double ns = 0;
  for (const std::uint32_t i : loop.launches)
    ns += static_cast<double>(facts.profile->timeline.activities[i].duration_ns);
  return ns < kShortKernel * static_cast<double>(loop.launches.size());
}

// Layers of a network in training: each has other weights and gives the next its gradient, so no
// batch holds two of them.
bool is_of_layers(const Facts& facts, const Loop& loop) {
  const auto& activities = facts.profile->timeline.activities;
  return std::any_of(loop.launches.begin(),
                     loop.launches.begin() + static_cast<std::ptrdiff_t>(loop.period),
                     [&](std::uint32_t i) {
                       const std::string_view of =
                           facts.rows.kernels[facts.row_of[activities[i].row]].name.op_class;
                       return of == "gemm" || of == "conv" || of == "attention";
                     });
}

// A layer of a transformer: attention between products. The next one needs its result.
bool is_of_transformer(const Facts& facts, const Loop& loop) {
  constexpr int kProducts = 2;
  int products = 0, attentions = 0;
  for (std::size_t i = 0; i < loop.period; ++i) {
    const Activity& activity = facts.profile->timeline.activities[loop.launches[i]];
    const std::string_view of = facts.rows.kernels[facts.row_of[activity.row]].name.op_class;
    products += of == "gemm" ? 1 : 0;
    attentions += of == "attention" ? 1 : 0;
  }
  return attentions > 0 && products >= kProducts;
}

// One call launches all nodes of a graph, however often they repeat.
Launches launched_alone(const Facts& facts, const Launches& launches) {
  const Timeline& timeline = facts.profile->timeline;
  Launches out;
  std::copy_if(launches.begin(), launches.end(), std::back_inserter(out),
               [&](std::uint32_t i) { return !is_graph_node(timeline, timeline.activities[i]); });
  return out;
}

// Elements that a kernel reads of its first input, or of a product's vectors; 0 where not known.
double operand(const Touch& touch) {
  if (touch.kind == TouchKind::kProduct)
    return touch.batch * touch.depth * (touch.columns == 1 ? 1 : touch.m);
  return touch.light() ? touch.n : 0;
}

// Each kernel reads what the round has written before it, or what no kernel of the round writes.
bool stands_alone(std::span<const Touch* const> round) {
  const auto writes = [](double elements) {
    return [elements](const Touch* one) { return one->out == elements; };
  };
  for (std::size_t i = 0; i < round.size(); ++i) {
    const double read = operand(*round[i]);
    const auto here = round.begin() + static_cast<std::ptrdiff_t>(i);
    if (read <= 0 || std::any_of(round.begin(), here, writes(read))) continue;
    if (std::any_of(here, round.end(), writes(read))) return false;
  }
  return true;
}

}  // namespace

std::vector<Loop> find_loops(const Facts& facts) {
  std::vector<Loop> out;
  for (const Launches& launches : kernels_by_step(facts))
    for (Loop& loop : loops_of(facts, launches)) out.push_back(std::move(loop));
  return out;
}

LoopShare share_of_loops(const Facts& facts, double fewest_rounds) {
  double all = 0, looped = 0, rounds = 0;
  LoopShare out;
  const bool trains = Walk(facts).trains();
  for (const Launches& of_step : kernels_by_step(facts)) {
    const Launches launches = launched_alone(facts, of_step);
    all += static_cast<double>(launches.size());
    for (const Loop& loop : loops_of(facts, launches)) {
      if (loop.rounds() < fewest_rounds || !is_short(facts, loop)) continue;
      if ((trains && is_of_layers(facts, loop)) || is_of_transformer(facts, loop)) continue;
      const auto size = static_cast<double>(loop.launches.size());
      looped += size;
      rounds += size * loop.rounds();
      out.again.insert(out.again.end(),
                       loop.launches.begin() + static_cast<std::ptrdiff_t>(loop.period),
                       loop.launches.end());
    }
  }
  if (looped <= 0) return {};
  out.launches = looped / all;
  out.rounds = rounds / looped;
  return out;
}

bool rounds_are_independent(const Walk& walk, const Loop& loop) {
  std::vector<const Touch*> round;
  for (std::size_t i = 0; i < loop.period; ++i) {
    const Touch& touch = walk.touch(loop.launches[i]);
    const bool helper = walk.stat(loop.launches[i]).name.op_class == "gemm";
    if (touch.kind == TouchKind::kUnknown && helper) continue;  // it adds up parts of a product
    if (touch.kind != TouchKind::kProduct && !touch.light()) return false;
    round.push_back(&touch);
  }
  // A loop may begin anywhere in the round.
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (stands_alone(round)) return true;
    std::rotate(round.begin(), round.begin() + 1, round.end());
  }
  return false;
}

}  // namespace purlin::analyze
