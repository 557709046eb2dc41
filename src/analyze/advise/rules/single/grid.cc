// SPDX-License-Identifier: Apache-2.0
// Launches that cannot fill the device: fewer blocks than multiprocessors, down to a single thread;
// and launches whose last wave is nearly empty.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/device/gpu_table.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr Remedy kGrid[] = {
    {"fill_the_device", "Give the device more blocks at a time", Pillar::kOccupancy,
     Level::kParallelism, "latency", "days", "low", "api-independent", "kernel",
     "a larger batch, or several problems in one launch|"
     "split the reduction: split-K, stream-K, two passes|"
     "one thread for each element instead of a loop; several streams",
     ""},
    {"whole_waves", "Fit the blocks into whole waves", Pillar::kOccupancy, Level::kTuning,
     "latency", "days", "low", "cuda", "kernel",
     "another tile size, so that the number of blocks is just below a multiple of what fits|"
     "stream-K or a persistent kernel shares the last wave out; a batch of another size",
     ""}};

constexpr double kFewThreads = 1'024;
// A scan, sort or reduction on so small a part of the device can be split: five measured ones took
// 3 to 17 % of their time then.
constexpr double kSmallPart = 0.25, kLongLaunch = 20'000;
constexpr double kLongBag = 256, kThreadsOfUnit = 2048;
constexpr double kWorstTail = 0.15;  // of the launch, idle in its last wave
constexpr double kMostWaves = 6;
constexpr double kNarrow = 64, kTall = 65'536;  // extents of a product of a tall matrix

constexpr RemedyCase kTallSums = {
    "Share a long sum out over more blocks", "hours",
    "PyTorch: parts = a.view(1024, -1, n); torch.bmm(parts.mT, parts).sum(0) for a.T @ a|"
    "CUDA: split-K or stream-K (cuBLASLt, CUTLASS)",
    "the sums are taken in another order"};

constexpr RemedyCase kLongBags = {
    "Share long bags out over more threads", "hours",
    "PyTorch: F.embedding_bag over parts of each bag, then their sum: parts of 128 rows, "
    ".view(bags, parts, -1).sum(1)",
    "the sums are taken in another order"};

const DeviceInfo* device_of(const Facts& facts, const KernelStat& kernel) {
  for (const DeviceInfo& device : facts.profile->environment.devices)
    if (device.name == kernel.device && units_of(device) > 0) return &device;
  return nullptr;
}

// Whether a known roof says that it does well in spite of its size.
bool does_well(const KernelStat& kernel) { return kernel.roof.utilization >= 0.6; }

// Kernels of one op on one problem, such as those of a batch norm, are changed together.
using SmallGrids = std::map<std::pair<std::string, std::string>, Intervention>;

void add_small(const Facts& facts, std::size_t row, double units, SmallGrids& grids) {
  const KernelStat& kernel = facts.rows.kernels[row];
  const auto blocks = static_cast<double>(kernel.launch.blocks());
  const double threads = threads_of(kernel);
  const bool few = threads > 0 && threads <= kFewThreads;
  const double most =
      std::min(1 - blocks / units, kernel.roof.utilization > 0 ? 1 - kernel.roof.utilization : 1.0);
  std::string op = kernel.op.empty() || kernel.shape.empty() ? std::to_string(row) : kernel.op;
  const auto [found, first] = grids.try_emplace({std::move(op), kernel.shape}, Intervention());
  Intervention& out = found->second;
  if (first) out = from_remedy(kGrid[0]);
  const bool splits = blocks <= kSmallPart * units && kernel.name.op_class != "gemm" &&
                      kernel.name.op_class != "conv" && kernel.duration.mean_ns() >= kLongLaunch;
  scale_row(facts, row,
            {splits ? 1 - 0.3 * most : 1,
             1 - (few      ? 0.85
                  : splits ? 0.7
                           : 0.35) *
                     most,
             1 - most},
            out);
  name_kernel(kernel, out);
  out.evidence.push_back({problem_text(kernel),
                          fmt::format("{} of {} for {}, {} a launch", counted(blocks, "block"),
                                      counted(threads / std::max(1.0, blocks), "thread"),
                                      counted(units, "SM"), short_ns(kernel.duration.mean_ns())),
                          "launch"});
  if (kernel.roof.utilization > 0)
    out.evidence.push_back(
        {"of its roof",
         fmt::format("{} of {}", percent(kernel.roof.utilization), clean(kernel.roof.ceiling)),
         "shape model"});
  if (!first) return;
  out.assumptions.emplace_back(
      "the work can be split or joined with other work: if not, the low "
      "estimate holds");
  out.confidence = few ? "B" : "C";
}

// Blocks that run at a time, by the occupancy that the launch permits.
double at_a_time(const KernelStat& kernel, const DeviceInfo& device) {
  const double warps = std::ceil(
      threads_of(kernel) / std::max<double>(1, static_cast<double>(kernel.launch.blocks())) / 32);
  const double slots = 64 * kernel.roof.occupancy_theoretical;
  return warps > 0 && slots > 0 ? std::max(1.0, std::floor(slots / warps)) * units_of(device) : 0;
}

// Of the program's own kernel only the launch is known.
bool of_unknown_work(const KernelStat& kernel) {
  return is_of_program(kernel) && kernel.roof.utilization <= 0 &&
         kernel.duration.mean_ns() >= kLongLaunch;
}

void add_waves(const Facts& facts, std::size_t row, const DeviceInfo& device, Intervention& out) {
  const KernelStat& kernel = facts.rows.kernels[row];
  const double wave = at_a_time(kernel, device), units = units_of(device);
  const bool unknown = of_unknown_work(kernel);
  if (wave <= 0 || kernel.launch_shapes > 1 || (!unknown && kernel.roof.bound != Bound::kCompute))
    return;
  const double blocks = static_cast<double>(kernel.launch.blocks()), waves = blocks / wave;
  const double tail = 1 - waves / std::ceil(waves);
  if (waves <= 1 || waves > kMostWaves || tail < kWorstTail) return;
  // An SM with fewer blocks in its last wave runs each of them faster, where they share its units.
  const double full = std::floor(waves), last = std::ceil((blocks - full * wave) / units);
  const double shared = 1 - waves / (full + last * units / wave);
  scale_row(facts, row, {1, unknown ? 1 - shared : 1 - 0.5 * tail, 1 - tail}, out);
  name_kernel(kernel, out);
  out.evidence.push_back(
      {problem_text(kernel),
       fmt::format("{} in waves of {:.0f}: {:.2f} waves, the last one idles {:.0f}% of the launch",
                   counted(static_cast<double>(kernel.launch.blocks()), "block"), wave, waves,
                   100 * tail),
       "launch"});
}

// A few sums, each over a great many terms: a^T a of a tall matrix.
bool is_tall(const Touch& product) {
  return product.kind == TouchKind::kProduct && product.batch == 1 &&
         std::max(product.m, product.columns) <= kNarrow && product.depth >= kTall;
}
void add_tall(const Facts& facts, std::size_t row, const Touch& product, Advice& advice) {
  const KernelStat& kernel = facts.rows.kernels[row];
  if (kernel.roof.utilization <= 0 || kernel.duration.mean_ns() < kLongLaunch) return;
  const double most = 1 - kernel.roof.utilization;
  Intervention out = from_remedy(kGrid[0], kTallSums);
  scale_row(facts, row, {1, 1 - 0.25 * most, 1 - 0.8 * most}, out);
  name_kernel(kernel, out);
  out.evidence.push_back({problem_text(kernel),
                          fmt::format("{:.0f} results of {} terms each; at {} of {}",
                                      product.m * product.columns, si(product.depth, ""),
                                      percent(kernel.roof.utilization), clean(kernel.roof.ceiling)),
                          "shape model"});
  out.assumptions.emplace_back(
      "the library shares the sum out poorly: else the low estimate holds");
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

// One thread adds up a column of a bag, however long that is.
void add_bags(const Facts& facts, std::size_t row, double threads, double units, Advice& advice) {
  const KernelStat& kernel = facts.rows.kernels[row];
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  const auto rows =
      static_cast<double>(problem["indices"] / std::max<std::int64_t>(1, problem["bags"]));
  if (kernel.duration.mean_ns() < kLongLaunch || rows < kLongBag) return;
  const double most = 1 - std::max(kernel.roof.utilization, threads / (units * kThreadsOfUnit));
  Intervention out = from_remedy(kGrid[0], kLongBags);
  scale_row(facts, row, {1 - 0.3 * most, 1 - 0.8 * most, 1 - most}, out);
  name_kernel(kernel, out);
  out.evidence.push_back(
      {problem_text(kernel),
       fmt::format("{} at work, one for each column of a bag, for {}; {} a bag",
                   counted(threads, "thread"), counted(units, "SM"), counted(rows, "row")),
       "shapes"});
  out.assumptions.emplace_back("the bags are about equally long");
  out.confidence = "C";
  advice.interventions.push_back(std::move(out));
}

void add_grids(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Intervention waves = from_remedy(kGrid[1]);
  SmallGrids small;
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const DeviceInfo* device = device_of(facts, kernel);
    if (device == nullptr || kernel.name.op_class == "communication" || does_well(kernel) ||
        kernel.duration.mean_ns() < kShortLaunch || kernel.launch.blocks() <= 0)
      continue;
    if (const double threads = few_threads_of_bags(facts, kernel); threads > 0) {
      add_bags(facts, i, threads, units_of(*device), advice);
    } else if (is_tall(walk.report_touch(i))) {
      add_tall(facts, i, walk.report_touch(i), advice);
    } else if (static_cast<double>(kernel.launch.blocks()) < 0.75 * units_of(*device)) {
      add_small(facts, i, units_of(*device), small);
    } else {
      add_waves(facts, i, *device, waves);
    }
  }
  for (auto& [problem, one] : small) advice.interventions.push_back(std::move(one));
  if (waves.evidence.empty()) return;
  waves.assumptions.emplace_back(
      "a tile that fits exists: the middle estimate wins half the tail; of an own kernel, what is "
      "left where the blocks of an SM share its units");
  waves.confidence = "C";
  advice.interventions.push_back(std::move(waves));
}

}  // namespace

const Rule kGridRule = {kGrid, add_grids};

}  // namespace purlin::analyze
