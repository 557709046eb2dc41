// SPDX-License-Identifier: Apache-2.0
// What the timeline shows: the device waits for input, for launches, for the host that waits for
// it, for copies, for communication.
#include "analyze/advise/rules.h"
#include "analyze/advise/rules/graph_capture.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/slow_op.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/host.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace purlin::analyze {
namespace {

// Shares of the unit below which a cause is not worth a rule. Input and communication: those of
// PyTorch's TensorBoard plugin.
constexpr double kStarved = 0.05, kSynchronised = 0.02, kLaunchBound = 0.05, kExposedCopies = 0.05,
                 kExposedCommunication = 0.10;
// Of the starvation a PyTorch ResNet-50 had without workers, what four of them took away, twice
// measured: 0.34 and 0.62 (pytorch/kineto's samples).
constexpr Interval3 kFed = {0.3, 0.6, 1.0};
constexpr Interval3 kMapped = {0.5, 0.9, 1.0};  // of copies between a host and itself
constexpr double kLeastHost = 0.1;              // of the host's time that any program keeps
// Of a slow operator's own time; it is slow in this share of the steps, and most of the late time.
constexpr Interval3 kSlowOp = {0.3, 0.8, 1};
constexpr double kOftenSlow = 0.5, kMainOp = 0.3;
constexpr Interval3 kOverlapped = {0.3, 0.7, 1.0}, kHalf = {0, 0.5, 1};
// Between two nodes of a graph, and to launch one (H200: 0.4 us and 5 to 10 us); the least first.
constexpr Interval3 kNodeGap = {300, 500, 1'000}, kGraphLaunch = {5'000, 10'000, 20'000};
// Of a copy from pinned memory: PCIe 3, 4 and 5 at 16 lanes, as measured with pinned memory.
constexpr Interval3 kPinned = {12e9, 24e9, 48e9}, kPinnedHopper = {24e9, 45e9, 56e9};
// A gap that counts as a separate stall: share of the idle time for the host, and ns.
constexpr double kStallShare = 0.2, kLongStall = 1e6, kFewSteps = 5;
constexpr double kLargeCopy = 256 * 1024, kSmallCopy = 64;

class HostRules {
 public:
  HostRules(const Facts& facts, Advice& advice)
      : facts_(facts),
        advice_(advice),
        unit_(facts.unit),
        share_(1 / (unit_.count * unit_.devices)),
        length_(unit_.recorded_ns - unit_.profiler_ns) {}

  void run() {
    if (facts_.timeline->devices.empty() || length_ <= 0) return;
    starvation();
    stalls();
    slow_op();
    graphs();
    host_work();
    syncs();
    if (facts_.platform.cpu) {
      mapped();
    } else {
      copies();
      fills();
      pinned();
    }
    communication();
  }

 private:
  double idle(IdleCause cause) const {
    double sum = 0;
    for (const DeviceTime& device : facts_.timeline->devices)
      sum += static_cast<double>(device.idle_ns[static_cast<std::size_t>(cause)]);
    return sum * share_;
  }
  double over_devices(std::int64_t DeviceTime::*part) const {
    double sum = 0;
    for (const DeviceTime& device : facts_.timeline->devices)
      sum += static_cast<double>(device.*part);
    return sum * share_;
  }
  std::string part(double ns) const {
    return of_total(ns, length_) + (unit_.kind == "step" ? " a step" : "");
  }
  const Gap* longest(IdleCause cause) const {
    for (const Gap& gap : facts_.timeline->gaps)
      if (gap.cause == cause && !gap.evidence.empty()) return &gap;
    return nullptr;
  }
  void add_longest(IdleCause cause, Intervention& out) const {
    if (const Gap* gap = longest(cause); gap != nullptr)
      out.evidence.push_back(
          {"longest such gap",
           fmt::format("{}{}: {}", short_ns(static_cast<double>(gap->duration_ns)),
                       gap->after.empty() ? "" : " before " + clean(gap->after),
                       clean(gap->evidence)),
           "timeline"});
  }
  void add(Intervention out, Interval3 saved, double most, std::string confidence) {
    out.saved_ns = bounded(saved, most);
    out.confidence = std::move(confidence);
    advice_.interventions.push_back(std::move(out));
  }

  void starvation() {
    const double starved = idle(IdleCause::kDataStarvation);
    if (starved < kStarved * length_) return;
    Intervention out = from_remedy("feed_the_device");
    out.evidence.push_back(
        {"device idle while the program waits for input", part(starved), "timeline"});
    add_longest(IdleCause::kDataStarvation, out);
    out.assumptions.emplace_back(
        "the host has spare cores; at most the whole wait can be hidden: two measured cases hid "
        "34% and 62%");
    const HostFacts host(facts_.profile->timeline);
    for (std::uint32_t process = 0; process < facts_.profile->processes.size(); ++process) {
      edit::ScaleHost edit{{1 - kFed.low, 1 - kFed.mid, 1 - kFed.high}, {}, process};
      for (const NamedInterval& one : host.process(process).loading)
        edit.when.push_back(one.interval);
      if (!edit.when.empty()) out.change.edits.emplace_back(std::move(edit));
    }
    add(std::move(out), kFed * starved, starved, "B");
  }

  // A few long gaps are no matter of launching: each has its own cause, named in its evidence.
  void stalls() {
    if (unit_.kind == "step" && unit_.count < kFewSteps) return;
    const double least = std::max(kLongStall, kStallShare * unit_.host_ns / share_);
    Intervention out = from_remedy("remove_stalls");
    double count = 0, stalled = 0;
    for (const Gap& gap : facts_.timeline->gaps) {
      const auto ns = static_cast<double>(gap.duration_ns);
      if (gap.cause != IdleCause::kHostLaunch || ns < least || gap.evidence.empty()) continue;
      ++count;
      stalled += ns * share_;
      out.evidence.push_back(
          {"the device idles once for",
           fmt::format("{}{}: {}", short_ns(ns),
                       gap.after.empty() ? "" : " before " + clean(gap.after), clean(gap.evidence)),
           "timeline"});
    }
    if (count == 0 || stalled < kLaunchBound * length_) return;
    stalled_ns_ = std::min(stalled, unit_.host_ns);
    out.assumptions.emplace_back(
        "the host's work there may be needed once, so the low estimate is 0");
    add(std::move(out), kHalf * stalled_ns_, stalled_ns_, "B");
  }

  // One operator, again and again, and not the number of launches.
  void slow_op() {
    const std::optional<SlowOp> slow =
        find_slow_op(facts_.profile->timeline, std::max(3.0, kOftenSlow * unit_.count));
    if (!slow) return;
    const double late = unit_.host_ns - stalled_ns_, own = slow->own_ns / unit_.count;
    const double gap = std::min(late, own);
    if (gap < kLaunchBound * length_ || own < kMainOp * late) return;
    Intervention out = from_remedy("slow_op");
    out.how = how_of(slow->name);
    out.evidence.push_back(
        {"operator whose own work on the host takes at least 1 ms",
         fmt::format("{}, {} of {}", clean(slow->name), format_count(slow->instances),
                     counted(slow->instances + slow->others, "time")),
         "timeline"});
    out.evidence.push_back(
        {"its own time, without inner operators and API calls", part(own), "timeline"});
    add_longest(IdleCause::kHostLaunch, out);
    out.assumptions.emplace_back(
        "the work is not needed again for each step: a plan or an "
        "algorithm for a shape; the low estimate keeps 70% of it");
    stalled_ns_ += gap;
    out.change.edits.emplace_back(edit::ScaleHost{
        {1 - kSlowOp.low, 1 - kSlowOp.mid, 1 - kSlowOp.high}, slow->when, slow->process});
    add(std::move(out), kSlowOp * gap, gap, "C");
  }

  static std::vector<std::string> how_of(const std::string& op) {
    if (op.find("cudnn_attention") != std::string::npos)
      return {
          "PyTorch: torch.backends.cuda.enable_cudnn_sdp(False) selects FlashAttention, which "
          "needs no plan",
          "or keep the shapes constant: a static cache of keys and values, padded lengths"};
    if (op.find("conv") != std::string::npos)
      return {
          "cuDNN searches an algorithm for each new shape: keep the shapes constant, or "
          "torch.backends.cudnn.benchmark = False"};
    return from_remedy("slow_op").how;
  }

  // The ranks of one program run one sequence on many devices. One graph in its code serves all.
  struct AlikeSequences {
    RepeatedSequence all;  // sums over the devices
    std::set<int> devices;
    std::vector<const RepeatedSequence*> each;
  };
  std::vector<AlikeSequences> sequences_by_kernels() const {
    std::vector<AlikeSequences> out;
    for (const RepeatedSequence& sequence : facts_.timeline->sequences) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const AlikeSequences& known) {
        return known.all.length == sequence.length && known.all.kernels == sequence.kernels &&
               !known.devices.contains(sequence.device);
      });
      if (same == out.end()) {
        out.push_back({sequence, {sequence.device}, {&sequence}});
        continue;
      }
      same->devices.insert(sequence.device);
      same->each.push_back(&sequence);
      same->all.repeats += sequence.repeats;
      same->all.total_ns += sequence.total_ns;
      same->all.busy_ns += sequence.busy_ns;
      if (same->all.hindrance.empty()) same->all.hindrance = sequence.hindrance;
    }
    return out;
  }

  // Adds what the graphs hold; returns the obstacle, "" without one. Nothing is added where a graph
  // would hold one launch, or collectives only.
  std::string captures(const AlikeSequences& alike, edit::LaunchAsGraph& edit) const {
    if (!alike.all.hindrance.empty()) return alike.all.hindrance;
    for (const RepeatedSequence* sequence : alike.each) {
      GraphCapture found = find_capture(facts_, *sequence);
      if (!found.hindrance.empty()) return found.hindrance;
      if (!found.worth_it) continue;
      for (WorkGroup& group : found.groups) edit.groups.push_back(std::move(group));
    }
    edit.node_gap_ns = {kNodeGap.high, kNodeGap.mid, kNodeGap.low};
    edit.launch_ns = {kGraphLaunch.high, kGraphLaunch.mid, kGraphLaunch.low};
    return "";
  }

  // Time that the host takes to launch a repeated sequence, which a graph would not take.
  void graphs() {
    const double host = unit_.host_ns - stalled_ns_;
    double claimed = 0;
    for (const AlikeSequences& alike : sequences_by_kernels()) {
      const RepeatedSequence& sequence = alike.all;
      const std::string what =
          fmt::format("{} x {} on {}",
                      sequence.length == 1 ? std::string("1 kernel")
                                           : fmt::format("{} kernels and memcpys", sequence.length),
                      sequence.repeats,
                      alike.devices.size() > 1 ? counted(alike.devices.size(), "device")
                                               : fmt::format("stream {}", sequence.stream));
      const double gap =
          std::min(static_cast<double>(sequence.total_ns - sequence.busy_ns) * share_,
                   std::max(0.0, host - claimed));
      if (gap < kLaunchBound * length_) continue;
      edit::LaunchAsGraph edit;
      const std::string hindrance = captures(alike, edit);
      if (!hindrance.empty()) {
        hindrance_ = hindrance;
        advice_.no_gain.push_back(
            {"a CUDA graph of " + what,
             {},
             std::nullopt,
             "it cannot be captured in its present form: " + clean(hindrance)});
        continue;
      }
      if (edit.groups.empty()) continue;
      claimed += gap;
      const double nodes = static_cast<double>(sequence.length) * sequence.repeats * share_;
      const double rounds = sequence.repeats * share_;
      const double launches = unit_.kind == "step" ? std::min(1.0, rounds) : rounds;
      const Interval3 recorder = unit_.recorder_ns * (host > 0 ? gap / host : 0);
      const Interval3 saved = {
          gap - recorder.high - nodes * kNodeGap.high - launches * kGraphLaunch.high,
          gap - recorder.mid - nodes * kNodeGap.mid - launches * kGraphLaunch.mid,
          gap - recorder.low - nodes * kNodeGap.low - launches * kGraphLaunch.low};
      Intervention out = from_remedy("cuda_graphs");
      out.kernels = distinct(sequence.kernels, out.kernels_left_out);
      out.evidence.push_back({"repeated launch sequence", what, "timeline"});
      out.evidence.push_back({"device idle in it while the host launches", part(gap), "timeline"});
      const LaunchStats& launch = facts_.timeline->launches;
      if (launch.launches > 0)
        out.evidence.push_back(
            {"kernels shorter than the call that launched them",
             fmt::format("{} of {}, a call takes {}", format_count(launch.tiny),
                         format_count(launch.launches), short_ns(launch.call_p50_ns)),
             "timeline"});
      out.evidence.push_back(
          {"no obstacle to a capture",
           "no wait, no allocation, no memcpy to the host, equal launch shapes in each round",
           "timeline"});
      out.assumptions.push_back(
          fmt::format("the recorder added {} to {} of that; a graph node takes {:.1f} to {:.1f} "
                      "us, a graph launch {:.0f} to {:.0f} us",
                      short_ns(recorder.low), short_ns(recorder.high), kNodeGap.low / 1e3,
                      kNodeGap.high / 1e3, kGraphLaunch.low / 1e3, kGraphLaunch.high / 1e3));
      if (unit_.kind == "step")
        out.assumptions.emplace_back("the whole step is captured as one graph");
      out.change.edits.emplace_back(std::move(edit));
      add(std::move(out), saved, gap, "B");
    }
    graphed_ns_ = claimed;
  }

  static std::vector<std::string> distinct(const std::vector<std::string>& names, double& left) {
    constexpr std::size_t kShown = 6;
    std::vector<std::string> out;
    for (const std::string& name : names) {
      if (std::find(out.begin(), out.end(), name) != out.end()) continue;
      if (out.size() == kShown) {
        left += 1;
        continue;
      }
      out.push_back(name);
    }
    return out;
  }

  // All of the host's time except that in which it loads input: another rule is for that.
  void scale_host_work(Change& change) const {
    const Timeline& timeline = facts_.profile->timeline;
    const HostFacts host(timeline);
    for (std::uint32_t process = 0; process < facts_.profile->processes.size(); ++process) {
      edit::ScaleHost edit{{1, 0.5, kLeastHost}, {}, process};
      std::int64_t begin = -kLatest;
      for (const NamedInterval& one : host.process(process).loading) {
        if (one.interval.begin > begin) edit.when.push_back({begin, one.interval.begin});
        begin = one.interval.end;
      }
      edit.when.push_back({begin, kLatest});
      change.edits.emplace_back(std::move(edit));
    }
  }

  void host_work() {
    const double gap = unit_.host_ns - stalled_ns_ - graphed_ns_;
    if (gap < kLaunchBound * length_) return;
    const Interval3 recorder = unit_.recorder_ns * (gap / unit_.host_ns);
    Intervention out = from_remedy("cut_host_work");
    out.evidence.push_back({"device idle because the host launches late", part(gap), "timeline"});
    add_longest(IdleCause::kHostLaunch, out);
    if (!hindrance_.empty())
      out.how.push_back("CUDA: a repeated sequence could be a CUDA graph without: " +
                        clean(hindrance_));
    out.assumptions.push_back(fmt::format(
        "half of the host's work can be removed; the recorder slowed the host by {} to {}",
        short_ns(recorder.low), short_ns(recorder.high)));
    scale_host_work(out.change);
    add(std::move(out), {0, 0.5 * (gap - recorder.mid), gap - recorder.low}, gap, "C");
  }

  void syncs() {
    const double waited = idle(IdleCause::kSynchronization);
    const Timeline& timeline = facts_.profile->timeline;
    if (waited < kSynchronised * length_) return;
    std::map<std::uint32_t, double> by_name;
    edit::RemoveCalls edit{{}, kHalf};
    for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
      const Call& call = timeline.calls[i];
      if (!waits_for_device(timeline, call)) continue;
      edit.calls.push_back(i);
      if (call.name < timeline.names.size()) by_name[call.name] += 1;
    }
    std::vector<std::pair<double, std::uint32_t>> most;
    for (const auto& [name, count] : by_name) most.emplace_back(-count, name);
    std::sort(most.begin(), most.end());
    Intervention out = from_remedy("remove_syncs");
    out.evidence.push_back(
        {"device idle because the host had waited for it", part(waited), "timeline"});
    for (std::size_t i = 0; i < std::min<std::size_t>(3, most.size()); ++i)
      out.evidence.push_back({"calls that wait",
                              fmt::format("{} {}", clean(timeline.names[most[i].second]),
                                          counted(-most[i].first, "time")),
                              "timeline"});
    double small = 0;
    for (const Activity& activity : timeline.activities)
      if (activity.kind == ActivityKind::kCopy && activity.bytes > 0 &&
          static_cast<double>(activity.bytes) <= kSmallCopy &&
          activity.row < facts_.profile->copies.size() &&
          copy_direction(facts_.profile->copies[activity.row].kind) == "d2h")
        small += 1;
    if (small > 0)
      out.evidence.push_back(
          {"memcpys to the host of a few bytes, such as .item()", format_count(small), "timeline"});
    add_longest(IdleCause::kSynchronization, out);
    out.assumptions.emplace_back("the wait may be a real dependency, so the low estimate is 0");
    if (!edit.calls.empty()) out.change.edits.emplace_back(std::move(edit));
    add(std::move(out), kHalf * waited, waited, "C");
  }

  // The share of memcpy and memset time that some kinds take.
  template <class Fits>
  double part_of_copies(const Fits& fits) const {
    double all = 0, some = 0;
    for (const CopyRow& copy : facts_.profile->copies) {
      all += copy.duration.total_ns();
      if (fits(copy.kind)) some += copy.duration.total_ns();
    }
    return all > 0 ? some / all : 0;
  }
  double host_part() const { return part_of_copies(is_host_copy); }
  // Over a link, which works while the device computes.
  static bool is_link_copy(const std::string& kind) { return is_host_copy(kind) || kind == "p2p"; }

  template <class Fits>
  std::vector<std::uint32_t> copy_rows(const Fits& fits) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < facts_.profile->copies.size(); ++i)
      if (fits(facts_.profile->copies[i].kind)) out.push_back(i);
    return out;
  }

  void copies() {
    const double all = over_devices(&DeviceTime::copy_ns);
    const double hidden = over_devices(&DeviceTime::compute_and_copy_ns);
    const double exposed =
        over_devices(&DeviceTime::exposed_copy_ns) * part_of_copies(is_link_copy);
    if (all <= 0 || exposed < kExposedCopies * length_ || hidden >= 0.5 * all) return;
    Intervention out = from_remedy("overlap_copies");
    const bool peers = part_of_copies([](const std::string& kind) { return kind == "p2p"; }) > 0;
    out.evidence.push_back({peers ? "copies between devices, or to the host, that nothing hides"
                                  : "copies between host and device that nothing hides",
                            part(exposed), "timeline"});
    out.evidence.push_back({"copies during computation",
                            fmt::format("{:.0f}% of {}", 100 * hidden / all, short_ns(all)),
                            "timeline"});
    const double compute = over_devices(&DeviceTime::compute_ns);
    const double most = std::min(exposed, std::max(0.0, compute - hidden));
    out.assumptions.push_back(
        fmt::format("the {} of computation without a concurrent copy can hide one; data of a step "
                    "can be copied during the previous step",
                    short_ns(compute - hidden)));
    out.change.edits.emplace_back(edit::Overlap{Affected::of_copies(copy_rows(is_link_copy)),
                                                kOverlapped * (most / exposed)});
    add(std::move(out), kOverlapped * most, most, "B");
  }

  void fills() {
    const auto is_fill = [](const std::string& kind) { return kind == "memset" || kind == "fill"; };
    const double exposed = over_devices(&DeviceTime::exposed_copy_ns) * part_of_copies(is_fill);
    if (exposed < kExposedCopies * length_) return;
    Intervention out = from_remedy("remove_fills");
    out.evidence.push_back({"fills of memory that nothing hides", part(exposed), "timeline"});
    out.assumptions.emplace_back(
        "zeros may be what the program needs, so the low estimate is 0, and the middle half");
    out.change.edits.emplace_back(edit::Remove{Affected::of_copies(copy_rows(is_fill)), kHalf});
    add(std::move(out), kHalf * exposed, exposed, "C");
  }

  void pinned() {
    const double exposed = over_devices(&DeviceTime::exposed_copy_ns) * host_part();
    double ns = 0, bytes = 0, count = 0;
    bool recorded = true;
    const auto slow = [](const std::string& kind) {
      return copy_direction(kind) == "h2d" && copy_memory(kind) != "pinned";
    };
    for (const CopyRow& copy : facts_.profile->copies)
      if (slow(copy.kind)) {
        recorded = recorded && copy_memory(copy.kind) == "pageable";
        ns += copy.duration.total_ns();
        bytes += copy.bytes;
        count += copy.duration.count();
      }
    if (ns <= 0 || count <= 0 || bytes / count < kLargeCopy) return;
    const double rate = bytes / ns * 1e9;
    const Interval3 pinned_rate = pinned_bandwidth();
    if (rate >= pinned_rate.low) return;
    const auto saved = [&](double pinned) { return exposed * std::max(0.0, 1 - rate / pinned); };
    Intervention out = from_remedy("pin_memory");
    out.evidence.push_back(
        {"copies to the device",
         fmt::format("{} in {}: {}", format_bytes(bytes), short_ns(ns), si(rate, "B/s")),
         "timeline"});
    out.evidence.push_back({"part that nothing hides", part(exposed), "timeline"});
    if (recorded) out.evidence.push_back({"memory of the host", "pageable", "timeline"});
    out.assumptions.push_back(
        fmt::format("copies from pinned memory reach {:.0f}, {:.0f} and {:.0f} GB/s (PCIe at 16 "
                    "lanes)",
                    pinned_rate.low / 1e9, pinned_rate.mid / 1e9, pinned_rate.high / 1e9) +
        (recorded ? "" : "; the profile does not record whether the memory is pinned"));
    out.change.edits.emplace_back(
        edit::Scale{Affected::of_copies(copy_rows(slow)),
                    {rate / pinned_rate.low, rate / pinned_rate.mid, rate / pinned_rate.high}});
    // The host copies from pageable memory itself: its calls get shorter as well.
    edit::ScaleHost calls{{rate / pinned_rate.low, rate / pinned_rate.mid, 0.1}, {}, kNone};
    for (const Activity& activity : facts_.profile->timeline.activities)
      if (activity.kind == ActivityKind::kCopy && activity.row < facts_.profile->copies.size() &&
          slow(facts_.profile->copies[activity.row].kind) &&
          activity.call < facts_.profile->timeline.calls.size()) {
        const Call& call = facts_.profile->timeline.calls[activity.call];
        if (calls.when.empty() || calls.when.back().end <= begin_of(call))
          calls.when.push_back({begin_of(call), end_of(call)});
      }
    if (!calls.when.empty()) out.change.edits.emplace_back(std::move(calls));
    add(std::move(out), {saved(pinned_rate.low), saved(pinned_rate.mid), saved(pinned_rate.high)},
        exposed, "C");
  }

  // A processor as device has the host's memory: a copy between them moves nothing further away.
  void mapped() {
    const double exposed = over_devices(&DeviceTime::exposed_copy_ns) * host_part();
    if (exposed < kExposedCopies * length_) return;
    Intervention out = from_remedy("map_buffers");
    out.evidence.push_back(
        {"copies between host and device that nothing hides", part(exposed), "timeline"});
    out.evidence.push_back({"device", "a processor: its memory is the host's", "timeline"});
    out.assumptions.emplace_back("a mapped buffer is not copied; at worst one copy of two remains");
    out.change.edits.emplace_back(
        edit::Scale{Affected::of_copies(copy_rows(is_host_copy)),
                    {1 - kMapped.low, 1 - kMapped.mid, 1 - kMapped.high}});
    add(std::move(out), kMapped * exposed, exposed, "C");
  }

  // PCIe 5 from Hopper on, 4 from Ampere on.
  Interval3 pinned_bandwidth() const {
    int newest = 0;
    for (const DeviceInfo& device : facts_.profile->environment.devices)
      newest = std::max(newest, architecture_number(device.arch));
    return newest >= 90 ? kPinnedHopper : kPinned;
  }

  void communication() {
    const double exposed = over_devices(&DeviceTime::exposed_communication_ns);
    if (exposed < kExposedCommunication * length_) return;
    const double all = over_devices(&DeviceTime::communication_ns);
    Intervention out = from_remedy("overlap_communication");
    out.evidence.push_back({"communication that no computation hides", part(exposed), "timeline"});
    out.evidence.push_back(
        {"of all communication", fmt::format("{:.0f}%", 100 * exposed / all), "timeline"});
    for (const RankStats& rank : facts_.timeline->ranks)
      if (rank.collectives > 0 && rank.last > 0.5 * rank.collectives)
        out.evidence.push_back(
            {"a device keeps the others waiting",
             fmt::format("device {} is last in {} of {}", rank.device, format_count(rank.last),
                         counted(rank.collectives, "collective")),
             "timeline"});
    out.assumptions.emplace_back(
        "part of it is waiting for the slowest rank, which overlap does not shorten");
    std::vector<std::uint32_t> rows;
    const std::vector<bool> communicates = communication_rows(*facts_.profile);
    for (std::uint32_t i = 0; i < communicates.size(); ++i)
      if (communicates[i]) rows.push_back(i);
    out.change.edits.emplace_back(edit::Overlap{Affected::of_rows(std::move(rows)), kHalf});
    add(std::move(out), kHalf * exposed, exposed, "C");
  }

  const Facts& facts_;
  Advice& advice_;
  const Unit& unit_;
  double share_, length_;
  double stalled_ns_ = 0, graphed_ns_ = 0;
  std::string hindrance_;  // of a sequence that would be worth a graph
};

}  // namespace

void add_host_rules(const Facts& facts, Advice& advice) { HostRules(facts, advice).run(); }

}  // namespace purlin::analyze
