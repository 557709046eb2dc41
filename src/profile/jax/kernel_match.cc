// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/kernel_match.h"

#include "profile/jax/kernel_names.h"
#include "profile/jax/plausible.h"
#include "profile/jax/program_choice.h"
#include "profile/jax/row_split.h"
#include "profile/jax/schedules.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace purlin::profile {
namespace {

using hlo::Launch;
using Ref = LaunchRef;

constexpr std::size_t kMaxRun = 64;  // kernels of libraries in a row

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
  using Events = std::vector<std::uint32_t>;  // activities, in the order of their starts
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
    std::vector<std::size_t> positions;   // of kernels with a name of the programs
    std::vector<LaunchCandidates> named;  // of these
    std::vector<bool> is_named(events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      if (const LaunchCandidates all = schedules.named(row_of(events[i]).name); all != nullptr) {
        positions.push_back(i);
        named.push_back(all);
        is_named[i] = true;
      }
    std::vector<Ref> found(events.size());
    ProgramChoice choice(schedules, looks_);
    for (std::size_t n = 0; n < named.size(); ++n) {
      const std::size_t i = positions[n];
      found[i] = choice.choose(named, n, row_of(events[i]));
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
      if (is_plausible(run_.environment, run_.kernels[activity(i).row], launch,
                       sum.ns / sum.launches))
        continue;
      ++out_.implausible;
      const bool heavy = launch.op_class == "gemm" || launch.op_class == "conv";
      if (heavy && !launch.shape.empty()) out_.heavy_with_shape_ns -= duration_ns(activity(i));
      labels_[i] = LaunchLabel();
    }
  }

  Profile& run_;
  const std::vector<ProcessPrograms>& processes_;
  std::vector<LaunchLabel> labels_;  // by activity
  std::size_t looks_ = 0;
  ProgramMatch out_;
};

}  // namespace

ProgramMatch match_programs(Profile& run, const std::vector<ProcessPrograms>& processes) {
  return Matcher(run, processes).match();
}

}  // namespace purlin::profile
