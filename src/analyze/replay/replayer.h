// SPDX-License-Identifier: Apache-2.0
// Replayer: what a change would save, end to end: the window replayed before it less the window
// replayed after it, both without the recorder, so that the model's bias cancels. Built once for a
// profile, which must outlive it. Immutable afterwards; cheap to ask: a few passes over the graph.
// Method and limits: docs/design/replay.md.
#pragma once

#include "analyze/replay/apply.h"
#include "analyze/replay/change.h"
#include "analyze/replay/graph.h"
#include "analyze/replay/recorder.h"
#include "analyze/timeline/timeline.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace purlin::analyze {

// What the figures of a replay rest on.
struct ReplayQuality {
  double steps = 0;           // In the window.
  double long_steps = 0;      // Left out of it: more than twice the median.
  double recorded_ns = 0;     // One step, replayed unchanged: as recorded.
  Interval3 baseline_ns;      // One step without the recorder: low is the fastest host.
  double step_spread = 0;     // Of the recorded steps, as a share. Of their mean: by √steps less.
  double constant_error = 0;  // Of the span, with every delay the constant of its kind.
  double residuals = 0;       // Share of the begins of work that were held up by nothing known.
  double unlinked = 0;        // Share of the work whose call is not known.
  double waits = 0, unrecovered = 0;  // Calls that wait; those whose work was not found.
  double events = 0, edges = 0;       // Calls and work of the window; dependencies.
  int lower_confidence = 0;           // By how many letters.
};

// One piece of the chain of work and delays that the last work waits for.
struct CriticalPart {
  EdgeKind kind = EdgeKind::kRun;
  std::uint32_t activity = kNone;  // of device work: one of its row
  std::uint32_t call = kNone;      // of the host's time and of delays: one of them
  double ns = 0;                   // of one step
  double count = 0;                // pieces, of one step
};

struct Saving {         // of one step, end to end
  Interval3 ns, share;  // share: of the step in the same scenario
};

struct Replayed {
  std::vector<double> times;  // of each node of the graph
  Applied applied;            // empty weights: before
  double step_ns = 0;
};

class Replayer {
 public:
  // `step_ns`: a step's time outside of the recording; 0: not known.
  Replayer(const Profile& profile, const TimelineAnalysis& timeline, double step_ns);

  // False: no host calls, or too little of the work is linked to them.
  bool usable() const { return usable_; }
  const ReplayQuality& quality() const { return quality_; }
  const Graph& graph() const { return graph_; }

  // Below 0 only where the change can make the program slower; never more than if all that it
  // touches took no time.
  Saving saving(const Change& change) const;
  Replayed before() const;
  Replayed after(const Change& change) const;
  // Largest first, merged by kind and by kernel or host op.
  std::vector<CriticalPart> critical_path(const Replayed& replayed) const;
  // The window with the replayed times, for a viewer: what the change removes is left out.
  Profile timeline_of(const Replayed& replayed) const;

 private:
  void calibrate(double step_ns);
  void measure_quality(const ReplayWindow& window);
  double step_of(const Weights& weights, double least = 0) const;
  void find_step_nodes(const ReplayWindow& window);

  const Profile& profile_;
  Graph graph_;
  std::unique_ptr<Applier> applier_;
  double steps_ = 1;
  std::vector<std::uint32_t> step_nodes_;  // the end of the last device work of each step
  Weights base_[3];                        // without the recorder: least cost first
  Interval3 before_;                       // a step with them
  ReplayQuality quality_;
  bool usable_ = false;
};

}  // namespace purlin::analyze
