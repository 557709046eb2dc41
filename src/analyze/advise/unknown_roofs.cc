// SPDX-License-Identifier: Apache-2.0
// Own kernels that take much of the time though their distance to their roof is not known. No
// saving is estimated for them: measured ones saved 0 to 99 % of their time, and a launch alone
// does not tell which of them (bench/results/advice_pairs_unseen.md). The entry says what would
// tell.
#include "analyze/advise/unknown_roofs.h"

#include "analyze/advise/rules/pricing.h"
#include "analyze/report/identity.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kOwnsMuch = 0.2;  // of the unit: too much to pass over
constexpr std::size_t kMostUnknown = 3;
constexpr double kGoodPart = 0.2;        // of a kernel's time: a change that saves it speaks of it
constexpr double kDrainingWave = 1'500;  // ns, of a wave of blocks: it starts and drains
constexpr double kHalfOfWarps = 0.5;     // of the slots
constexpr std::uint64_t kLanes = 32, kTwoWarps = 64;

// Of the program or an own library: no op of a framework launched it, no compiler of one wrote it,
// and it is no graph that was recorded as a whole.
bool is_launched_by_program(const KernelStat& kernel) {
  return is_of_program(kernel) && kernel.op.find("aten::") == std::string::npos &&
         kernel.name.op_class != "communication" && kernel.name.op_class != "optimizer" &&
         !starts_with(kernel.name.full, "triton_") &&
         !starts_with(kernel.name.full, "(CUDA graph ");
}

// Whether a change is listed that says what a good part of this kernel's time could become.
bool is_spoken_of(const Advice& advice, const std::string& label, double share) {
  return std::any_of(
      advice.interventions.begin(), advice.interventions.end(), [&](const Intervention& one) {
        const LossLevel level = loss_level(one);
        return (level == LossLevel::kTune || level == LossLevel::kRestructure) &&
               one.saved_share.mid >= kGoodPart * share &&
               std::find(one.kernels.begin(), one.kernels.end(), label) != one.kernels.end();
      });
}

// What ncu and --shape take: without templates and namespaces, and safe in a shell.
std::string name_for_commands(const KernelStat& kernel) {
  std::string_view name = kernel.name.brief;
  name = name.substr(0, name.find_first_of("<("));
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos)
    name.remove_prefix(colon + 1);
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain ? std::string(name) : "KERNEL";
}

class LaunchNotes {
 public:
  LaunchNotes(const Facts& facts, const KernelStat& kernel)
      : facts_(facts),
        kernel_(kernel),
        threads_(std::uint64_t{1} * kernel.launch.block[0] * kernel.launch.block[1] *
                 kernel.launch.block[2]),
        shared_(kernel.launch.dynamic_shared_bytes + kernel.static_shared_bytes),
        waves_(waves_of(facts, kernel)) {}

  void into(UnknownRoof& out) {
    launch(out.launch);
    collect(out.collect);
    look_at(out.look_at);
  }

 private:
  void launch(std::vector<Evidence>& out) const {
    const auto blocks = static_cast<double>(kernel_.launch.blocks());
    std::string grid = fmt::format("{:.0f} blocks of {} threads", blocks, threads_);
    if (waves_ > 0) grid += fmt::format(", {:.3g} waves", waves_);
    if (blocks > 0 && threads_ > 0) out.push_back({"grid", grid, "launch"});
    out.push_back({"a launch",
                   short_ns(kernel_.duration.mean_ns()) +
                       (waves_ >= 1 ? fmt::format(", {} a wave of blocks",
                                                  short_ns(kernel_.duration.mean_ns() / waves_))
                                    : ""),
                   "timeline"});
    if (kernel_.registers > 0)
      out.push_back({"of a thread",
                     counted(kernel_.registers, "register") +
                         (kernel_.local_bytes > 0 ? fmt::format(", {} of local memory",
                                                                format_bytes(kernel_.local_bytes))
                                                  : ""),
                     "launch"});
    if (kernel_.registers > 0 || shared_ > 0)
      out.push_back({"shared memory of a block",
                     shared_ > 0 ? format_bytes(static_cast<double>(shared_)) : "none", "launch"});
    if (kernel_.roof.occupancy_theoretical > 0)
      out.push_back({"occupancy",
                     percent(kernel_.roof.occupancy_theoretical) +
                         (kernel_.roof.occupancy_limiter.empty() || !is_crowded()
                              ? ""
                              : ", limited by " + clean(kernel_.roof.occupancy_limiter)),
                     "launch"});
  }

  bool is_crowded() const { return kernel_.roof.occupancy_theoretical < 1; }

  void collect(std::vector<std::string>& out) const {
    const std::string name = name_for_commands(kernel_);
    std::vector<std::string> steps;
    if (!has_hardware_counters(kernel_))
      steps.emplace_back(
          "CUDA: purlin profile --counters -- COMMAND, then purlin advise: its roof, and the "
          "sectors of its requests");
    if (kernel_.sampled.empty())
      steps.emplace_back(
          "CUDA: purlin profile --stalls -- COMMAND: the lines on which its warps wait");
    steps.push_back("CUDA: ncu --set full -k " + name +
                    " COMMAND shows bank conflicts and sectors per request; purlin advise reads "
                    "its CSV");
    steps.emplace_back(
        "HIP: rocprofv3 --pmc … -- COMMAND, or rocprof-compute: purlin advise reads their files");
    steps.push_back("purlin advise --shape '" + name +
                    "=elementwise,f32,n=NUMBER,inputs=1' FILE, where it reads and writes each "
                    "element once; gemm, reduction and others alike");
    for (std::string& step : steps)
      if (fits(facts_.platform, step)) out.push_back(std::move(step));
  }

  // What the launch makes more likely comes first.
  void look_at(std::vector<std::string>& out) const {
    if (facts_.platform.cpu) {
      out.emplace_back("vectors: contiguous elements for each work-item (vload4, vload8)");
      out.emplace_back("work-group size: enough work for each, one for each core or more");
      return;
    }
    if (kernel_.local_bytes > 0)
      out.push_back(
          fmt::format("spills: {} of local memory a thread; arrays that are indexed at "
                      "run time lie there too",
                      format_bytes(kernel_.local_bytes)));
    if (is_unpadded()) conflicts(out);
    block_size(out);
    out.emplace_back(
        "coalescing: neighbouring threads at neighbouring addresses, 4 to 16 sectors per request");
    if (shared_ > 0 && !is_unpadded()) conflicts(out);
    loads(out);
  }
  bool is_unpadded() const { return shared_ > 0 && (shared_ & (shared_ - 1)) == 0; }
  void conflicts(std::vector<std::string>& out) const {
    std::string text = fmt::format("bank conflicts of its {} of shared memory a block",
                                   format_bytes(static_cast<double>(shared_)));
    if (is_unpadded())
      text +=
          ", a power of two: the column of a tile without padding lies in few banks; pad or "
          "swizzle "
          "it";
    out.push_back(std::move(text));
  }
  void loads(std::vector<std::string>& out) const {
    std::string text = "loads in flight: several independent ones a thread, of 16 bytes each";
    if (waves_ > 0 && waves_ < 1) {
      text += fmt::format("; {} of the places for threads are taken", percent(waves_));
    } else if (kernel_.roof.occupancy_theoretical > 0 &&
               kernel_.roof.occupancy_theoretical < kHalfOfWarps) {
      text += fmt::format("; {} of the warps fit", percent(kernel_.roof.occupancy_theoretical));
    }
    out.push_back(std::move(text));
  }
  void block_size(std::vector<std::string>& out) const {
    if (threads_ == 0) return;
    const double wave = waves_ >= 1 ? kernel_.duration.mean_ns() / waves_ : 0;
    if (threads_ % kLanes != 0) {
      out.push_back(fmt::format("block size: of the last warp of {} threads, {} lanes idle",
                                threads_, kLanes - threads_ % kLanes));
    } else if (threads_ < kTwoWarps) {
      out.push_back(
          fmt::format("block size: {} threads are one warp a block; more can share what "
                      "it loads",
                      threads_));
    } else if (wave > 0 && wave < kDrainingWave) {
      out.push_back(
          fmt::format("block size: a wave of blocks ends after {}; give each block more "
                      "work",
                      short_ns(wave)));
    }
  }

  const Facts& facts_;
  const KernelStat& kernel_;
  std::uint64_t threads_, shared_;
  double waves_;
};

}  // namespace

bool has_hardware_counters(const KernelStat& kernel) {
  return std::any_of(kernel.counters.begin(), kernel.counters.end(),
                     [](const Counter& counter) { return !starts_with(counter.name, "kineto."); });
}

void add_unknown_roofs(const Facts& facts, Advice& advice) {
  const double whole = facts.unit.baseline_ns.mid;
  if (whole <= 0) return;
  struct Found {
    std::size_t row;  // the heaviest of its label
    double ns, exposed_ns;
  };
  std::vector<Found> found;
  const auto& kernels = facts.rows.kernels;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelStat& kernel = kernels[i];
    if (!is_launched_by_program(kernel) || kernel.roof.utilization > 0 || is_short_launch(kernel))
      continue;
    const double ns = facts.in_unit(kernel.duration.total_ns());
    const double exposed = ns * facts.exposed[i].mid;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Found& one) {
      return kernels[one.row].label == kernel.label;
    });
    if (same == found.end()) {
      found.push_back({i, ns, exposed});
    } else {
      same->ns += ns;
      same->exposed_ns += exposed;
    }
  }
  std::erase_if(found, [&](const Found& one) {
    return is_spoken_of(advice, kernels[one.row].label, one.exposed_ns / whole);
  });
  double all = 0;
  for (const Found& one : found) all += one.exposed_ns;
  if (all < kOwnsMuch * whole) return;
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.exposed_ns > b.exposed_ns; });
  if (found.size() > kMostUnknown) found.resize(kMostUnknown);
  for (const Found& one : found) {
    const KernelStat& kernel = kernels[one.row];
    UnknownRoof out;
    out.kernel = kernel.label;
    out.kernel_id = row_id(kernel, GroupBy::kKernel);
    out.ns = one.ns;
    out.share = std::min(1.0, one.ns / whole);
    LaunchNotes(facts, kernel).into(out);
    advice.unknown_roofs.push_back(std::move(out));
  }
}

}  // namespace purlin::analyze
