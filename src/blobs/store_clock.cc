// SPDX-License-Identifier: Apache-2.0
#include "blobs/store_clock.h"

#include "base/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace purlin::blobs {
namespace {

constexpr std::int64_t kNoDifferenceNs = 2'000'000'000;
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  constexpr std::string_view kForm = "Mon, 23 Nov 2026 23:07:09 GMT";
  if (text.size() != kForm.size() || text.substr(3, 2) != ", " || text[7] != ' ' ||
      text[11] != ' ' || text[16] != ' ' || text.substr(25) != " GMT")
    return std::nullopt;
  const auto* const month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  if (month == kMonths.end()) return std::nullopt;
  return parse_rfc3339(fmt::format("{}-{:02}-{}T{}Z", text.substr(12, 4),
                                   month - kMonths.begin() + 1, text.substr(5, 2),
                                   text.substr(17, 8)));
}

void to_local_clock(std::span<BlobInfo> objects, std::int64_t store_now_ns,
                    std::int64_t local_now_ns) {
  std::int64_t ahead = 0;  // of the store's clock
  const bool told = !__builtin_sub_overflow(store_now_ns, local_now_ns, &ahead);
  if (told && ahead >= -kNoDifferenceNs && ahead <= kNoDifferenceNs) return;
  for (BlobInfo& object : objects) {
    if (object.modified_ns == 0) continue;
    std::int64_t put_right = 0;
    if (!told || __builtin_sub_overflow(object.modified_ns, ahead, &put_right) || put_right < 0)
      put_right = 0;
    object.modified_ns = put_right;
  }
}

}  // namespace purlin::blobs
