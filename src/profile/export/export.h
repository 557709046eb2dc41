// SPDX-License-Identifier: Apache-2.0
// A profile's timeline in open formats: Chrome's trace events as PyTorch writes them, Perfetto's
// protobuf trace, CSV of launches, stacks of pprof. Formats: docs/formats/export.md.
//
// Everything is written as it is read, in pieces of about a megabyte; memory grows with the
// timeline by one bit for each call only. Every activity, call, op and range becomes one event;
// those that overlap on one stream or thread without nesting go to further tracks of it, because
// viewers drop them otherwise. Pure functions; errors are the sink's, or kInvalid where there is no
// timeline to write.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace purlin::profile {

using ExportSink = std::function<Status(std::string_view)>;

struct ExportCounts {
  std::uint64_t events = 0;  // activities, calls, ops, ranges
  std::uint64_t links = 0;   // from a call to the work it launched
  std::uint64_t tracks = 0;
};

Result<ExportCounts> export_chrome(const Profile& profile, const ExportSink& sink);
Result<ExportCounts> export_perfetto(const Profile& profile, const ExportSink& sink);
Result<ExportCounts> export_csv(const Profile& profile, const ExportSink& sink);
// GPU time as stacks for pprof: device, ops, kernel. Takes a profile of sums alone, too; kInvalid
// where there is no GPU work. `events` counts samples, `tracks` names. Memory grows with the
// stacks.
Result<ExportCounts> export_pprof(const Profile& profile, const ExportSink& sink);

}  // namespace purlin::profile
