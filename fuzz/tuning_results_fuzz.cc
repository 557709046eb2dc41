// SPDX-License-Identifier: Apache-2.0
// Results of tuning come from other people and other tools: any bytes give recordings or a Status,
// and what was read can be written in every format and read again with as many configs.
#include "base/gzip.h"
#include "tune/records/export.h"
#include "tune/records/recordings.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (purlin::is_gzip(bytes)) return 0;  // gunzip has its own target
  const auto recordings = purlin::tune::parse_recordings(bytes);
  if (!recordings.is_ok()) return 0;
  for (const purlin::gpu::Recording& recording : *recordings)
    for (const char* format : {"kernel-tuner", "t4", "csv", "json"}) {
      const auto text = purlin::tune::export_recording(recording, format);
      if (!text.is_ok()) __builtin_trap();
      if (std::string_view(format) != "json") continue;
      const auto again = purlin::tune::parse_recordings(*text);
      if (!again.is_ok() || again->front().runs.size() != recording.runs.size()) __builtin_trap();
    }
  return 0;
}
