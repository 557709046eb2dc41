// SPDX-License-Identifier: Apache-2.0
// Advice: what to change, how much of the end-to-end time it would save, and what shows it.
//
// Every statement has evidence from the profile. Every saving is an interval that Amdahl's law
// bounds: a kernel's saving counts only where the device, not the host, sets the pace
// (savings/exposure.h). Savings of several interventions do not add up.
//
// advise() gathers the facts of the profile (facts.h), and each rule adds interventions (rules/).
// It estimates what they save (savings/) and orders them (ranking/). Then it says where the time is
// lost (verdict/) and what more hardware would give (what_if/). Method: docs/guide/advise.md;
// document: docs/formats/advise.md. Pure functions over values.
#pragma once

#include "analyze/advise/learn/outcome.h"
#include "analyze/advise/ranking/plan.h"
#include "analyze/advise/savings/estimate.h"
#include "analyze/advise/verdict/levels.h"
#include "analyze/diff/diff.h"
#include "analyze/replay/change.h"
#include "analyze/replay/replayer.h"
#include "analyze/report/report.h"
#include "analyze/roofline/target.h"
#include "base/json/json.h"
#include "base/output/terminal.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

enum class Pillar { kArithmeticIntensity, kOccupancy, kMemoryEfficiency, kOverhead };
std::string_view to_text(Pillar pillar);  // "arithmetic_intensity"

// What the tie between equal savings is broken by: the earlier level comes first.
enum class Level { kAlgorithm, kMemory, kCompute, kParallelism, kTuning };
std::string_view to_text(Level level);  // "algorithm"

struct Evidence {
  std::string what;   // "idle, host launch"
  std::string value;  // "4.21 ms of 6.78 ms (62%)"
  std::string from;   // "timeline", "counters", "shape model", "kernel name"
};

struct Intervention {
  std::string id;  // of its remedy: "cuda_graphs"
  std::string title;
  Pillar pillar = Pillar::kOverhead;
  Level level = Level::kTuning;
  LossLevel at = LossLevel::kUnknown;  // Where the saved time is.
  double roi = 0;                      // Per cent saved in a day of work.
  std::string regime;                  // "memory", "compute", "latency", "host"

  std::vector<std::string> kernels;  // labels, heaviest first; empty: not about kernels
  double kernels_left_out = 0;       // beyond those
  bool together = false;             // one change of the program covers all of its id
  bool alternative = false;          // another one, with more evidence, saves the same time.
  std::size_t place = 0;             // Among interventions and trades, from 1.
  // Of saved_share.mid, what is left once those listed before are done; of the second and third.
  std::optional<double> on_top_share;
  // Where it is not empty and the host's calls are known, replay computes the saving from it;
  // what the rule put into saved_ns counts elsewhere.
  Change change;
  // Of one unit: new work that the change may need, at worst; what may go with it unseen, at best.
  double instead_ns = 0, besides_ns = 0;
  Interval3 saved_ns;      // of one unit, end to end
  Interval3 saved_share;   // of the unit's time in the same scenario
  std::string estimate;    // "replay"; "kernels": the rule's own arithmetic
  std::string confidence;  // "A" … "D", docs/guide/advise.md
  std::string effort, risk, portability, expertise;
  std::string route;  // What a kernel would be written in: "triton", "cuda", …; "" = none is
  std::vector<Evidence> evidence;  // never empty
  std::vector<std::string> how;    // each names a tool or a call
  std::vector<std::string> assumptions;
  std::string guard;       // what must be checked before it is kept; "" = results are the same
  double freed_bytes = 0;  // memory of the device, in one unit; negative: it takes that much more
  std::string doc;         // its section: "docs/guide/playbook.md#flash-attention"
  std::optional<TrackRecord> record;  // of its rule's earlier outcomes
};
std::string section_of(std::string_view remedy);

// An own kernel that takes much of the time, and of which nothing tells what it could take. It has
// no saving: what would tell, and what to look at first.
struct UnknownRoof {
  std::string kernel, kernel_id;  // label; of the page's row
  double ns = 0, share = 0;       // its time in one unit, and of the unit
  std::vector<Evidence> launch;   // what is known of the launch
  std::vector<std::string> collect, look_at;
};

// What would not help, and why.
struct NoGain {
  std::string what;  // "twice the FLOP/s"
  std::vector<std::string> kernels;
  std::optional<double> saved_ns;  // predicted, of one unit; nothing: not possible in this form
  std::string why;
};

struct StallNote {  // why the warps of a kernel wait
  std::string kernel, reason, meaning;
  double stalled = 0, share = 0;  // of the stalled samples, of all
  std::string occupancy;          // why more of it does not help, "" where it may
  std::string where;              // "gemm.cu:14", "+0x150": most of its samples; "" not known
};

struct WhatIf {          // all kernels whose roof is known, with one resource doubled
  std::string resource;  // "compute", "memory_bandwidth", "kernels", "host", "gpu", "gpus", "data"
  double saved_ns = 0, saved_share = 0;
  std::string text;
  std::string device;  // of "gpu": its name in the table
  double factor = 2;   // of "gpus": how many times as many; of "data": the share that is left
};

LossLevel loss_level(const Intervention& one);

struct CriticalWork {  // of the chain that the last work waits for, in one unit
  std::string kind;    // "device work", "host time", "launch", …
  std::string name;    // kernel, or op and call
  double ns = 0, share = 0, count = 0;
};

struct ListedKernel {  // of the two short lists
  std::string label, shape, dtype, op_class;
  std::string kernel_id;  // of the page's row: "#kernel=ID"
  double share = 0;       // tune: of the kernel time
  double saved_ns = 0;    // tune: to its target; slower: what it lost; of one unit, end to end
  double utilization = 0, target = 0;
  std::size_t obsolete_after = 0;  // step of the plan that makes tuning it pointless; 0: none
  std::string why;
  std::string next;  // a command
};

struct CheckItem {  // of a workflow: what was looked at, and what came of it
  std::string id, area, text;
  std::string state;  // "done", "found" (an intervention answers it), "open", "unknown" (no data)
  std::string why;
};

// Of the kernel time: what the tensor cores could do, products and convolutions, and of that what
// the kernels' names or roofs show to run on them, and not to. The rest is not known.
struct TensorShares {
  double eligible = 0, used = 0, idle = 0;
};

struct Advice {
  // A level, or "grey": between tune and restructure. "scale_hardware", "unknown".
  std::string verdict;
  std::string verdict_text;
  Unit unit;
  LevelShares levels = {};  // In order of LossLevel.
  double idle_share = 0;    // of the unit, without the recorder's own; 0 also where not known
  Interval3 idle_range;     // the same, for the most and the least time that it may have added
  double kernel_utilization = 0;  // of the kernels with a roof, by time; 0 = not known
  double judged_share = 0;        // of the kernel time that has a roof
  double short_share = 0;         // of the kernel time in launches that mostly start and drain
  TensorShares tensor;
  std::vector<Intervention> interventions;  // most worth first, see rank()
  std::vector<PlanStep> plan;               // in which order to do them
  // What costs something other than work: time for memory (a negative saving), precision for time.
  std::vector<Intervention> trades;
  std::vector<UnknownRoof> unknown_roofs;  // largest first; at least a fifth of the unit
  std::size_t small_ones = 0;              // below the threshold, left out
  std::size_t below_spread = 0;            // of steps: left out too
  std::vector<NoGain> no_gain;
  std::vector<StallNote> stalls;
  std::vector<WhatIf> what_if;
  std::optional<ReplayQuality> replay;  // nothing: the savings are of kernels
  std::vector<CriticalWork> critical_path;
  std::vector<ListedKernel> tune, slower;
  std::string against;  // the file `slower` compares with; "" = none
  std::vector<Alert> alerts;
  std::vector<CheckItem> checklist;
  std::vector<std::string> notes;  // what could not be judged, and what to record for it
  std::string nothing;             // why there are no interventions; "" where there are some
  std::string profile_id;
  std::vector<std::string> files;
  Environment environment;
  Coverage coverage;
  bool partial = false;
};

struct AdviceOptions {
  TargetFractions targets;
  std::size_t list = 5;    // at most so many in each of the two lists
  double smallest = 0.01;  // share below which an intervention is not listed
  double data_cut = 0;     // what if: the share of the data that the program need not work on
  const Diff* against = nullptr;
  const TrackRecords* records = nullptr;  // of earlier outcomes
};

// `timeline` is the profile's own (analyze_timeline). The advice is of its window: a step of the
// steady state where the steps are known.
Advice advise(const Profile& profile, const TimelineAnalysis& timeline,
              const std::vector<Ceilings>& measured = {}, const AdviceOptions& options = {});

// What the change `id`, advised for `before`, saved. kNotFound: it was not advised; kInvalid: the
// two are not of the same kind, or have no time.
Result<Outcome> outcome_of(const Advice& before, const Advice& after, std::string_view id);

Json to_json(const CriticalWork& one);
Json to_json(const Advice& advice);  // purlin.advise/1
std::string render_advice(const Advice& advice, const Terminal& terminal, int top = 0);
// Verdict, alerts and the first interventions, for a report of the same profile.
void put_advice(const Advice& advice, Report& report, std::size_t most = 3);

}  // namespace purlin::analyze
