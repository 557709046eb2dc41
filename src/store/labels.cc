// SPDX-License-Identifier: Apache-2.0
#include "store/labels.h"

namespace purlin::store {
namespace {

class EntryTable {
 public:
  explicit EntryTable(std::vector<BatchLabels::Entry>& entries) : entries_(entries) {}
  std::uint32_t number(Kind kind, const Fields& fields) {
    std::string key = join_fields(fields);
    key += static_cast<char>(kind);
    const auto [at, is_new] =
        numbers_.emplace(std::move(key), static_cast<std::uint32_t>(entries_.size()));
    if (is_new) {
      entries_.emplace_back(kind, at->first);
      entries_.back().second.pop_back();
    }
    return at->second;
  }

 private:
  std::vector<BatchLabels::Entry>& entries_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

std::string join_fields(const Fields& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += '\t';
    for (const char c : fields[i]) {
      if (c == '\\')
        out += "\\\\";
      else if (c == '\t')
        out += "\\t";
      else if (c == '\n')
        out += "\\n";
      else if (c == '\0')
        out += "\\0";
      else
        out += c;
    }
  }
  return out;
}

Fields split_fields(std::string_view text) {
  Fields fields(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\t') {
      fields.emplace_back();
    } else if (text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      fields.back() += next == 't' ? '\t' : next == 'n' ? '\n' : next == '0' ? '\0' : next;
    } else {
      fields.back() += text[i];
    }
  }
  return fields;
}

Place place_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::kKernel:
      return {Kind::kKernel, 0};
    case Dimension::kRaw:
      return {Kind::kKernel, 1};
    case Dimension::kRole:
      return {Kind::kKernel, 2};
    case Dimension::kOp:
      return {Kind::kProblem, 0};
    case Dimension::kShape:
      return {Kind::kProblem, 1};
    case Dimension::kDtype:
      return {Kind::kProblem, 2};
    case Dimension::kModel:
      return {Kind::kPlatform, 0};
    case Dimension::kMig:
      return {Kind::kPlatform, 1};
    case Dimension::kDriver:
      return {Kind::kPlatform, 2};
    case Dimension::kRuntime:
      return {Kind::kPlatform, 3};
    case Dimension::kBuild:
      return {Kind::kBuild, 0};
    case Dimension::kJob:
      return {Kind::kJob, 0};
    case Dimension::kNode:
      return {Kind::kUnit, 0};
    case Dimension::kGpu:
      return {Kind::kUnit, 1};
  }
  return {Kind::kKernel, 0};
}

KindFilter::KindFilter(const Filter& filter, Kind kind) {
  for (int i = 0; i < kDimensions; ++i) {
    const auto dimension = static_cast<Dimension>(i);
    const Place place = place_of(dimension);
    if (place.kind == kind && filter[dimension])
      asked_.emplace_back(place.field, *filter[dimension]);
  }
}

bool KindFilter::matches(const Fields& fields) const {
  for (const auto& [field, wanted] : asked_) {
    const std::string& value = field < fields.size() ? fields[field] : wanted;
    if (value != wanted) return false;
  }
  return true;
}

std::string job_of(const RunLabels& labels) {
  if (!labels.job.empty())
    return labels.scheduler.empty() ? labels.job : labels.scheduler + " " + labels.job;
  if (!labels.pod.empty()) return "pod " + labels.pod;
  return labels.container.empty() ? "" : "container " + labels.container;
}

BatchLabels labels_of(const Batch& batch) {
  BatchLabels labels;
  EntryTable table(labels.entries);
  struct OfDevice {
    std::uint32_t platform, unit;
  };
  struct OfRun {
    std::uint32_t build, job;
  };
  std::vector<OfDevice> devices;
  std::vector<OfRun> runs;
  for (const BatchDevice& device : batch.devices)
    devices.push_back(
        {table.number(Kind::kPlatform, {device.model, device.mig, device.driver, device.runtime}),
         table.number(Kind::kUnit, {batch.node, device.uuid})});
  for (const BatchRun& run : batch.runs)
    runs.push_back(
        {table.number(Kind::kBuild, {run.build}), table.number(Kind::kJob, {job_of(run.labels)})});
  for (const BatchRow& row : batch.rows) {
    const std::string& raw = row.raw_kernel.empty() ? row.kernel : row.raw_kernel;
    labels.rows.push_back({{table.number(Kind::kKernel, {row.kernel, raw, row.role}),
                            table.number(Kind::kProblem, {row.op, row.shape, row.dtype}),
                            devices[row.device].platform, runs[row.run].build, runs[row.run].job,
                            devices[row.device].unit}});
  }
  for (const BatchCoverage& coverage : batch.coverage)
    labels.coverage.push_back({devices[coverage.device].platform, devices[coverage.device].unit,
                               table.number(Kind::kWhy, {coverage.why})});
  return labels;
}

}  // namespace purlin::store
