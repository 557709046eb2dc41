// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/rows.h"

#include "base/hash.h"
#include "base/text.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace purlin::profile {
namespace {

constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15ull;
// What Kineto derives from the launch shape and the device, by what Purlin calls it.
constexpr std::array<std::string_view, 3> kFigureNames = {
    "kineto.est_achieved_occupancy_pct", "kineto.blocks_per_sm", "kineto.warps_per_sm"};
// PyTorch's note of a collective's parameters, inside the op that the program called.
constexpr std::string_view kCollectiveNote = "record_param_comms";

}  // namespace

RowBuilder::RowBuilder(Records& records, const LinkOptions& options, LinkStats& stats)
    : records_(records), options_(options), stats_(stats), sketches_(options.max_sketch_buckets) {}

// The op that says what is computed is the innermost whose inputs were recorded; without a problem
// shape, the innermost.
RowBuilder::Place RowBuilder::place_of(std::uint32_t op) const {
  if (op == kNone) return {};
  constexpr int kDeepest = 64;
  const auto name_of = [&](std::uint32_t at) {
    const Op& named = records_.ops[at].op;
    const bool note = records_.names[named.name] == kCollectiveNote && named.parent != kNone;
    return note ? records_.ops[named.parent].op.name : named.name;
  };
  std::uint32_t at = op;
  for (int i = 0; at != kNone && i < kDeepest; ++i, at = records_.ops[at].op.parent) {
    const OpRecord& record = records_.ops[at];
    if (!record.has_dims) continue;
    if (!record.is_problem) {
      // A part of its parent, such as aten::cudnn_convolution_backward_weight, has what the whole
      // has, and may not have been given all of it.
      const std::uint32_t parent = record.op.parent;
      if (parent != kNone &&
          starts_with(records_.names[record.op.name], records_.names[records_.ops[parent].op.name]))
        continue;
      break;
    }
    return {name_of(at), record.op.shape, record.op.dtype};
  }
  return {name_of(op), 0, 0};
}

// AMD's kernels have their launch shape with the call.
std::uint32_t RowBuilder::launched_spec(const DeviceRecord& work) {
  const std::uint32_t spec = work.activity.row;
  if (work.activity.call == kNone) return spec;
  const std::uint32_t said = records_.calls[work.activity.call].spec;
  const LaunchShape& own = records_.specs[spec].launch;
  if (said == kNone || (is_known(own.grid) && !(own == LaunchShape{}))) return spec;
  const auto next = static_cast<std::uint32_t>(records_.specs.size());
  const std::uint32_t known =
      merged_specs_.find_or_add((std::uint64_t{spec} << 32 | said) * kMix, next);
  if (known != IdTable::kAbsent) return known;
  TracedKernel merged = records_.specs[spec];
  merged.launch = records_.specs[said].launch;
  records_.specs.push_back(merged);
  return next;
}

std::uint64_t RowBuilder::hash_of(std::uint32_t index) {
  if (spec_hashes_.size() < records_.specs.size()) spec_hashes_.resize(records_.specs.size(), 0);
  std::uint64_t& hash = spec_hashes_[index];
  if (hash != 0) return hash;
  const TracedKernel& spec = records_.specs[index];
  const std::uint32_t numbers[] = {spec.name, spec.registers, spec.static_shared_bytes,
                                   spec.local_bytes, spec.device};
  hash = hash64(&spec.launch, sizeof spec.launch) * kMix + hash64(numbers, sizeof numbers);
  return hash;
}

std::uint32_t RowBuilder::row_of(std::uint32_t index, const Place& place, double launches) {
  const std::uint32_t numbers[] = {place.op, place.shape, place.dtype};
  const std::uint64_t hash = hash_of(index) * kMix + hash64(numbers, sizeof numbers);
  const std::uint32_t known = row_ids_.find(hash);
  if (known != IdTable::kAbsent) return known;
  if (other_row_ != kNone || rows_.size() + 1 >= options_.max_kernel_rows) {
    stats_.kernels_in_other_row += static_cast<std::uint64_t>(launches);
    return other_row(index);
  }
  const auto next = static_cast<std::uint32_t>(rows_.size());
  const TracedKernel& spec = records_.specs[index];
  row_ids_.find_or_add(hash, next);
  KernelRow& row = rows_.emplace_back();
  row.name = records_.names[spec.name];
  row.launch = spec.launch;
  row.registers = spec.registers;
  row.static_shared_bytes = spec.static_shared_bytes;
  row.local_bytes = spec.local_bytes;
  row.op = records_.names[place.op];
  row.shape = records_.names[place.shape];
  row.dtype = records_.names[place.dtype];
  row.device = spec.device < options_.device.size() ? options_.device[spec.device] : 0;
  figures_.emplace_back();
  return next;
}

// What is beyond a bound is together, on the device of the first of it.
std::uint32_t RowBuilder::other_row(std::uint32_t index) {
  if (other_row_ != kNone) return other_row_;
  other_row_ = static_cast<std::uint32_t>(rows_.size());
  const std::uint32_t device = records_.specs[index].device;
  KernelRow& row = rows_.emplace_back();
  row.name = "(other kernels)";
  row.device = device < options_.device.size() ? options_.device[device] : 0;
  figures_.emplace_back();
  return other_row_;
}

void RowBuilder::add(DeviceRecord& work, std::uint32_t op) {
  Activity& activity = work.activity;
  const std::uint32_t spec_index = launched_spec(work);
  const TracedKernel& spec = records_.specs[spec_index];
  Place place = place_of(op);
  if (spec.op != 0) place.op = spec.op;
  if (spec.shape != 0) {
    place.shape = spec.shape;
    place.dtype = spec.dtype;
  }
  ++stats_.kernels;
  const bool from_graph =
      activity.graph != 0 ||
      (activity.call != kNone && records_.calls[activity.call].call.kind == CallKind::kGraphLaunch);
  if (place.op == 0) ++(from_graph ? stats_.graph_kernels : stats_.kernels_without_op);
  activity.row = row_of(spec_index, place, 1);

  const auto duration = static_cast<double>(activity.duration_ns);
  if (!sketches_.add(rows_[activity.row].duration, duration)) {
    ++stats_.kernels_in_other_row;
    activity.row = other_row(spec_index);
    rows_[activity.row].duration.add(duration);
  }
  KernelRow& row = rows_[activity.row];
  const std::int64_t start = activity.start_ns + options_.base_ns;
  row.first_ns = row.duration.count() <= 1 ? start : std::min(row.first_ns, start);
  row.last_ns = std::max(row.last_ns, start + activity.duration_ns);
  Figures& figures = figures_[activity.row];
  const double values[] = {spec.occupancy_pct, spec.blocks_per_sm, spec.warps_per_sm};
  for (std::size_t i = 0; i < kFigures; ++i) {
    if (values[i] == kNoFigure) continue;
    figures.sum[i] += values[i];
    figures.count[i] += 1;
  }
}

void RowBuilder::add_overflow() {
  for (const auto& [spec, durations] : records_.overflow) {
    const std::uint32_t row = row_of(spec, {}, durations.count());
    if (!sketches_.merge(rows_[row].duration, durations)) {
      stats_.kernels_in_other_row += static_cast<std::uint64_t>(durations.count());
      rows_[other_row(spec)].duration.merge(durations);
    }
    stats_.kernels += static_cast<std::uint64_t>(durations.count());
  }
}

void RowBuilder::add_counter(KernelRow& row, std::uint32_t name, double value) {
  const std::string& text = records_.names[name];
  auto at = std::find_if(row.counters.begin(), row.counters.end(),
                         [&](const Counter& counter) { return counter.name == text; });
  if (at == row.counters.end()) at = row.counters.insert(at, Counter{text, 0, 0});
  at->value += (value - at->value) / (at->launches + 1);
  at->launches += 1;
}

// A trace with counters has no kernel records: each range is one launch, replayed, in the order of
// the launching calls. Only where there are as many of both is that order evidence of the op.
std::vector<std::uint32_t> RowBuilder::rows_from_launch_calls() {
  std::vector<std::uint32_t> launches;
  for (std::uint32_t i = 0; i < records_.calls.size(); ++i)
    if (records_.calls[i].call.kind == CallKind::kLaunch) launches.push_back(i);
  const bool in_order = launches.size() == records_.counters.size();
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < records_.counters.size(); ++i) {
    TracedKernel spec;
    spec.name = records_.counters[i].name;
    records_.specs.push_back(spec);
    const Place place = in_order ? place_of(records_.calls[launches[i]].call.op) : Place{};
    rows.push_back(row_of(static_cast<std::uint32_t>(records_.specs.size() - 1), place, 1));
  }
  return rows;
}

void RowBuilder::counters_by_launch(const std::vector<std::uint32_t>& row_of_launch) {
  for (std::size_t i = 0; i < row_of_launch.size(); ++i)
    for (const auto& [name, value] : records_.counters[i].values)
      add_counter(rows_[row_of_launch[i]], name, value);
}

void RowBuilder::add_counters() {
  std::vector<CounterRecord>& counters = records_.counters;
  if (counters.empty()) return;
  std::stable_sort(counters.begin(), counters.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  stats_.counters = counters.size();
  stats_.counters_only = records_.kernels.empty();
  if (stats_.counters_only) {
    counters_by_launch(rows_from_launch_calls());
    return;
  }
  const auto name_of = [&](std::size_t i) -> const std::string& {
    return rows_[records_.kernels[i].activity.row].name;
  };
  bool same = counters.size() == records_.kernels.size();
  for (std::size_t i = 0; same && i < counters.size(); ++i)
    same = name_of(i) == records_.names[counters[i].name];
  if (same) {
    std::vector<std::uint32_t> rows;
    for (const DeviceRecord& record : records_.kernels) rows.push_back(record.activity.row);
    counters_by_launch(rows);
    return;
  }
  // By name, where that names one row.
  std::unordered_map<std::string_view, std::uint32_t> rows;
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const auto [at, added] = rows.emplace(rows_[i].name, i);
    if (!added) at->second = kNone;
  }
  for (const CounterRecord& record : counters) {
    const auto at = rows.find(records_.names[record.name]);
    if (at == rows.end() || at->second == kNone) {
      ++stats_.counters_unplaced;
      continue;
    }
    for (const auto& [name, value] : record.values) add_counter(rows_[at->second], name, value);
  }
}

std::vector<KernelRow> RowBuilder::take() {
  for (std::size_t i = 0; i < rows_.size(); ++i)
    for (std::size_t j = 0; j < kFigures; ++j)
      if (figures_[i].count[j] > 0)
        rows_[i].counters.push_back({std::string(kFigureNames[j]),
                                     figures_[i].sum[j] / figures_[i].count[j],
                                     figures_[i].count[j]});
  return std::move(rows_);
}

}  // namespace purlin::profile
