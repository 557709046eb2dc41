// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/apply.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace purlin::analyze {

class EditApplier {
 public:
  EditApplier(const Applier& tables, Scenario scenario, Weights base)
      : tables_(tables),
        graph_(tables.graph_),
        timeline_(tables.profile_.timeline),
        scenario_(scenario) {
    out_.weights = std::move(base);
    out_.gone_activities.resize(timeline_.activities.size());
    out_.gone_calls.resize(timeline_.calls.size());
  }

  void operator()(const edit::Remove& edit) {
    remove(tables_.find(edit.work), at(edit.gone, scenario_));
  }

  void operator()(const edit::Scale& edit) {
    const double factor = std::max(0.0, at(edit.factor, scenario_));
    // What an earlier edit replaced is another kernel.
    for (const std::uint32_t index : tables_.find(edit.work))
      if (!replaced_.contains(index)) scale_run(index, factor);
  }

  void operator()(const edit::Replace& edit) {
    std::vector<std::uint32_t> others;
    for (const WorkGroup& group : edit.groups) {
      if (group.empty()) continue;
      set_run(group.front(), at(edit.duration_ns, scenario_));
      replaced_.insert(group.front());
      others.insert(others.end(), group.begin() + 1, group.end());
    }
    remove(others, 1);
  }

  // Where a share of the calls goes, they are evenly spread.
  void operator()(const edit::RemoveCalls& edit) {
    const double gone = std::clamp(at(edit.gone, scenario_), 0.0, 1.0);
    std::vector<std::uint32_t> calls;
    for (const std::uint32_t call : edit.calls)
      if (call < graph_.outer.size() && graph_.calls[graph_.outer[call]].begin != kNone)
        calls.push_back(graph_.outer[call]);
    std::sort(calls.begin(), calls.end());
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto count = [&](std::size_t n) { return std::floor(gone * static_cast<double>(n)); };
      if (count(i + 1) > count(i)) remove_call(calls[i], 1, false);
    }
  }

  void operator()(const edit::LaunchAsGraph& edit) {
    for (const WorkGroup& group : edit.groups) launch_as_graph(group, edit);
  }

  void operator()(const edit::Overlap& edit) {
    const double hidden = std::clamp(at(edit.hidden, scenario_), 0.0, 1.0);
    const double slower = std::max(0.0, at(edit.slowdown, scenario_) - 1);
    std::map<int, double> moved;
    for (const std::uint32_t index : tables_.find(edit.work)) {
      const NodePair nodes = graph_.activities[index];
      const double length = graph_.recorded[nodes.end] - graph_.recorded[nodes.begin];
      scale_run(index, 1 - hidden + hidden * slower);
      moved[timeline_.activities[index].device] += length;
    }
    for (const auto& [device, ns] : moved)
      if (hidden > 0) out_.least_span_ns = std::max(out_.least_span_ns, ns);
  }

  void operator()(const edit::ScaleHost& edit) {
    const double factor = std::max(0.0, at(edit.factor, scenario_));
    for (std::uint32_t i = 0; i < graph_.calls.size(); ++i) {
      if (graph_.calls[i].begin == kNone) continue;
      if (edit.process != kNone && timeline_.calls[i].process != edit.process) continue;
      for (const std::uint32_t node : {graph_.calls[i].begin, graph_.calls[i].end})
        for (std::uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
          const EdgeKind kind = graph_.edges[e].kind;
          if (kind != EdgeKind::kHostTime && kind != EdgeKind::kCall && kind != EdgeKind::kHandOver)
            continue;
          out_.weights[e] *= 1 - (1 - factor) * covered(graph_.edges[e], edit.when);
        }
    }
  }

  Applied take() { return std::move(out_); }

 private:
  double& weight(std::uint32_t edge) { return out_.weights[edge]; }
  template <class Act>
  void each(std::uint32_t node, const Act& act) {
    if (node == kNone) return;
    for (std::uint32_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e)
      act(graph_.edges[e].kind, weight(e));
  }

  void scale_run(std::uint32_t index, double factor) {
    each(graph_.activities[index].end, [&](EdgeKind, double& ns) { ns *= factor; });
  }

  void set_run(std::uint32_t index, double duration) {
    if (index >= graph_.activities.size()) return;
    each(graph_.activities[index].end, [&](EdgeKind, double& ns) { ns = duration; });
  }

  void remove(const std::vector<std::uint32_t>& work, double gone) {
    gone = std::clamp(gone, 0.0, 1.0);
    if (gone <= 0) return;
    std::unordered_map<std::uint32_t, std::size_t> of_call;
    for (const std::uint32_t index : work) {
      if (index >= graph_.activities.size() || graph_.activities[index].begin == kNone) continue;
      if (out_.gone_activities[index]) continue;
      remove_activity(index, gone);
      const std::uint32_t call = timeline_.activities[index].call;
      if (call < graph_.outer.size()) ++of_call[graph_.outer[call]];
    }
    std::set<std::uint32_t> ops;
    for (const auto& [call, count] : of_call) {
      const auto launched = tables_.launched_.find(call);
      if (launched == tables_.launched_.end() || count < launched->second.size()) continue;
      remove_call(call, gone, true);
      if (timeline_.calls[call].op != kNone) ops.insert(timeline_.calls[call].op);
    }
    for (const std::uint32_t op : ops) remove_rest_of(op, gone, of_call);
  }

  void remove_activity(std::uint32_t index, double gone) {
    scale_run(index, 1 - gone);
    each(graph_.activities[index].begin, [&](EdgeKind kind, double& ns) {
      const bool launch = kind == EdgeKind::kLaunch || kind == EdgeKind::kGraphLaunch;
      if (launch && gone >= 1) {
        ns = kNever;
      } else if (kind == EdgeKind::kStream || kind == EdgeKind::kGraphOrder) {
        ns *= 1 - gone;
      }
    });
    if (gone >= 1) out_.gone_activities[index] = true;
  }

  // `before`: with the host's time before it.
  void remove_call(std::uint32_t call, double gone, bool before) {
    if (out_.gone_calls[call] || graph_.calls[call].begin == kNone) return;
    if (before)
      each(graph_.calls[call].begin, [&](EdgeKind kind, double& ns) {
        if (kind == EdgeKind::kHostTime || kind == EdgeKind::kHandOver) ns *= 1 - gone;
      });
    each(graph_.calls[call].end, [&](EdgeKind kind, double& ns) {
      if (kind == EdgeKind::kCall) {
        ns *= 1 - gone;
      } else if (gone >= 1) {
        ns = kNever;
      }
    });
    if (gone >= 1) out_.gone_calls[call] = true;
  }

  // Other calls of an op go with its launches, where none of these is left.
  void remove_rest_of(std::uint32_t op, double gone,
                      const std::unordered_map<std::uint32_t, std::size_t>& removed) {
    const auto calls = tables_.of_op_.find(op);
    if (calls == tables_.of_op_.end()) return;
    for (const std::uint32_t call : calls->second)
      if (tables_.launched_.contains(call) && !removed.contains(call)) return;
    for (const std::uint32_t call : calls->second)
      if (!tables_.launched_.contains(call)) remove_call(call, gone, true);
  }

  void launch_as_graph(const WorkGroup& group, const edit::LaunchAsGraph& edit) {
    std::vector<std::uint32_t> work;
    std::uint32_t first = kNone, last = 0;
    std::set<std::uint32_t> threads;
    for (const std::uint32_t index : group) {
      if (index >= graph_.activities.size() || graph_.activities[index].begin == kNone) continue;
      const std::uint32_t call = timeline_.activities[index].call;
      if (call >= graph_.outer.size() || graph_.calls[graph_.outer[call]].begin == kNone) continue;
      work.push_back(index);
      first = std::min(first, graph_.outer[call]);
      last = std::max(last, graph_.outer[call]);
      threads.insert(timeline_.calls[call].thread);
    }
    if (work.empty()) return;
    for (std::uint32_t call = first; call <= last; ++call) {
      const Call& one = timeline_.calls[call];
      if (one.process != timeline_.calls[first].process || !threads.contains(one.thread)) continue;
      if (call != first)
        each(graph_.calls[call].begin, [](EdgeKind, double& ns) { ns = std::min(ns, 0.0); });
      each(graph_.calls[call].end, [&](EdgeKind kind, double& ns) {
        if (kind == EdgeKind::kCall) ns = call == first ? at(edit.launch_ns, scenario_) : 0;
      });
      if (call != first && graph_.calls[call].begin != kNone) out_.gone_calls[call] = true;
    }
    const double usual = graph_.constant[static_cast<std::size_t>(EdgeKind::kGraphLaunch)];
    for (const std::uint32_t index : work) {
      const bool head = graph_.outer[timeline_.activities[index].call] == first;
      each(graph_.activities[index].begin, [&](EdgeKind kind, double& ns) {
        if (kind == EdgeKind::kLaunch) {
          ns = head ? usual : kNever;
        } else if (kind != EdgeKind::kStart && !head) {
          ns = at(edit.node_gap_ns, scenario_);
        }
      });
    }
  }

  // The part of an edge's recorded time that lies in the intervals; all of it without any.
  double covered(const Edge& edge, const std::vector<Interval>& when) const {
    if (when.empty()) return 1;
    const Interval whole{graph_.origin_ns + static_cast<std::int64_t>(graph_.recorded[edge.from]),
                         graph_.origin_ns + static_cast<std::int64_t>(graph_.recorded[edge.to])};
    if (whole.length() <= 0) return 0;
    auto next = std::partition_point(when.begin(), when.end(), [&](const Interval& interval) {
      return interval.end <= whole.begin;
    });
    std::int64_t inside = 0;
    for (; next != when.end() && next->begin < whole.end; ++next)
      inside += clip(*next, whole).length();
    return std::clamp(static_cast<double>(inside) / static_cast<double>(whole.length()), 0.0, 1.0);
  }

  const Applier& tables_;
  std::set<std::uint32_t> replaced_;  // activities
  const Graph& graph_;
  const Timeline& timeline_;
  Scenario scenario_;
  Applied out_;
};

Applier::Applier(const Profile& profile, const Graph& graph) : profile_(profile), graph_(graph) {
  by_kernel_.resize(profile.kernels.size());
  by_copy_.resize(profile.copies.size());
  const Timeline& timeline = profile.timeline;
  for (std::uint32_t i = 0; i < graph.activities.size(); ++i) {
    if (graph.activities[i].begin == kNone) continue;
    const Activity& activity = timeline.activities[i];
    auto& rows = activity.kind == ActivityKind::kKernel ? by_kernel_ : by_copy_;
    if (activity.row < rows.size()) rows[activity.row].push_back(i);
    if (activity.call < graph.outer.size()) launched_[graph.outer[activity.call]].push_back(i);
  }
  for (std::uint32_t i = 0; i < graph.calls.size(); ++i)
    if (graph.calls[i].begin != kNone && timeline.calls[i].op != kNone)
      of_op_[timeline.calls[i].op].push_back(i);
}

std::vector<std::uint32_t> Applier::find(const Affected& work) const {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t index : work.activities)
    if (index < graph_.activities.size() && graph_.activities[index].begin != kNone)
      out.push_back(index);
  const auto add = [&](const auto& rows, const auto& by_row) {
    for (const std::uint32_t row : rows)
      if (row < by_row.size()) out.insert(out.end(), by_row[row].begin(), by_row[row].end());
  };
  add(work.kernel_rows, by_kernel_);
  add(work.copy_rows, by_copy_);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Applied Applier::apply(const Change& change, Scenario scenario, Weights base) const {
  EditApplier applier(*this, scenario, std::move(base));
  for (const Edit& edit : change.edits) std::visit(applier, edit);
  return applier.take();
}

}  // namespace purlin::analyze
