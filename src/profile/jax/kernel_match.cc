// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/kernel_match.h"

#include "base/hash.h"
#include "base/text.h"
#include "model/device/gpu_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace purlin::profile {
namespace {

using hlo::Launch;
using hlo::Program;

constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;
constexpr std::size_t kReach = 6;  // in the schedule, between launches that count as neighbours
constexpr std::size_t kNeighbours = 4;  // in the timeline, on each side
constexpr std::size_t kMaxRun = 64;     // kernels of libraries in a row

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool is_library_kernel(std::string_view name) {
  if (has_any(name, {"gemm_fusion", "stream_executor"})) return false;
  return has_any(name, {"nvjet", "cublas", "cudnn", "cutlass", "xmma", "gemm", "Gemm", "conv",
                        "Conv", "nhwc", "nchw", "splitK", "wgrad", "dgrad", "fprop"});
}

// Which a library launches around the kernel that does the work.
bool is_helper(std::string_view name) {
  return has_any(name, {"splitK", "execute_split_k", "ReduceSplit", "educe_kernel", "workspace",
                        "Padding", "ToNhwc", "ToNchw", "transpose_readWrite", "offset"});
}

// By the kernel's name: "bf16"; "" where it does not say. nvjet names operands by letters.
std::string_view dtype_by_name(std::string_view name) {
  const std::size_t nvjet = name.find("nvjet_");
  if (nvjet != std::string_view::npos) {
    const std::size_t at = name.find('_', nvjet + 6);
    if (at == std::string_view::npos || at + 1 >= name.size()) return "";
    const char operand = name[at + 1];
    return operand == 't' ? "bf16" : operand == 'h' ? "f16" : operand == 's' ? "f32" : "";
  }
  if (has_any(name, {"bf16", "bfloat16"})) return "bf16";
  return "";
}

// XLA marks its launches with NVTX: "Thunk:#hlo_op=custom-call.3,unique_hlo_op_id=7#". That is a
// name of XLA's, and not one of the program's.
bool is_mark(std::string_view op) {
  return starts_with(op, "Thunk:#") || starts_with(op, "XlaModule:#");
}

std::string_view marked(std::string_view op, std::string_view key) {
  const std::size_t at = is_mark(op) ? op.find(key) : std::string_view::npos;
  if (at == std::string_view::npos) return "";
  const std::string_view value = op.substr(at + key.size());
  return value.substr(0, std::min(value.find_first_of(",#"), value.size()));
}

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

struct Ref {
  std::uint32_t program = kNowhere, launch = kNowhere;
  bool known() const { return program != kNowhere; }
};

std::uint64_t pair_key(std::uint64_t program, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t parts[] = {program, a, b};
  return hash64(parts, sizeof parts);
}

// The programs of one process, as questions about them need them.
class Schedules {
 public:
  explicit Schedules(const std::vector<Program>& programs) : programs_(programs) {
    for (std::uint32_t p = 0; p < programs.size(); ++p) add(p);
  }

  const std::vector<Ref>* named(const std::string& kernel) const {
    const auto at = by_kernel_.find(kernel);
    return at == by_kernel_.end() ? nullptr : &at->second;
  }
  const Launch& launch(Ref ref) const { return programs_[ref.program].launches[ref.launch]; }
  bool follows(Ref first, Ref second) const {
    return first.program == second.program &&
           near_.count(pair_key(first.program, launch(first).signature, launch(second).signature)) >
               0;
  }
  // The call of a library with that name in a program of that name; where all such do the same.
  Ref call(std::string_view module, std::string_view instruction) const {
    const auto at = calls_.find(fmt::format("{}/{}", module, instruction));
    return at == calls_.end() ? Ref() : at->second;
  }
  std::size_t named_count(std::uint32_t program) const { return named_counts_[program]; }

  // The calls of libraries between two kernels that follow one another; either may be unknown. As
  // many and of the same shapes in every place where the schedules have this; else nullptr.
  const std::vector<std::uint32_t>* between(Ref before, Ref after) const {
    const std::uint32_t program = before.known() ? before.program : after.program;
    const auto at = gaps_.find(pair_key(program, before.known() ? launch(before).signature : 0,
                                        after.known() ? launch(after).signature : 0));
    return at == gaps_.end() || at->second.differs ? nullptr : &at->second.calls;
  }

 private:
  struct Gap {
    std::vector<std::uint32_t> calls;
    bool differs = false;
  };

  void add(std::uint32_t p) {
    const Program& program = programs_[p];
    std::size_t distinct = 0;
    for (std::uint32_t i = 0; i < program.launches.size(); ++i) {
      const Launch& launch = program.launches[i];
      if (launch.library()) {
        const auto [at, added] =
            calls_.try_emplace(fmt::format("{}/{}", program.name, launch.instruction), Ref{p, i});
        const Ref other = at->second;
        if (!added && other.known() &&
            programs_[other.program].launches[other.launch].shape != launch.shape)
          at->second = Ref();
        continue;
      }
      by_kernel_[launch.kernel].push_back({p, i});
      ++distinct;
    }
    named_counts_.push_back(distinct);
    std::vector<std::uint64_t> named;  // signatures in order
    std::vector<std::uint32_t> calls;
    for (const std::uint32_t at : program.order) {
      const Launch& launch = program.launches[at];
      if (launch.library()) {
        calls.push_back(at);
        continue;
      }
      keep(p, named.empty() ? 0 : named.back(), launch.signature, calls);
      named.push_back(launch.signature);
      calls.clear();
    }
    if (named.empty()) return;
    keep(p, named.back(), 0, calls);
    // A program that runs again begins after its end.
    for (std::size_t i = 0; i < named.size(); ++i)
      for (std::size_t step = 1; step <= std::min(kReach, named.size()); ++step)
        near_.insert(pair_key(p, named[i], named[(i + step) % named.size()]));
  }

  void keep(std::uint32_t p, std::uint64_t before, std::uint64_t after,
            const std::vector<std::uint32_t>& calls) {
    keep_gap(pair_key(p, before, after), p, calls);
    if (before != 0 && after != 0) {
      keep_gap(pair_key(p, 0, after), p, calls);
      keep_gap(pair_key(p, before, 0), p, calls);
    }
  }

  void keep_gap(std::uint64_t key, std::uint32_t p, const std::vector<std::uint32_t>& calls) {
    const auto [at, added] = gaps_.try_emplace(key, Gap{calls, false});
    if (added || at->second.differs) return;
    const std::vector<Launch>& launches = programs_[p].launches;
    at->second.differs = !std::equal(calls.begin(), calls.end(), at->second.calls.begin(),
                                     at->second.calls.end(), [&](std::uint32_t a, std::uint32_t b) {
                                       return launches[a].signature == launches[b].signature &&
                                              launches[a].chained == launches[b].chained &&
                                              launches[a].shape == launches[b].shape;
                                     });
  }

  const std::vector<Program>& programs_;
  std::unordered_map<std::string, std::vector<Ref>> by_kernel_;
  std::unordered_map<std::string, Ref> calls_;
  std::vector<std::size_t> named_counts_;
  std::unordered_set<std::uint64_t> near_;
  std::unordered_map<std::uint64_t, Gap> gaps_;
};

// What a launch of the timeline got.
struct LaunchLabel {
  std::uint32_t process = kNowhere;  // index into the processes
  Ref ref;
  bool shaped = false;  // does the op's work; false: its helper
};

class Matcher {
 public:
  Matcher(Profile& run, const std::vector<ProcessPrograms>& processes)
      : run_(run), processes_(processes), labels_(run.timeline.activities.size()) {}

  ProgramMatch match() {
    for (std::uint32_t p = 0; p < processes_.size(); ++p) {
      const Schedules schedules(processes_[p].programs);
      for (const auto& [device, events] : events_of(processes_[p].pid)) place(p, schedules, events);
    }
    drop_implausible();
    split_rows();
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

  void place(std::uint32_t process, const Schedules& schedules, const Events& events) {
    std::vector<const std::vector<Ref>*> candidates;
    std::vector<std::size_t> named;  // positions of kernels with a name of the programs
    for (std::size_t i = 0; i < events.size(); ++i) {
      candidates.push_back(schedules.named(row_of(events[i]).name));
      if (candidates.back() != nullptr) named.push_back(i);
    }
    std::vector<Ref> found(events.size());
    for (std::size_t n = 0; n < named.size(); ++n) {
      const std::size_t i = named[n];
      found[i] = choose(schedules, candidates, named, n, row_of(events[i]));
      if (!found[i].known()) continue;
      labels_[events[i]] = {process, found[i], true};
      count_heavy(schedules.launch(found[i]), activity(events[i]), true);
    }
    for (std::size_t i = 0; i < events.size();) {
      std::size_t end = i;
      while (end < events.size() && candidates[end] == nullptr &&
             is_library_kernel(row_of(events[end]).name))
        ++end;
      if (end > i)
        place_calls(process, schedules,
                    {events.begin() + static_cast<std::ptrdiff_t>(i),
                     events.begin() + static_cast<std::ptrdiff_t>(end)},
                    i > 0 ? found[i - 1] : Ref(), end < events.size() ? found[end] : Ref());
      i = std::max(end, i + 1);
    }
  }

  // The program whose schedule has the kernel near those that ran before and after it.
  static Ref choose(const Schedules& schedules,
                    const std::vector<const std::vector<Ref>*>& candidates,
                    const std::vector<std::size_t>& named, std::size_t n, const KernelRow& row) {
    Ref best;
    std::size_t best_score = 0, around = 0;
    bool tie = false;
    const std::vector<Ref>& mine = *candidates[named[n]];
    for (const Ref ref : mine) {
      std::size_t score = 0;
      around = 0;
      for (std::size_t step = 1; step <= kNeighbours; ++step) {
        if (n >= step) ++around, score += near(schedules, *candidates[named[n - step]], ref, true);
        if (n + step < named.size())
          ++around, score += near(schedules, *candidates[named[n + step]], ref, false);
      }
      if (!best.known() || score > best_score) {
        best = ref, best_score = score, tie = false;
      } else if (score == best_score) {
        tie = tie || !same_work(schedules.launch(ref), schedules.launch(best));
      }
    }
    if (tie) return {};
    const std::size_t kernels = schedules.named_count(best.program);
    // A program of one kernel has no neighbours: its size must fit.
    if (best_score == 0)
      return kernels == 1 && mine.size() == 1 && fits(schedules.launch(best), row) ? best : Ref();
    const std::size_t least = kernels >= 4 && around >= 4 ? 2 : 1;
    return best_score >= least ? best : Ref();
  }

  static std::size_t near(const Schedules& schedules, const std::vector<Ref>& others, Ref ref,
                          bool before) {
    return std::any_of(others.begin(), others.end(), [&](Ref other) {
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

  void place_calls(std::uint32_t process, const Schedules& schedules, const Events& kernels,
                   Ref before, Ref after) {
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
      for (const std::uint32_t each : main) place_marked(process, schedules, each);
      return;
    }
    if (calls->size() == 1) {  // of any number of kernels: the longest does the work
      const Ref ref = {program, calls->front()};
      const std::uint32_t longest =
          *std::max_element(main.begin(), main.end(), [&](std::uint32_t a, std::uint32_t b) {
            return activity(a).duration_ns < activity(b).duration_ns;
          });
      for (const std::uint32_t each : kernels) labels_[each] = {process, ref, each == longest};
      count_heavy(schedules.launch(ref), activity(longest), true);
    } else {
      for (std::size_t i = 0; i < main.size(); ++i) {
        const Ref ref = {program, (*calls)[i]};
        labels_[main[i]] = {process, ref, true};
        count_heavy(schedules.launch(ref), activity(main[i]), true);
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
    // Those that do not wait for one another may have run in another order: then all are alike.
    for (std::size_t i = 1; i < calls.size(); ++i) {
      const Launch& call = schedules.launch({program, calls[i]});
      if (!call.chained && !same_work(call, schedules.launch({program, calls[i - 1]})))
        return false;
    }
    return !calls.empty() && calls.size() == main.size();
  }

  // Without neighbours: XLA's own marks around the launch name instruction and program.
  void place_marked(std::uint32_t process, const Schedules& schedules, std::uint32_t each) {
    const Timeline& timeline = run_.timeline;
    std::string_view instruction, module;
    std::uint32_t op = activity(each).call < timeline.calls.size()
                           ? timeline.calls[activity(each).call].op
                           : kNone;
    for (int depth = 0; depth < 8 && op < timeline.ops.size(); ++depth) {
      const std::string_view name = timeline.names[timeline.ops[op].name];
      if (instruction.empty()) instruction = marked(name, "hlo_op=");
      module = marked(name, "hlo_module=");
      if (!module.empty()) break;
      op = timeline.ops[op].parent;
    }
    const Ref ref = instruction.empty() ? Ref() : schedules.call(module, instruction);
    if (!ref.known()) return;
    labels_[each] = {process, ref, true};
    count_heavy(schedules.launch(ref), activity(each), true);
  }

  static double duration_ns(const Activity& each) {
    return static_cast<double>(std::max<std::int64_t>(0, each.duration_ns));
  }

  void count_heavy(const Launch& launch, const Activity& each, bool shaped) {
    if (launch.op_class != "gemm" && launch.op_class != "conv") return;
    out_.heavy_ns += duration_ns(each);
    if (shaped && !launch.shape.empty()) out_.heavy_with_shape_ns += duration_ns(each);
  }

  const Launch& launch_of(const LaunchLabel& label) const {
    return processes_[label.process].programs[label.ref.program].launches[label.ref.launch];
  }

  // A product faster than the device's arithmetic, or of other types than the kernel's name says,
  // is another one. All launches of that kernel with that shape lose it: their mean tells.
  void drop_implausible() {
    struct Sum {
      double ns = 0, launches = 0;
    };
    std::map<std::pair<std::uint32_t, const Launch*>, Sum> sums;
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].process == kNowhere || !labels_[i].shaped) continue;
      Sum& sum = sums[{activity(i).row, &launch_of(labels_[i])}];
      sum.ns += duration_ns(activity(i));
      ++sum.launches;
    }
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].process == kNowhere || !labels_[i].shaped) continue;
      const Launch& launch = launch_of(labels_[i]);
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

  struct Share {
    std::string op, shape, dtype;
    Sketch duration;
    std::vector<std::uint32_t> activities;
  };

  // Without a name that the program gave it.
  static bool is_open(const KernelRow& row) { return row.op.empty() || is_mark(row.op); }

  void split_rows() {
    std::map<std::uint32_t, std::map<std::string, Share>> rows;
    std::unordered_set<std::uint32_t> labelled;
    for (std::uint32_t i = 0; i < labels_.size(); ++i)
      if (labels_[i].process != kNowhere && is_open(run_.kernels[activity(i).row]))
        labelled.insert(activity(i).row);
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      const Activity& each = activity(i);
      if (each.kind != ActivityKind::kKernel || labelled.count(each.row) == 0) continue;
      Share share{run_.kernels[each.row].op,
                  run_.kernels[each.row].shape,
                  run_.kernels[each.row].dtype,
                  {},
                  {}};
      if (labels_[i].process != kNowhere) {
        const Launch& launch = launch_of(labels_[i]);
        share.op = launch.op;
        share.shape = share.dtype = "";
        if (labels_[i].shaped) share.shape = launch.shape, share.dtype = launch.dtype;
        ++out_.launches;
      }
      const std::string key = fmt::format("{}\n{}\n{}", share.op, share.shape, share.dtype);
      Share& at = rows[each.row].try_emplace(key, std::move(share)).first->second;
      at.duration.add(duration_ns(each));
      at.activities.push_back(i);
    }
    for (auto& [row, shares] : rows) split_row(row, shares);
  }

  void split_row(std::uint32_t index, std::map<std::string, Share>& shares) {
    const KernelRow whole = run_.kernels[index];
    double launches = 0, total = 0;
    for (const auto& [key, share] : shares) {
      launches += share.duration.count();
      total += share.duration.total_ns();
    }
    // A row of launches that the timeline has not is split in the proportion of those it has.
    const double weight = whole.duration.count() / launches;
    const double time = total > 0 ? whole.duration.total_ns() / (total * weight) : 1;
    bool first = true;
    for (auto& [key, share] : shares) {
      KernelRow part = whole;
      if (shares.size() > 1) {
        part.duration = share.duration.scaled(time, weight);
        for (Counter& counter : part.counters)
          counter.launches *= share.duration.count() / launches;
      }
      part.op = std::move(share.op);
      part.shape = std::move(share.shape);
      part.dtype = std::move(share.dtype);
      const auto at = first ? index : static_cast<std::uint32_t>(run_.kernels.size());
      if (first) {
        run_.kernels[index] = std::move(part);
      } else {
        run_.kernels.push_back(std::move(part));
        for (const std::uint32_t each : share.activities) run_.timeline.activities[each].row = at;
      }
      first = false;
    }
  }

  Profile& run_;
  const std::vector<ProcessPrograms>& processes_;
  std::vector<LaunchLabel> labels_;  // by activity
  ProgramMatch out_;
};

}  // namespace

ProgramMatch match_programs(Profile& run, const std::vector<ProcessPrograms>& processes) {
  return Matcher(run, processes).match();
}

}  // namespace purlin::profile
