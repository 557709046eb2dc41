// SPDX-License-Identifier: Apache-2.0
// Batches of nodes: any bytes are refused, or are a batch that is written and read back the same.
// The first byte says whether the rest is a frame or the contents of one.
#include "store/batch.h"
#include "store/zstd_frame.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) bytes = store::zstd_frame(bytes).value();
  store::Limits limits;
  limits.max_body_bytes = 1 << 20;
  limits.max_buckets = 1 << 16;
  limits.max_named_bytes = 1 << 20;
  const Result<store::Batch> batch = store::decode(bytes, limits);
  if (!batch.is_ok()) return 0;
  const Result<std::string> written = store::encode(*batch);
  if (!written.is_ok()) std::abort();
  const Result<store::Batch> again = store::decode(*written);
  if (!again.is_ok() || !(*again == *batch)) std::abort();
  return 0;
}
