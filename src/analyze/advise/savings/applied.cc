// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/savings/applied.h"

#include "analyze/advise/facts.h"
#include "analyze/advise/savings/savings.h"
#include "analyze/phase/slice.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::analyze {
namespace {

constexpr std::size_t kRowsShown = 15, kPathShown = 6;

const Intervention* find_applied(const Advice& advice, std::string_view which) {
  if (const auto number = parse_int(which)) {
    const auto index = *number - 1;
    if (index < 0 || index >= static_cast<std::int64_t>(advice.interventions.size()))
      return nullptr;
    return &advice.interventions[static_cast<std::size_t>(index)];
  }
  for (const Intervention& one : advice.interventions)
    if (one.id == which) return &one;
  return nullptr;
}

std::string ids_of(const Advice& advice) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < advice.interventions.size(); ++i)
    ids.push_back(fmt::format("{} {}", i + 1, advice.interventions[i].id));
  return ids.empty() ? "there are none" : "there are " + join(ids, ", ");
}

// Time of each kernel and kind of copy, and the time in which a device works.
class SideReader {
 public:
  SideReader(const Facts& facts, double steps) : facts_(facts), steps_(steps) {}

  AppliedSide read(const Replayed& replayed, const Profile& profile, bool after) {
    AppliedSide side;
    side.step_ns = replayed.step_ns;
    side.critical_path = name_critical_path(facts_, replayed);
    side.calls = static_cast<double>(profile.timeline.calls.size()) / steps_;
    std::map<int, std::int64_t> until;
    std::int64_t busy = 0;
    for (const Activity& activity : profile.timeline.activities) {
      add(activity, after);
      const auto [place, first] = until.try_emplace(activity.device, begin_of(activity));
      busy +=
          std::max<std::int64_t>(0, end_of(activity) - std::max(place->second, begin_of(activity)));
      place->second = std::max(place->second, end_of(activity));
    }
    const double devices = std::max<double>(1, static_cast<double>(until.size()));
    side.busy_ns = static_cast<double>(busy) / steps_ / devices;
    return side;
  }

  std::vector<AppliedWork> work() const {
    std::vector<AppliedWork> out;
    for (const auto& [name, one] : work_) out.push_back(one);
    std::stable_sort(out.begin(), out.end(), [](const AppliedWork& a, const AppliedWork& b) {
      return std::abs(a.before_ns - a.after_ns) > std::abs(b.before_ns - b.after_ns);
    });
    return out;
  }

 private:
  void add(const Activity& activity, bool after) {
    std::string name;
    if (activity.kind != ActivityKind::kKernel) {
      if (activity.row < facts_.profile->copies.size())
        name = facts_.profile->copies[activity.row].kind;
    } else if (activity.row < facts_.row_of.size()) {
      name = facts_.rows.kernels[facts_.row_of[activity.row]].label;
    }
    AppliedWork& one = work_[name];
    one.name = name;
    (after ? one.after_ns : one.before_ns) += static_cast<double>(activity.duration_ns) / steps_;
    (after ? one.after_count : one.before_count) += 1 / steps_;
  }

  const Facts& facts_;
  double steps_;
  std::map<std::string, AppliedWork> work_;
};

std::vector<GoneCalls> gone_calls(const Timeline& timeline, const std::vector<bool>& gone,
                                  double steps) {
  std::map<std::string, double> counts;
  const auto name = [&](std::uint32_t index) {
    return index < timeline.names.size() ? timeline.names[index] : std::string();
  };
  for (std::size_t i = 0; i < std::min(gone.size(), timeline.calls.size()); ++i) {
    if (!gone[i]) continue;
    const Call& call = timeline.calls[i];
    const std::string own = name(call.name);
    counts[call.op < timeline.ops.size() ? name(timeline.ops[call.op].name) + " (" + own + ")"
                                         : own] += 1 / steps;
  }
  std::vector<GoneCalls> out;
  for (const auto& [text, count] : counts) out.push_back({text, count});
  std::stable_sort(out.begin(), out.end(),
                   [](const GoneCalls& a, const GoneCalls& b) { return a.count > b.count; });
  return out;
}

Json side_json(const AppliedSide& side) {
  Json path = Json::array();
  for (const CriticalWork& one : side.critical_path) path.push(to_json(one));
  return Json::object({{"step_ns", static_cast<std::int64_t>(std::llround(side.step_ns))},
                       {"busy_ns", static_cast<std::int64_t>(std::llround(side.busy_ns))},
                       {"calls", side.calls},
                       {"critical_path", std::move(path)}});
}

}  // namespace

Result<AppliedChange> apply_intervention(const Profile& whole, const TimelineAnalysis& timeline,
                                         const std::vector<Ceilings>& measured,
                                         const Advice& advice, std::string_view which) {
  const Intervention* one = find_applied(advice, which);
  if (one == nullptr)
    return error(Code::kNotFound, "--apply '{}': no such intervention; {}", which, ids_of(advice));
  const std::optional<Profile> cut = cut_to(whole, timeline);
  const Profile& profile = cut ? *cut : whole;
  const Facts facts = gather(profile, timeline, measured, {});
  if (facts.replayer == nullptr || one->change.empty())
    return error(Code::kInvalid, "--apply '{}': {}", which,
                 facts.replayer == nullptr
                     ? "the profile has too few calls of the host for a replay; record a trace "
                       "with them"
                     : "this intervention has no change of the timeline to replay");
  const Replayer& replayer = *facts.replayer;
  const Replayed before = replayer.before(), after = replayer.after(one->change);
  AppliedChange out;
  out.intervention = *one;
  out.steps = replayer.quality().steps;
  out.timeline = replayer.timeline_of(after);
  SideReader reader(facts, std::max(1.0, out.steps));
  out.before = reader.read(before, replayer.timeline_of(before), false);
  out.after = reader.read(after, out.timeline, true);
  out.work = reader.work();
  out.gone = gone_calls(profile.timeline, after.applied.gone_calls, std::max(1.0, out.steps));
  return out;
}

Json to_json(const AppliedChange& applied, const Advice& advice) {
  Json out = new_document("purlin.applied/1", advice.environment);
  out.set("profile", Json::object({{"id", advice.profile_id},
                                   {"files", Json::array_of(advice.files)},
                                   {"partial", advice.partial}}));
  out.set("intervention", applied.intervention.id);
  out.set("kernels", Json::array_of(applied.intervention.kernels));
  out.set("steps", static_cast<std::int64_t>(applied.steps));
  out.set("before", side_json(applied.before));
  out.set("after", side_json(applied.after));
  Json work = Json::array();
  for (const AppliedWork& one : applied.work)
    work.push(Json::object({{"name", one.name},
                            {"before_ns", static_cast<std::int64_t>(std::llround(one.before_ns))},
                            {"after_ns", static_cast<std::int64_t>(std::llround(one.after_ns))},
                            {"before_count", one.before_count},
                            {"after_count", one.after_count}}));
  out.set("work", std::move(work));
  Json gone = Json::array();
  for (const GoneCalls& one : applied.gone)
    gone.push(Json::object({{"name", one.name}, {"count", one.count}}));
  out.set("gone", std::move(gone));
  return out;
}

std::string render_applied(const AppliedChange& applied, const Terminal& terminal) {
  const AppliedSide &before = applied.before, &after = applied.after;
  const auto change = [](double a, double b) {
    return a > 0 ? fmt::format("{:+.1f}%", 100 * (b / a - 1)) : std::string("-");
  };
  std::string out = painted(Style::kBold,
                            fmt::format(">> {}: replayed over {}, without the recorder",
                                        applied.intervention.title, counted(applied.steps, "step")),
                            "", terminal);
  Table sides;
  sides.column("one step");
  for (const char* name : {"before", "after", "change"}) sides.column(name, Table::Align::kRight);
  const auto row = [&](const char* name, double a, double b) {
    sides.row({name, short_ns(a), short_ns(b), change(a, b)});
  };
  row("step", before.step_ns, after.step_ns);
  row("devices work", before.busy_ns, after.busy_ns);
  row("devices idle", std::max(0.0, before.step_ns - before.busy_ns),
      std::max(0.0, after.step_ns - after.busy_ns));
  sides.row({"calls of the host", fmt::format("{:.0f}", before.calls),
             fmt::format("{:.0f}", after.calls), change(before.calls, after.calls)});
  out += "\n" + sides.render(terminal, "  ");
  Table work;
  work.column("before", Table::Align::kRight);
  work.column("after", Table::Align::kRight);
  work.column("work");
  for (std::size_t i = 0; i < std::min(kRowsShown, applied.work.size()); ++i) {
    const AppliedWork& one = applied.work[i];
    work.row({fmt::format("{} ({:.0f})", short_ns(one.before_ns), one.before_count),
              fmt::format("{} ({:.0f})", short_ns(one.after_ns), one.after_count),
              clean(elide_middle(one.name, 50))});
  }
  out += "\n" + work.render(terminal, "  ");
  if (!applied.gone.empty()) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(kPathShown, applied.gone.size()); ++i)
      parts.push_back(fmt::format("{:.0f} {}", applied.gone[i].count,
                                  clean(elide_middle(applied.gone[i].name, 60))));
    const std::size_t more = applied.gone.size() - parts.size();
    out += "\n" + painted(Style::kPlain,
                          "host calls that go along, in a step: " + join(parts, ", ") +
                              (more > 0 ? fmt::format(" and {} more", more) : ""),
                          "", terminal);
  }
  for (const auto& [name, side] : {std::pair{"before", &before}, std::pair{"after", &after}}) {
    out += "\n" + terminal.paint(Style::kBold, fmt::format("critical path {}", name)) + "\n";
    for (std::size_t i = 0; i < std::min(kPathShown, side->critical_path.size()); ++i) {
      const CriticalWork& one = side->critical_path[i];
      out += painted(Style::kPlain,
                     fmt::format("- {:.0f}%, {}: {} {}", 100 * one.share, short_ns(one.ns),
                                 one.kind, clean(elide_middle(one.name, 60))),
                     "  ", terminal);
    }
  }
  return out;
}

}  // namespace purlin::analyze
