// SPDX-License-Identifier: Apache-2.0
#include "store/arrival.h"

#include "store/calendar.h"

#include <cmath>
#include <cstdlib>

namespace purlin::store {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::set<std::int64_t> days_of(const Batch& batch) {
  std::set<std::int64_t> days = {day_begin(batch.begin_ns)};
  for (const BatchRow& row : batch.rows) days.insert(day_begin(row.hour_ns));
  for (const BatchCoverage& coverage : batch.coverage) days.insert(day_begin(coverage.hour_ns));
  return days;
}

void move_times(Batch& batch) {
  const auto hours = static_cast<std::int64_t>(
      std::llround(static_cast<double>(batch.skew_ns) / static_cast<double>(kHourNs)));
  const std::int64_t by = hours * kHourNs;
  batch.begin_ns += by, batch.end_ns += by, batch.sent_ns += by;
  for (BatchRow& row : batch.rows) row.hour_ns += by;
  for (BatchCoverage& coverage : batch.coverage) coverage.hour_ns += by;
  batch.skew_ns -= by;
}

std::string short_hash(std::string_view sha256_hex) {
  if (sha256_hex.size() != 64) return "";
  std::string out;
  for (std::size_t i = 0; i < 32; i += 2) {
    const int high = hex_value(sha256_hex[i]), low = hex_value(sha256_hex[i + 1]);
    if (high < 0 || low < 0) return "";
    out += static_cast<char>(high << 4 | low);
  }
  return out;
}

Admission admit(const HashedBatch& batch, std::int64_t max_skew_ns, std::int64_t horizon_ns) {
  Admission admission;
  if (short_hash(batch.hash).empty())
    admission.status = error(Code::kInvalid, "'{}' is no SHA-256", batch.hash);
  admission.days = days_of(batch.batch);
  admission.quarantined = std::abs(batch.batch.skew_ns) > max_skew_ns;
  admission.too_old = !admission.quarantined && *admission.days.begin() < horizon_ns;
  return admission;
}

}  // namespace purlin::store
