// SPDX-License-Identifier: Apache-2.0
// A capture of a stranger that grows while a collector reads it. However it is cut, what is read in
// pieces is what is read at once.
#include "profile/format/tail.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using purlin::profile::Bytes;
using purlin::profile::ProfileTail;

// Launches so far; negative where the file was refused.
double launches(ProfileTail& tail, std::string_view bytes) {
  const auto parts = tail.read(Bytes::over(bytes));
  if (!parts.is_ok()) return -1;
  double total = 0;
  for (const auto& part : *parts)
    for (const purlin::KernelRow& row : part.profile.kernels) total += row.duration.count();
  return total;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const purlin::profile::TailLimits limits{.max_rows = 1000, .max_chunk_bytes = 1 << 20};
  ProfileTail whole(0, limits), pieces(0, limits);
  const double all = launches(whole, bytes);
  double sum = 0;
  bool refused = false;
  for (const std::size_t cut : {size / 3, size / 2, size}) {
    const double some = launches(pieces, bytes.substr(0, cut));
    refused = refused || some < 0;
    sum += some;
  }
  if (all >= 0 && !refused && std::abs(all - sum) > 1e-6 * (1 + std::abs(all))) std::abort();
  if (all >= 0 && whole.offset() > size) std::abort();
  return 0;
}
