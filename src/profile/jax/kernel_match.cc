// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/kernel_match.h"

#include "base/hash.h"
#include "model/device/gpu_table.h"
#include "profile/jax/kernel_names.h"
#include "profile/jax/row_split.h"
#include "profile/jax/schedules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace purlin::profile {
namespace {

using hlo::Launch;
using Ref = LaunchRef;

constexpr std::size_t kNeighbours = 4;  // in the timeline, on each side
constexpr std::size_t kMaxRun = 64;     // kernels of libraries in a row
// Looks at a program's launches, of all kernels together: a few seconds. Foreign texts may give one
// name to all launches of all programs.
constexpr std::size_t kMaxLooks = 30'000'000;

double peak_of(const GpuModel* gpu, std::string_view dtype) {
  double exact = 0, most = 0;
  for (const GpuRate& rate : gpu->rates) {
    const double peak = gpu->peak(rate, std::max(gpu->boost_mhz, gpu->tensor_mhz));
    most = std::max(most, peak);
    const bool same = rate.dtype == dtype || (rate.dtype == "tf32" && dtype == "f32");
    if (same) exact = std::max(exact, peak);
  }
  return exact > 0 ? exact : most;
}

class Matcher {
 public:
  Matcher(Profile& run, const std::vector<ProcessPrograms>& processes)
      : run_(run), processes_(processes), labels_(run.timeline.activities.size()) {}

  ProgramMatch match() {
    for (const ProcessPrograms& process : processes_) {
      const Schedules schedules(process.programs);
      for (const auto& [device, events] : events_of(process.pid)) place(schedules, events);
    }
    drop_implausible();
    out_.launches = split_rows(run_, labels_);
    for (const KernelRow& row : run_.kernels) {
      out_.total_ns += row.duration.total_ns();
      if (!row.op.empty()) out_.with_op_ns += row.duration.total_ns();
    }
    return out_;
  }

 private:
  using Events = std::vector<std::uint32_t>;   // activities, in the order of their starts
  using Candidates = const std::vector<Ref>*;  // launches with the name of a kernel, by program
  struct Choice {
    Ref best;
    std::size_t score = 0;  // neighbours that are near in the schedule
    bool tie = false;       // with a launch that does other work
  };

  const Activity& activity(std::uint32_t at) const { return run_.timeline.activities[at]; }
  const KernelRow& row_of(std::uint32_t at) const { return run_.kernels[activity(at).row]; }

  std::map<int, Events> events_of(std::int64_t pid) const {
    std::map<int, Events> out;
    for (std::uint32_t i = 0; i < run_.timeline.activities.size(); ++i) {
      const Activity& each = activity(i);
      if (each.kind != ActivityKind::kKernel || each.row >= run_.kernels.size() ||
          each.process >= run_.processes.size() || run_.processes[each.process].pid != pid)
        continue;
      out[each.device].push_back(i);
    }
    for (auto& [device, events] : out)
      std::stable_sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
        return activity(a).start_ns < activity(b).start_ns;
      });
    return out;
  }

  void place(const Schedules& schedules, const Events& events) {
    std::vector<std::size_t> positions;  // of kernels with a name of the programs
    std::vector<Candidates> named;       // of these
    std::vector<bool> is_named(events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      if (const Candidates all = schedules.named(row_of(events[i]).name); all != nullptr) {
        positions.push_back(i);
        named.push_back(all);
        is_named[i] = true;
      }
    std::vector<Ref> found(events.size());
    choices_.clear();
    for (std::size_t n = 0; n < named.size(); ++n) {
      const std::size_t i = positions[n];
      found[i] = choose(schedules, named, n, row_of(events[i]));
      if (!found[i].known()) continue;
      labels_[events[i]] = {&schedules.launch(found[i]), true};
      count_heavy(schedules.launch(found[i]), activity(events[i]));
    }
    for (std::size_t i = 0; i < events.size();) {
      std::size_t end = i;
      while (end < events.size() && !is_named[end] && is_library_kernel(row_of(events[end]).name))
        ++end;
      if (end > i)
        place_calls(schedules,
                    {events.begin() + static_cast<std::ptrdiff_t>(i),
                     events.begin() + static_cast<std::ptrdiff_t>(end)},
                    i > 0 ? found[i - 1] : Ref(), end < events.size() ? found[end] : Ref());
      i = std::max(end, i + 1);
    }
  }

  // The program whose schedule has the kernel near those that ran before and after it.
  Ref choose(const Schedules& schedules, const std::vector<Candidates>& named, std::size_t n,
             const KernelRow& row) {
    const Choice& choice = best_of(schedules, named, n);
    if (choice.tie || !choice.best.known()) return {};
    const std::size_t kernels = schedules.named_count(choice.best.program);
    // A program of one kernel has no neighbours: its size must fit.
    if (choice.score == 0)
      return kernels == 1 && named[n]->size() == 1 && fits(schedules.launch(choice.best), row)
                 ? choice.best
                 : Ref();
    const std::size_t around =
        std::min(n, kNeighbours) + std::min(named.size() - 1 - n, kNeighbours);
    const std::size_t least = kernels >= 4 && around >= 4 ? 2 : 1;
    return choice.score >= least ? choice.best : Ref();
  }

  // Steps repeat, with the kernels around one: the choice between the programs is kept.
  const Choice& best_of(const Schedules& schedules, const std::vector<Candidates>& named,
                        std::size_t n) {
    std::array<Candidates, 2 * kNeighbours + 1> around{};
    for (std::size_t i = 0; i < around.size(); ++i)
      if (n + i >= kNeighbours && n + i - kNeighbours < named.size())
        around[i] = named[n + i - kNeighbours];
    const auto [at, added] = choices_.try_emplace(hash64(around.data(), sizeof around));
    if (!added) return at->second;
    Choice& choice = at->second;
    for (const Ref ref : *named[n]) {
      std::size_t score = 0;
      for (std::size_t i = 0; i < around.size(); ++i)
        if (around[i] != nullptr && i != kNeighbours)
          score += near(schedules, *around[i], ref, i < kNeighbours);
      if (looks_ > kMaxLooks) {
        choice = {};
        break;
      }
      if (!choice.best.known() || score > choice.score) {
        choice = {ref, score, false};
      } else if (score == choice.score) {
        choice.tie = choice.tie || !same_work(schedules.launch(ref), schedules.launch(choice.best));
      }
    }
    return choice;
  }

  bool near(const Schedules& schedules, const std::vector<Ref>& others, Ref ref, bool before) {
    const auto [first, last] = std::equal_range(others.begin(), others.end(), ref,
                                                [](Ref a, Ref b) { return a.program < b.program; });
    return std::any_of(first, last, [&](Ref other) {
      if (++looks_ > kMaxLooks) return false;
      const bool itself = schedules.launch(other).signature == schedules.launch(ref).signature;
      return !itself && (before ? schedules.follows(other, ref) : schedules.follows(ref, other));
    });
  }

  static bool same_work(const Launch& a, const Launch& b) {
    return a.shape == b.shape && a.dtype == b.dtype && a.op_class == b.op_class;
  }

  // A thread of a loop computes 1, 2, 4, 8 or 16 elements.
  static bool fits(const Launch& launch, const KernelRow& row) {
    const double threads = static_cast<double>(row.launch.threads_per_block());
    for (const double each : {1, 2, 4, 8, 16})
      if (std::ceil(launch.elements / (threads * each)) == static_cast<double>(row.launch.blocks()))
        return launch.elements > 0;
    return false;
  }

  void place_calls(const Schedules& schedules, const Events& kernels, Ref before, Ref after) {
    Events main;
    for (const std::uint32_t each : kernels)
      if (!is_helper(row_of(each).name)) main.push_back(each);
    const std::vector<std::uint32_t>* calls = nullptr;
    std::uint32_t program = kNowhere;
    const auto look = [&](Ref a, Ref b) {
      const bool one = a.known() && b.known() && a.program != b.program;
      if (calls != nullptr || one || (!a.known() && !b.known())) return;
      calls = schedules.between(a, b);
      program = a.known() ? a.program : b.program;
      if (calls != nullptr && !are_calls(schedules, program, *calls, main)) calls = nullptr;
    };
    if (kernels.size() <= kMaxRun && !main.empty()) {
      look(before, after);
      look(Ref(), after);
      if (!after.known()) look(before, Ref());
      if (calls == nullptr && (before.known() || after.known()))
        for (const std::uint32_t each : main) out_.heavy_ns += duration_ns(activity(each));
    }
    if (calls == nullptr) {
      for (const std::uint32_t each : main) place_marked(schedules, each);
      return;
    }
    if (calls->size() == 1) {  // of any number of kernels: the longest does the work
      const Launch& call = schedules.launch({program, calls->front()});
      const std::uint32_t longest =
          *std::max_element(main.begin(), main.end(), [&](std::uint32_t a, std::uint32_t b) {
            return activity(a).duration_ns < activity(b).duration_ns;
          });
      for (const std::uint32_t each : kernels) labels_[each] = {&call, each == longest};
      count_heavy(call, activity(longest));
    } else {
      for (std::size_t i = 0; i < main.size(); ++i) {
        const Launch& call = schedules.launch({program, (*calls)[i]});
        labels_[main[i]] = {&call, true};
        count_heavy(call, activity(main[i]));
      }
    }
  }

  // Whether these kernels can be those calls, in that order. One call may run its kernel twice.
  bool are_calls(const Schedules& schedules, std::uint32_t program,
                 const std::vector<std::uint32_t>& calls, const Events& main) const {
    if (calls.size() == 1)
      return std::all_of(main.begin(), main.end(), [&](std::uint32_t each) {
        return row_of(each).name == row_of(main.front()).name;
      });
    if (calls.size() != main.size()) return false;
    // Those that do not wait for one another may have run in another order: then all are alike.
    for (std::size_t i = 1; i < calls.size(); ++i) {
      const Launch& call = schedules.launch({program, calls[i]});
      if (!call.chained && !same_work(call, schedules.launch({program, calls[i - 1]})))
        return false;
    }
    return !calls.empty();
  }

  // Without neighbours: XLA's own marks around the launch name instruction and program.
  void place_marked(const Schedules& schedules, std::uint32_t each) {
    const Timeline& timeline = run_.timeline;
    std::string_view instruction, module;
    std::uint32_t op = activity(each).call < timeline.calls.size()
                           ? timeline.calls[activity(each).call].op
                           : kNone;
    for (int depth = 0; depth < 8 && op < timeline.ops.size(); ++depth) {
      if (timeline.ops[op].name >= timeline.names.size()) return;
      const std::string_view name = timeline.names[timeline.ops[op].name];
      if (instruction.empty()) instruction = marked(name, "hlo_op=");
      module = marked(name, "hlo_module=");
      if (!module.empty()) break;
      op = timeline.ops[op].parent;
    }
    const Ref ref = instruction.empty() ? Ref() : schedules.call(module, instruction);
    if (!ref.known()) return;
    labels_[each] = {&schedules.launch(ref), true};
    count_heavy(schedules.launch(ref), activity(each));
  }

  static double duration_ns(const Activity& each) {
    return static_cast<double>(std::max<std::int64_t>(0, each.duration_ns));
  }

  void count_heavy(const Launch& launch, const Activity& each) {
    if (launch.op_class != "gemm" && launch.op_class != "conv") return;
    out_.heavy_ns += duration_ns(each);
    if (!launch.shape.empty()) out_.heavy_with_shape_ns += duration_ns(each);
  }

  // A product faster than the device's arithmetic, or of other types than the kernel's name says,
  // is another one. All launches of that kernel with that shape lose it: their mean tells.
  void drop_implausible() {
    struct Sum {
      double ns = 0, launches = 0;
    };
    std::map<std::pair<std::uint32_t, const Launch*>, Sum> sums;
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].launch == nullptr || !labels_[i].shaped) continue;
      Sum& sum = sums[{activity(i).row, labels_[i].launch}];
      sum.ns += duration_ns(activity(i));
      ++sum.launches;
    }
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].launch == nullptr || !labels_[i].shaped) continue;
      const Launch& launch = *labels_[i].launch;
      const Sum& sum = sums[{activity(i).row, &launch}];
      if (plausible(run_.kernels[activity(i).row], launch, sum.ns / sum.launches)) continue;
      ++out_.implausible;
      const bool heavy = launch.op_class == "gemm" || launch.op_class == "conv";
      if (heavy && !launch.shape.empty()) out_.heavy_with_shape_ns -= duration_ns(activity(i));
      labels_[i] = LaunchLabel();
    }
  }

  bool plausible(const KernelRow& row, const Launch& launch, double ns) const {
    constexpr double kClocks = 1.1;  // what a device may do above its sheet
    if (launch.flops > 0 && launch.library()) {
      const std::string_view dtype = dtype_by_name(row.name);
      if (!dtype.empty() && dtype != launch.dtype) return false;
    }
    const auto at = static_cast<std::size_t>(row.device);
    if (row.device < 0 || at >= run_.environment.devices.size()) return true;
    const GpuModel* gpu = find_gpu(run_.environment.devices[at].name);
    if (gpu == nullptr) return true;
    if (launch.flops > 0 && launch.flops > peak_of(gpu, launch.dtype) * kClocks * ns * 1e-9)
      return false;
    // What is larger than the cache comes from memory.
    const double cache = gpu->l2_mib * (1 << 20);
    return launch.bytes - 2 * cache <= gpu->dram_gbs * kClocks * ns;
  }

  Profile& run_;
  const std::vector<ProcessPrograms>& processes_;
  std::vector<LaunchLabel> labels_;                    // by activity
  std::unordered_map<std::uint64_t, Choice> choices_;  // of one process and device, by neighbours
  std::size_t looks_ = 0;
  ProgramMatch out_;
};

}  // namespace

ProgramMatch match_programs(Profile& run, const std::vector<ProcessPrograms>& processes) {
  return Matcher(run, processes).match();
}

}  // namespace purlin::profile
