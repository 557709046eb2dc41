// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/fold.h"

#include <map>

namespace purlin::store {
namespace {

constexpr int kAnySlot = 366;
constexpr auto kUnitKind = static_cast<std::size_t>(Kind::kUnit);

std::string text_of(const PeriodReader& source, std::uint32_t entry) {
  return join_fields(source.entries()[entry].fields);
}

Status fold_rows(PeriodReader& source, int scale, FoldedRows& out) {
  std::map<PeriodReader::SeriesRow, std::size_t> numbers;
  return source.scan(0, kAnySlot, source.matching({}), [&](const PeriodReader::Row& row) -> Status {
    PeriodReader::SeriesRow key = source.series()[row.series];
    key[kUnitKind] = 0;
    const auto [at, is_new] = numbers.emplace(key, out.rows.size());
    if (is_new) {
      LabelledRow& folded = out.rows.emplace_back();
      for (std::size_t kind = 0; kind < kSeriesKinds; ++kind)
        if (kind != kUnitKind) folded.texts[kind] = text_of(source, key[kind]);
      folded.sketch = BucketSum(scale);
    }
    LabelledRow& folded = out.rows[at->second];
    folded.launches += row.launches;
    folded.recorded += row.recorded;
    if (folded.sketch.add(row.sketch)) return Status::ok();
    return error(Code::kCorrupt, "{}: the sketch of series {} in slot {} is damaged", source.path(),
                 row.series, row.slot);
  });
}

Status fold_coverage(PeriodReader& source, FoldedRows& out) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, CoverageAmounts> sums;
  PURLIN_TRY(source.scan_coverage(0, kAnySlot, [&](const CoverageRow& row) {
    CoverageAmounts& sum = sums[{row.platform, row.why}];
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row.amounts[i];
    return Status::ok();
  }));
  for (const auto& [key, amounts] : sums)
    out.coverage.push_back({text_of(source, key.first), "", text_of(source, key.second), amounts});
  return Status::ok();
}

}  // namespace

Result<FoldedRows> fold(PeriodReader& source, int scale) {
  FoldedRows out;
  Status status = source.begin();
  if (status.is_ok()) status = fold_rows(source, scale, out);
  if (status.is_ok()) status = fold_coverage(source, out);
  Result<std::int64_t> revision = source.revision();
  source.end();
  source.forget();
  PURLIN_TRY(status);
  PURLIN_ASSIGN(out.revision, revision);
  return out;
}

}  // namespace purlin::store
