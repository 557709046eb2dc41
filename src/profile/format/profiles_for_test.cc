// SPDX-License-Identifier: Apache-2.0
#include "profile/format/profiles_for_test.h"

#include "base/random.h"

#include <fmt/core.h>

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;

class Maker {
 public:
  explicit Maker(const TestProfileShape& shape) : shape_(shape), rng_(shape.seed) {}

  Profile make() {
    head();
    for (std::size_t i = 0; i < shape_.kernels; ++i) profile_.kernels.push_back(kernel(i));
    for (std::size_t i = 0; i < shape_.copies; ++i) profile_.copies.push_back(copy(i));
    timeline();
    stalls();
    data_flow();
    return std::move(profile_);
  }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(rng_.below(bound)); }
  std::int64_t time() { return kEpoch + static_cast<std::int64_t>(rng_.below(1'000'000'000)); }
  std::int64_t duration() { return static_cast<std::int64_t>(rng_.below(100'000)); }
  std::uint32_t maybe(std::size_t size) { return size == 0 || below(3) == 0 ? kNone : below(size); }
  Sketch sketch() {
    Sketch sketch;
    const std::uint32_t samples = 1 + below(20);
    for (std::uint32_t i = 0; i < samples; ++i)
      sketch.add(static_cast<double>(1 + duration()), 1 + below(3));
    return sketch;
  }

  void head() {
    for (std::uint32_t i = 0; i < 3; ++i) {
      DeviceInfo device;
      device.id = fmt::format("cuda:{}", i);
      device.name = "NVIDIA H200";
      device.driver = fmt::format("580.{}", below(2));
      profile_.environment.devices.push_back(device);
    }
    profile_.environment.build = shape_.build;
    profile_.environment.host_cpu = fmt::format("cpu {}", below(3));
    profile_.command = fmt::format("train --seed {}", below(3));
    profile_.source = "kineto";
    profile_.wall_ns = duration();
    for (std::uint32_t i = 0; i < 2; ++i) {
      ProcessInfo process;
      process.pid = static_cast<std::int64_t>(shape_.seed * 10 + i);
      process.rank = static_cast<int>(i) - 1;
      process.complete = true;
      process.exit_seals = 3;
      profile_.processes.push_back(process);
    }
    profile_.coverage.launches_seen = 1 + below(100);
    profile_.coverage.notes.push_back({fmt::format("cause{}", below(4)), "text", 1, 2});
  }

  KernelRow kernel(std::size_t index) {
    KernelRow row;
    row.name = fmt::format("kernel{}", index / 2);
    row.launch.grid = {1 + below(2), 1, 1};
    row.launch.block = {128, 1 + static_cast<std::uint32_t>(index), 1};  // no two alike
    row.registers = static_cast<std::uint32_t>(index);  // so that rows of several seeds are one
    row.device = static_cast<int>(index % 3);
    row.op = index % 2 == 0 ? "" : "aten::mm";
    row.shape = index % 3 == 0 ? "" : "M=4096,N=1024";
    row.dtype = below(2) == 0 ? "" : "bf16";
    row.build = shape_.build;
    if (below(2) == 0)
      row.counters = {{"dram__bytes.sum", static_cast<double>(below(1 << 20)), 4},
                      {"occupancy", static_cast<double>(below(64)), 2}};
    row.duration = sketch();
    row.first_ns = time();
    row.last_ns = row.first_ns + duration();
    return row;
  }

  CopyRow copy(std::size_t index) {
    const char* kinds[] = {"h2d", "d2h", "d2d", "memset"};
    return {kinds[index % 4], static_cast<int>(index / 4) % 3, static_cast<double>(below(1 << 30)),
            sketch()};
  }

  void timeline() {
    Timeline& timeline = profile_.timeline;
    for (int i = 0; i < 30; ++i) timeline.names.push_back(fmt::format("name {}", i));
    const std::size_t names = timeline.names.size();
    for (std::size_t i = 0; i < shape_.ops; ++i)
      timeline.ops.push_back({time(), duration(), below(names), below(2), below(4),
                              maybe(shape_.ops), below(names), below(names)});
    for (std::size_t i = 0; i < timeline.ops.size(); ++i)
      if (timeline.ops[i].parent == i) timeline.ops[i].parent = kNone;
    for (std::size_t i = 0; i < shape_.calls; ++i)
      timeline.calls.push_back({time(), duration(), below(names), below(2), below(4),
                                maybe(shape_.ops), static_cast<CallKind>(below(6))});
    for (std::size_t i = 0; i < shape_.ranges; ++i)
      timeline.ranges.push_back(
          {time(), duration(), below(names), below(2), below(4), static_cast<RangeKind>(below(5))});
    for (std::size_t i = 0; i < shape_.activities; ++i) {
      Activity activity;
      activity.kind = static_cast<ActivityKind>(shape_.copies == 0 ? 0 : below(3));
      const bool kernel = activity.kind == ActivityKind::kKernel;
      activity.row = below(kernel ? shape_.kernels : shape_.copies);
      activity.start_ns = time();
      activity.duration_ns = duration();
      activity.bytes = kernel ? 0 : rng_.next() >> below(64);
      activity.process = below(2);
      activity.stream = below(5);
      activity.call = maybe(shape_.calls);
      activity.graph = below(4) == 0 ? below(100) : 0;
      activity.device = static_cast<std::uint16_t>(below(3));
      timeline.activities.push_back(activity);
    }
    if (shape_.activities > 0) {
      timeline.begin_ns = kEpoch - 5;
      timeline.end_ns = kEpoch + 2'000'000'000;
      timeline.left_out = below(10);
    }
    sort_timeline(timeline);
  }

  void stalls() {
    if (shape_.stalled == 0) return;
    SampledStalls& stalls = profile_.stalls;
    stalls.windows = 1 + below(9);
    stalls.sampled_ns = static_cast<double>(duration());
    stalls.least_period = stalls.most_period = std::uint64_t{1024} << below(4);
    stalls.dropped = below(100);
    stalls.untold = below(100);
    for (std::uint32_t i = 0; i < 4; ++i)  // not in the same order in all profiles
      stalls.reasons.push_back(fmt::format("reason{}", (i + below(2) * 2) % 4));
    std::sort(stalls.reasons.begin(), stalls.reasons.end());
    stalls.reasons.erase(std::unique(stalls.reasons.begin(), stalls.reasons.end()),
                         stalls.reasons.end());
    stalls.files.push_back(fmt::format("/src/a{}.cu", below(2)));
    stalls.files.emplace_back("/src/b.cu");
    for (std::size_t i = 0; i < shape_.stalled; ++i) {
      StallFunction& function = stalls.functions.emplace_back();
      function.name = fmt::format("kernel{}", i / 2);
      function.device = static_cast<int>(i % 3);
      function.build = shape_.build;
      function.code = below(2) == 0 ? 0 : 0xfedcba9876543210;
      for (std::uint32_t k = 0; k < 8; ++k) {
        StallSite& site = function.sites.emplace_back();
        site.offset = below(6) == 0 ? StallSite::kNowhere : 16 * below(20);
        site.file = site.offset == StallSite::kNowhere ? 0 : below(3);
        site.line = site.file == 0 ? 0 : 1 + below(50);
        for (std::uint32_t r = 0; r <= below(stalls.reasons.size()); ++r)
          site.add(below(stalls.reasons.size()), 1 + below(1000));
      }
    }
    stalls.combine();
  }

  void data_flow() {
    DataFlow& flow = profile_.data_flow;
    flow.steps = 2 + below(3);
    flow.ops = below(100);
    flow.same_data = below(2) == 0;
    flow.host_numbers = below(2) == 0;
    if (below(2) == 0)
      flow.sequence_ops = 1 + below(99), flow.sequence_hash = ~std::uint64_t{below(99)};
    for (std::uint32_t i = 0; i < 4; ++i) {
      FlowFact fact;
      fact.kind = static_cast<FlowKind>(i);
      fact.op = fmt::format("aten::op{}", below(9));
      fact.count = 2 + below(9);
      fact.ordinal = below(fact.count);
      if (fact.kind == FlowKind::kPartlyRead) {
        fact.read_share = 0.25;
        fact.reader = "aten::mm";
      }
      if (fact.kind == FlowKind::kRepeated) fact.earlier = below(fact.count);
      flow.facts.push_back(std::move(fact));
    }
  }

  TestProfileShape shape_;
  Random rng_;
  Profile profile_;
};

// Facts of a profile as text that does not depend on any index.
class Teller {
 public:
  explicit Teller(const Profile& profile) : profile_(profile), timeline_(profile.timeline) {}

  std::string tell() {
    const Coverage& coverage = profile_.coverage;
    line("{} {} {} {} {} {}", profile_.command, profile_.source, profile_.wall_ns,
         profile_.exit_code, profile_.partial, profile_.environment.build);
    line("{} {} {}", profile_.environment.host_cpu, coverage.launches_seen,
         coverage.launches_counted);
    for (const CoverageNote& note : coverage.notes)
      line("note {} {} {} {}", note.cause, note.text, note.count, note.seconds);
    for (const ProcessInfo& process : profile_.processes)
      line("process {} {} {} {}", process.pid, process.rank, process.complete, process.exit_seals);
    for (const DeviceInfo& info : profile_.environment.devices)
      line("device {} {} {}", info.id, info.name, info.driver);
    for (const KernelRow& row : profile_.kernels) kernel(row);
    for (const CopyRow& row : profile_.copies) line("copy {}", copy(row) + sketch(row.duration));
    stalls();
    const DataFlow& flow = profile_.data_flow;
    line("flow {} {} {} {} {} {}", flow.steps, flow.ops, flow.same_data, flow.host_numbers,
         flow.sequence_ops, flow.sequence_hash);
    for (const FlowFact& fact : flow.facts)
      line("fact {} {} {} {} {} {} {}", static_cast<int>(fact.kind), fact.op, fact.ordinal,
           fact.count, fact.read_share, fact.reader, fact.earlier);
    line("timeline {} {} {}", timeline_.begin_ns, timeline_.end_ns, timeline_.left_out);
    events();
    std::sort(lines_.begin(), lines_.end());
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  std::string device(int index) const {
    const DeviceInfo& info = profile_.environment.devices.at(static_cast<std::size_t>(index));
    return info.id + info.driver;
  }
  std::string name(std::uint32_t index) const { return timeline_.names.at(index); }
  std::int64_t pid(std::uint32_t index) const { return profile_.processes.at(index).pid; }

  static std::string sketch(const Sketch& sketch) {
    std::string text = fmt::format(" {} {} {} {} {}:", sketch.count(), sketch.total_ns(),
                                   sketch.min_ns(), sketch.max_ns(), sketch.first_bucket());
    for (const double weight : sketch.buckets()) text += fmt::format(" {}", weight);
    return text;
  }
  std::string identity(const KernelRow& row) const {
    return fmt::format("{} {} {} {} {} {} {} {}", row.name, to_text(row.launch), row.registers,
                       device(row.device), row.op, row.shape, row.dtype, row.build);
  }
  std::string copy(const CopyRow& row) const {
    return fmt::format("{} {} {}", row.kind, device(row.device), row.bytes);
  }
  void kernel(const KernelRow& row) {
    std::vector<std::string> counters;
    for (const Counter& counter : row.counters)
      counters.push_back(
          fmt::format(" {}={:.9g}/{}", counter.name, counter.value, counter.launches));
    std::sort(counters.begin(), counters.end());
    std::string text;
    for (const std::string& counter : counters) text += counter;
    line("kernel {} {} {} {}{}", identity(row), row.first_ns, row.last_ns, text,
         sketch(row.duration));
  }

  void stalls() {
    const SampledStalls& stalls = profile_.stalls;
    line("stalls {} {} {} {} {} {}", stalls.windows, stalls.sampled_ns, stalls.least_period,
         stalls.most_period, stalls.dropped, stalls.untold);
    for (const StallFunction& function : stalls.functions)
      for (const StallSite& site : function.sites) {
        std::vector<std::string> counts;
        for (const StallCount& count : site.counts)
          counts.push_back(fmt::format(" {}={}", stalls.reasons.at(count.reason), count.samples));
        std::sort(counts.begin(), counts.end());
        std::string text;
        for (const std::string& count : counts) text += count;
        line("stall {} {} {} {:x} {} {}:{}{}", function.name, device(function.device),
             function.build, function.code, site.offset, stalls.files.at(site.file), site.line,
             text);
      }
  }

  std::string op(std::uint32_t index) const {
    if (index == kNone) return "none";
    const Op& op = timeline_.ops.at(index);
    return fmt::format("[{} {} {} {} {} {} {}]", op.start_ns, op.duration_ns, name(op.name),
                       name(op.shape), name(op.dtype), pid(op.process), op.thread);
  }
  std::string call(std::uint32_t index) const {
    if (index == kNone) return "none";
    const Call& call = timeline_.calls.at(index);
    return fmt::format("[{} {} {} {} {} {} {}]", call.start_ns, call.duration_ns, name(call.name),
                       pid(call.process), call.thread, static_cast<int>(call.kind), op(call.op));
  }
  void events() {
    for (std::uint32_t i = 0; i < timeline_.ops.size(); ++i)
      line("op {} in {}", op(i), op(timeline_.ops[i].parent));
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i) line("call {}", call(i));
    for (const Range& range : timeline_.ranges)
      line("range {} {} {} {} {} {}", range.start_ns, range.duration_ns, name(range.name),
           pid(range.process), range.thread, static_cast<int>(range.kind));
    for (const Activity& activity : timeline_.activities)
      line("activity {} {} {} {} {} {} {} {} {}", activity.start_ns, activity.duration_ns,
           activity.bytes,
           activity.kind == ActivityKind::kKernel
               ? identity(profile_.kernels.at(activity.row))
               : profile_.copies.at(activity.row).kind +
                     device(profile_.copies.at(activity.row).device),
           pid(activity.process), activity.stream, activity.graph, device(activity.device),
           call(activity.call));
  }

  const Profile& profile_;
  const Timeline& timeline_;
  std::vector<std::string> lines_;
};

}  // namespace

Profile test_profile(const TestProfileShape& shape) { return Maker(shape).make(); }

std::string contents(const Profile& profile) { return Teller(profile).tell(); }

}  // namespace purlin::profile
