// SPDX-License-Identifier: Apache-2.0
// Arrays that go to the host and come back: copies of one size in both directions, again and again.
#include "analyze/advise/rules/made.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr Remedy kRoundTrip = {
    "keep_on_device",
    "Keep the array on the device",
    Pillar::kMemoryEfficiency,
    Level::kAlgorithm,
    "host",
    "days",
    "low",
    "api-independent",
    "application",
    "do the host's work on the array on the device, in a kernel|"
    "PyTorch: torch ops in place of NumPy's|"
    "OpenMP, OpenACC: a data region around the loop|"
    "CUDA: one cudaMemcpy after the loop|HIP: one hipMemcpy after the loop|"
    "OpenCL: one read or map after the loop",
    "check that the host does not change the array between the copies"};
constexpr RemedyCase kSentAgain = {
    "Send the array once, before the loop", "hours",
    "PyTorch: .to(device) once, where the tensor is made; register_buffer in a module|"
    "CUDA: one cudaMemcpy before the loop|HIP: one hipMemcpy before the loop|"
    "OpenCL: one write before the loop|"
    "where the arrays differ: a side stream copies the next one during computation",
    "check that the host does not change the array between the copies"};

constexpr RemedyCase kMadeByHost = {
    "Make the array on the device, or once", "hours",
    "PyTorch: torch.rand(..., device=device), torch.randint, torch.arange: no NumPy, no CPU tensor|"
    "PyTorch: torch.tensor(value, device=device) once, before the loop; a Python number needs no "
    "tensor|"
    "CUDA: cuRAND, or a kernel that makes the values|HIP: hipRAND|OpenCL: a kernel that makes them",
    "another generator draws other numbers: compare the results over some hundred steps"};

constexpr std::uint64_t kLarge = 64 * 1024;  // bytes
constexpr std::size_t kFewestTrips = 3;

constexpr Interval3 kTripsGone = {0.5, 0.95, 1};  // of the copies
// Where the host does nothing with the array in between, each copy may carry other data.
constexpr Interval3 kPerhapsGone = {0, 0.95, 1};
constexpr double kLeastHandled = 0.05;  // of the unit, that the host works on the array
// What the device takes for the host's work on the array: of the host's time.
constexpr Interval3 kOnDevice = {0.7, 0.05, 0.01};

struct Trips {  // copies of one size between the host and one device
  Launches out, back;
  std::size_t count() const { return std::min(out.size(), back.size()); }
};

class RoundTrips {
 public:
  RoundTrips(Walk& walk, Advice& advice)
      : walk_(walk), facts_(walk.facts()), profile_(*facts_.profile), advice_(advice) {}

  void run() {
    find();
    Launches work = equal_sizes();
    double bytes = 0;
    for (const std::uint32_t one : work) bytes += static_cast<double>(walk_.at(one).bytes);
    const std::vector<Handled> handled = handled_by_host();
    const bool works = handled.size() >= kFewestTrips && handles(handled);
    if (!work.empty()) {
      add("copies to the host, and of as many bytes back to the device", std::move(work), bytes,
          handled);
    } else if (works) {
      for (const Handled& one : handled) {
        work.insert(work.end(), {one.out, one.back});
        bytes += static_cast<double>(walk_.at(one.out).bytes);
      }
      add("copies to the host, which works on the array and sends what it made", std::move(work),
          bytes, handled);
    } else {
      worked_on();
    }
    sent_again();
  }

 private:
  struct Handled {  // the host's work between a copy to it and the next copy from it
    std::uint32_t out = 0, back = 0;
    Interval when;
  };

  // Whether the host works on the arrays for a part of the time that counts.
  bool handles(const std::vector<Handled>& handled) const {
    double ns = 0;
    for (const Handled& one : handled) ns += static_cast<double>(one.when.length());
    return in_one_unit(facts_, ns) >= kLeastHandled * facts_.unit.baseline_ns.mid;
  }

  std::string_view way_of(std::uint32_t index) const {
    const Activity& activity = walk_.at(index);
    return activity.kind == ActivityKind::kCopy && activity.row < profile_.copies.size()
               ? copy_direction(profile_.copies[activity.row].kind)
               : std::string_view();
  }

  void find() {
    for (std::uint32_t i = 0; i < profile_.timeline.activities.size(); ++i) {
      const std::string_view way = way_of(i);
      if (way != "d2h" && way != "h2d") continue;
      copies_.push_back(i);
      const Activity& activity = walk_.at(i);
      if (activity.bytes < kLarge) continue;
      Trips& trips = by_size_[{activity.device, activity.bytes}];
      if (way == "d2h") trips.out.push_back(i);
      if (way == "h2d") sent_[{activity.device, activity.bytes}].push_back(i);
      // What comes to the device before anything went is its first input.
      if (way == "h2d" && !trips.out.empty()) trips.back.push_back(i);
    }
  }

  Launches equal_sizes() const {
    Launches work;
    for (const auto& [size, trips] : by_size_) {
      if (trips.count() < kFewestTrips) continue;
      for (const Launches* copies : {&trips.out, &trips.back})
        work.insert(work.end(), copies->begin(), copies->end());
    }
    std::sort(work.begin(), work.end(), [&](std::uint32_t a, std::uint32_t b) {
      return walk_.at(a).start_ns < walk_.at(b).start_ns;
    });
    return work;
  }

  // A large copy to the host, then ops of the host that launch nothing, then a copy back.
  std::vector<Handled> handled_by_host() const {
    const Timeline& timeline = profile_.timeline;
    std::vector<Handled> out;
    for (std::size_t i = 0; i + 1 < copies_.size(); ++i) {
      const Activity &there = walk_.at(copies_[i]), &back = walk_.at(copies_[i + 1]);
      if (way_of(copies_[i]) != "d2h" || way_of(copies_[i + 1]) != "h2d" || there.bytes < kLarge ||
          there.call >= timeline.calls.size() || back.call >= timeline.calls.size() ||
          walk_.step_of(there) != walk_.step_of(back))
        continue;
      const Call &from = timeline.calls[there.call], &to = timeline.calls[back.call];
      const Interval when{std::max(end_of(from), end_of(there)), begin_of(to)};
      if (from.process != to.process || when.begin >= when.end || launches_in(when, from.process))
        continue;
      out.push_back({copies_[i], copies_[i + 1], when});
    }
    return out;
  }
  bool launches_in(const Interval& when, std::uint32_t process) const {
    const auto& calls = profile_.timeline.calls;
    auto call = std::partition_point(calls.begin(), calls.end(),
                                     [&](const Call& one) { return one.start_ns < when.begin; });
    for (; call != calls.end() && call->start_ns < when.end; ++call)
      if (call->process == process &&
          (call->kind == CallKind::kLaunch || call->kind == CallKind::kGraphLaunch))
        return true;
    return false;
  }

  void add(const char* what, Launches work, double bytes, const std::vector<Handled>& handled) {
    Intervention out = from_remedy(kRoundTrip);
    const bool works = handles(handled);
    const Interval3 gone = works ? kTripsGone : kPerhapsGone;
    // The host's time before a copy back is its work on the array, which has its own factor.
    Launches back;
    for (const Handled& one : handled) back.push_back(one.back);
    Launches removed;
    for (const std::uint32_t one : work)
      if (std::find(back.begin(), back.end(), one) == back.end()) removed.push_back(one);
    remove_launches(walk_, removed, gone, out);
    out.saved_ns = out.saved_ns + gone * in_one_unit(facts_, walk_.duration(back));
    if (!back.empty()) {
      edit::RemoveCalls calls{{}, gone};
      for (const std::uint32_t one : back) calls.calls.push_back(walk_.at(one).call);
      out.change.edits.emplace_back(std::move(calls));
      out.change.edits.emplace_back(
          edit::Scale{Affected::of(back), {1 - gone.low, 1 - gone.mid, 1 - gone.high}});
    }
    // Around the copies the device waits for the host to handle the array.
    edit::ScaleHost host{kOnDevice, {}, kNone};
    double idle = 0;
    for (const Handled& one : handled) {
      if (!host.when.empty() && one.when.begin < host.when.back().end) continue;
      host.when.push_back(one.when);
      idle += static_cast<double>(one.when.length());
    }
    const double each = in_one_unit(facts_, idle);
    out.saved_ns =
        out.saved_ns + Interval3{1 - kOnDevice.low, 1 - kOnDevice.mid, 1 - kOnDevice.high} * each;
    if (!host.when.empty()) out.change.edits.emplace_back(std::move(host));
    out.evidence.push_back({what,
                            fmt::format("{}, {}", counted(static_cast<double>(work.size()), "copy"),
                                        format_bytes(bytes)),
                            "timeline"});
    out.evidence.push_back(
        {"time of these copies",
         of_total(in_one_unit(facts_, walk_.duration(work)), facts_.unit.baseline_ns.mid),
         "timeline"});
    if (!works) {
      out.assumptions.emplace_back(
          "the copies carry one array: where each carries other data, nothing is saved, and the "
          "low "
          "estimate is 0");
    } else {
      out.evidence.push_back({"the host works between the two",
                              of_total(each, facts_.unit.baseline_ns.mid), "timeline"});
      out.assumptions.emplace_back(
          "what the host does with the array can be done on the device in little time");
    }
    out.confidence = works ? "B" : "C";
    if (works) in_framework(out);
    advice_.interventions.push_back(std::move(out));
  }
  // A framework has the op of the device already.
  void in_framework(Intervention& out) const {
    if (!profile_.timeline.ops.empty()) out.effort = "hours";
  }

  // A large copy to the host, and a long time before the thread gives the device work again: the
  // host works on the array, and the device does not see the result.
  void worked_on() {
    const Timeline& timeline = profile_.timeline;
    const HostFacts host(profile_);
    Launches work;
    std::vector<Interval> when;
    double bytes = 0, ns = 0;
    for (const std::uint32_t one : copies_) {
      const Activity& copy = walk_.at(one);
      if (way_of(one) != "d2h" || copy.bytes < kLarge || copy.call >= timeline.calls.size())
        continue;
      const Call& call = timeline.calls[copy.call];
      const Interval after = idle_after(call, end_of(copy));
      const double length = after.length() - of_others(host.process(call.process), after);
      if (length < kLongWork) continue;
      if (!when.empty() && when.back().end > after.begin) continue;
      work.push_back(one);
      when.push_back(after);
      bytes += static_cast<double>(copy.bytes);
      ns += length;
    }
    // To read an array takes the host about as long as its copy; less is to free or to keep it.
    if (static_cast<double>(work.size()) < facts_.unit.count / 2 || ns < walk_.duration(work) ||
        in_one_unit(facts_, ns) < kLeastHandled * facts_.unit.baseline_ns.mid)
      return;
    Intervention out = from_remedy(kRoundTrip);
    remove_launches(walk_, work, kTripsGone, out);
    out.saved_ns =
        out.saved_ns + Interval3{1 - kOnDevice.low, 1 - kOnDevice.mid, 1 - kOnDevice.high} *
                           in_one_unit(facts_, ns);
    out.change.edits.emplace_back(edit::ScaleHost{kOnDevice, std::move(when), kNone});
    out.evidence.push_back(
        {"copies to the host, which gives the device no work for long after",
         fmt::format("{}{}, {}",
                     counted(in_one_unit(facts_, static_cast<double>(work.size())), "copy"),
                     a_unit(facts_), format_bytes(in_one_unit(facts_, bytes))),
         "timeline"});
    out.evidence.push_back({"time after them",
                            of_total(in_one_unit(facts_, ns), facts_.unit.baseline_ns.mid),
                            "timeline"});
    out.assumptions.emplace_back(
        "in that time the host works on the array, which the device can do in little time");
    out.confidence = "C";
    in_framework(out);
    advice_.interventions.push_back(std::move(out));
  }
  // From a copy's end until its thread gives the device work again, or waits for it in another op.
  Interval idle_after(const Call& copy, std::int64_t end) const {
    const auto& calls = profile_.timeline.calls;
    Interval out{std::max(end, end_of(copy)), 0};
    auto next = std::partition_point(calls.begin(), calls.end(),
                                     [&](const Call& one) { return one.start_ns < end_of(copy); });
    for (; next != calls.end(); ++next) {
      if (next->process != copy.process || next->thread != copy.thread ||
          next->kind == CallKind::kAllocation || next->kind == CallKind::kOther)
        continue;
      out.end = begin_of(*next);
      if (next->kind != CallKind::kSync || next->op == kNone || next->op != copy.op) return out;
      out.begin = std::max(out.begin, end_of(*next));
    }
    return {out.begin, out.begin};
  }
  // What the recording tool or the loading of input took of it.
  static double of_others(const HostWaits& host, const Interval& when) {
    double out = 0;
    for (const NamedIntervals* list : {&host.profiler, &host.loading})
      for (const NamedInterval& one : *list)
        out += static_cast<double>(std::max<std::int64_t>(0, clip(one.interval, when).length()));
    return out;
  }

  // Copies of one size to the device several times in each step: perhaps of one array.
  void sent_again() {
    if (facts_.unit.kind != "step") return;
    Launches work;
    double bytes = 0;
    for (const auto& [size, copies] : sent_) {
      if (!by_size_[size].out.empty()) continue;
      if (static_cast<double>(copies.size()) < kFewestTrips * facts_.unit.count) continue;
      work.insert(work.end(), copies.begin(), copies.end());
      bytes += static_cast<double>(size.second) * static_cast<double>(copies.size());
    }
    if (work.empty()) return;
    const double again = in_one_unit(facts_, walk_.duration(work));
    if (again < kLeastHandled * facts_.unit.baseline_ns.mid) return;
    Intervention out = from_remedy(kRoundTrip, kSentAgain);
    remove_launches(walk_, work, {0, 0.75, 1}, out);
    out.evidence.push_back(
        {"copies of one size to the device, several times in each step",
         fmt::format("{}{}, {}",
                     counted(in_one_unit(facts_, static_cast<double>(work.size())), "copy"),
                     a_unit(facts_), format_bytes(in_one_unit(facts_, bytes))),
         "timeline"});
    out.evidence.push_back(
        {"time of these copies", of_total(again, facts_.unit.baseline_ns.mid), "timeline"});
    out.assumptions.emplace_back(
        "they may carry different data, which was not recorded: the low estimate is 0");
    out.confidence = "D";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  const Facts& facts_;
  const Profile& profile_;
  Advice& advice_;
  Launches copies_;  // between host and device, in order
  std::map<std::pair<int, std::uint64_t>, Trips> by_size_;
  std::map<std::pair<int, std::uint64_t>, Launches> sent_;
};

}  // namespace

Intervention keep_what_is_made() { return from_remedy(kRoundTrip, kMadeByHost); }

const Rule kRoundTripRule = {{&kRoundTrip, 1},
                             [](Walk& walk, Advice& advice) { RoundTrips(walk, advice).run(); }};

}  // namespace purlin::analyze
