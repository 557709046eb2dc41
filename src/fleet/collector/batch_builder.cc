// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/batch_builder.h"

#include "base/text.h"
#include "base/version.h"
#include "fleet/analysis/role.h"
#include "fleet/analysis/stored_name.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kRowHourNs = 3'600'000'000'000, kMaxAheadNs = 60'000'000'000;
// Older periods are of a wrong clock: a batch spans 40 days at most.
constexpr std::int64_t kMaxBehindNs = 30 * 24 * kRowHourNs;
constexpr std::size_t kRowsOfBatch = 20'000, kMaxNames = 20'000;
constexpr std::size_t kMaxCommandBytes = 1024;
constexpr std::string_view kOtherKernels = "(other kernels)";

std::string cut(std::string_view text, std::size_t bytes) {
  return std::string(text.substr(0, bytes));
}

// "cuda:3" -> 3
int ordinal_of(const DeviceInfo& device) {
  const std::size_t colon = device.id.rfind(':');
  if (colon == device.id.npos) return -1;
  return static_cast<int>(parse_int(device.id.substr(colon + 1)).value_or(-1));
}

// The cause that took most time, else the first one.
std::string main_cause(const std::vector<CoverageNote>& notes) {
  const auto most = std::max_element(
      notes.begin(), notes.end(),
      [](const CoverageNote& a, const CoverageNote& b) { return a.seconds < b.seconds; });
  return most == notes.end() ? std::string() : most->cause;
}

// Of the time in which a capture worked, the share with recording on.
double seen_share(const Coverage& coverage) {
  const Sampling& sampling = coverage.sampling;
  return sampling.governed_ns > 0 ? std::min(1.0, sampling.recorded_ns / sampling.governed_ns) : 1;
}

// Those that the capture lost, and those of times in which it was off.
double lost_launches(const Coverage& coverage) {
  const double known =
      coverage.launches_seen + coverage.launches_sampled_out + coverage.launches_lost;
  return coverage.launches_lost + std::max(0.0, coverage.launches_counted - known);
}

// Of the launches that a process made, the share whose duration was measured.
double measured_share(const Coverage& coverage) {
  const double all = coverage.launches_seen + coverage.launches_sampled_out;
  return all > 0 ? coverage.launches_seen / all : 1;
}

// What is read after a restart may be of an earlier hour than the batch, and clocks are set back. A
// batch has the hours of all its rows.
void widen(store::Batch& batch) {
  batch.begin_ns = std::min(batch.begin_ns, batch.end_ns);
  const auto include = [&batch](std::int64_t hour_ns) {
    batch.begin_ns = std::min(batch.begin_ns, hour_ns);
    batch.end_ns = std::max(batch.end_ns, hour_ns);
  };
  for (const store::BatchRow& row : batch.rows) include(row.hour_ns);
  for (const store::BatchCoverage& coverage : batch.coverage) include(coverage.hour_ns);
}

}  // namespace

std::uint32_t BatchBuilder::device_of(const DeviceInfo& info) {
  store::BatchDevice device;
  device.uuid = info.uuid.empty() ? info.id : info.uuid;
  device.model = info.name;
  device.ordinal = std::max(0, ordinal_of(info));
  device.driver = info.driver;
  device.runtime = info.toolkit;
  const auto known = std::find(devices_.begin(), devices_.end(), device);
  if (known != devices_.end()) return static_cast<std::uint32_t>(known - devices_.begin());
  devices_.push_back(std::move(device));
  return static_cast<std::uint32_t>(devices_.size() - 1);
}

store::BatchRun BatchBuilder::describe(const ProcessInfo* process, const std::string& build,
                                       int ordinal) {
  store::BatchRun run;
  run.build = build;
  if (process != nullptr) {
    run.command = cut(process->command, kMaxCommandBytes);
    run.labels = process->labels;
    run.rank = process->rank;
    run.world = process->world_size;
  }
  places_.complete(run.labels, ordinal);
  return run;
}

std::uint32_t BatchBuilder::index_of(store::BatchRun run) {
  const auto known = std::find(runs_.begin(), runs_.end(), run);
  if (known != runs_.end()) return static_cast<std::uint32_t>(known - runs_.begin());
  runs_.push_back(std::move(run));
  return static_cast<std::uint32_t>(runs_.size() - 1);
}

const std::string& BatchBuilder::name_of(const std::string& raw) {
  if (const auto known = names_.find(raw); known != names_.end()) return known->second;
  if (names_.size() >= kMaxNames) names_.clear();
  return names_[raw] = analysis::stored_name(analyze::describe_kernel(raw), raw);
}

void BatchBuilder::add_row(const KernelRow& row, double measured, std::int64_t hour_ns,
                           std::uint32_t device, std::uint32_t run) {
  RowKey key{
      hour_ns, cut(row.name, analysis::kMaxKernelBytes), row.op, row.shape, row.dtype, device, run};
  auto found = rows_.find(key);
  const bool full = found == rows_.end() && rows_.size() >= max_rows_;
  if (full) key = {hour_ns, std::string(kOtherKernels), "", "", "", device, run};
  store::BatchRow& into = rows_[key];
  if (into.kernel.empty()) {
    const std::string& raw = std::get<1>(key);
    into.hour_ns = hour_ns;
    into.kernel = full ? raw : name_of(raw);
    into.raw_kernel = into.kernel == raw ? std::string() : raw;
    into.role = full ? "" : analysis::role_of(raw, std::get<2>(key));
    into.op = std::get<2>(key);
    into.shape = std::get<3>(key);
    into.dtype = std::get<4>(key);
    into.device = device;
    into.run = run;
  }
  into.duration.merge(row.duration);
  into.recorded += row.duration.count() * measured;
}

// Counts are of a process: they are shared among its devices by the time of their kernels.
void BatchBuilder::add_coverage(const profile::TailPart& part, std::int64_t hour_ns, bool bad_time,
                                const std::map<std::uint32_t, double>& busy) {
  const Coverage& coverage = part.profile.coverage;
  double total = 0;
  for (const auto& [device, ns] : busy) total += ns;
  for (const auto& [device, ns] : busy) {
    const double share = total > 0 ? ns / total : 1 / static_cast<double>(busy.size());
    store::BatchCoverage& into = coverage_[{hour_ns, device}];
    into.hour_ns = hour_ns;
    into.device = device;
    into.busy_ns += ns;
    into.seen_ns += ns * seen_share(coverage);
    into.launches_seen += coverage.launches_seen * share;
    into.launches_lost += lost_launches(coverage) * share;
    into.launches_sampled_out += coverage.launches_sampled_out * share;
    into.overhead_ns += coverage.overhead_ns * share;
    into.bad_timestamps += bad_time ? share : 0;
    if (const std::string why = main_cause(coverage.notes); !why.empty()) into.why = why;
  }
}

void BatchBuilder::add(const profile::TailPart& part, std::int64_t now_ns) {
  const bool bad_time = part.end_ns < now_ns - kMaxBehindNs || part.end_ns > now_ns + kMaxAheadNs;
  const std::int64_t hour_ns = (bad_time ? now_ns : part.end_ns) / kRowHourNs * kRowHourNs;
  const std::vector<DeviceInfo>& devices = part.profile.environment.devices;
  std::map<std::uint32_t, double> busy;
  const double measured = measured_share(part.profile.coverage);
  const ProcessInfo* const process =
      part.profile.processes.empty() ? nullptr : &part.profile.processes.front();
  for (const KernelRow& row : part.profile.kernels) {
    const auto index = static_cast<std::size_t>(std::max(0, row.device));
    const DeviceInfo info = index < devices.size() ? devices[index] : DeviceInfo();
    const std::uint32_t device = device_of(info);
    const std::string& build = row.build.empty() ? part.profile.environment.build : row.build;
    add_row(row, measured, hour_ns, device, index_of(describe(process, build, ordinal_of(info))));
    busy[device] += row.duration.total_ns();
  }
  if (busy.empty() && !devices.empty()) busy[device_of(devices.front())] = 0;
  add_coverage(part, hour_ns, bad_time, busy);
}

std::vector<store::Batch> BatchBuilder::batches(const BatchFacts& facts,
                                                const std::vector<RawCapture>& raws) const {
  std::vector<store::Batch> all;
  auto row = rows_.begin();
  do {
    store::Batch batch;
    batch.node = facts.node;
    batch.begin_ns = facts.begin_ns;
    batch.end_ns = batch.sent_ns = facts.end_ns;
    batch.tool_version = version();
    batch.devices = devices_;
    batch.runs = runs_;
    batch.spool = facts.spool;
    for (; row != rows_.end() && batch.rows.size() < kRowsOfBatch; ++row)
      batch.rows.push_back(row->second);
    if (all.empty()) {
      batch.collector_cpu_ns = facts.collector_cpu_ns;
      batch.collector_rss_bytes = facts.collector_rss_bytes;
      for (const auto& [key, coverage] : coverage_) batch.coverage.push_back(coverage);
      for (const RawCapture& raw : raws) {
        store::RawPointer& pointer = batch.raws.emplace_back(raw.pointer);
        pointer.run = static_cast<std::uint32_t>(batch.runs.size());
        batch.runs.push_back(raw.run);
      }
    }
    all.push_back(std::move(batch));
    widen(all.back());
  } while (row != rows_.end());
  return all;
}

void BatchBuilder::clear() {
  devices_.clear();
  runs_.clear();
  rows_.clear();
  coverage_.clear();
}

}  // namespace purlin::fleet
