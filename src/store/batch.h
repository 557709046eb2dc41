// SPDX-License-Identifier: Apache-2.0
// Batch: what a node's collector saw in one period: rows of launches, coverage, what was shed.
//
// encode() writes one zstd frame; docs/formats/batch.md is the reference. The batch's identity is
// the SHA-256 of these bytes. decode() takes bytes of strangers: what they may cost is in Limits.
// Plain values. Failure: kInvalid where the bytes are no batch or over a limit, kCorrupt where a
// newer Purlin wrote them.
#pragma once

#include "base/status.h"
#include "model/profile/run_labels.h"
#include "model/profile/sketch.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

struct BatchDevice {
  std::string uuid;   // of the GPU, or of the MIG instance
  std::string model;  // "NVIDIA H200"
  std::string mig;    // "1g.10gb"; "" for a whole GPU
  int ordinal = 0;
  std::string driver;   // "580.159.04"
  std::string runtime;  // "CUDA 13.0": toolkit or runtime of the programs
  bool operator==(const BatchDevice&) const = default;
};

struct BatchRun {
  std::string build;  // the user's label of the code
  std::string command;
  RunLabels labels;  // job, scheduler, pod, container, user; its host is the batch's node
  int rank = -1, world = 0;
  bool operator==(const BatchRun&) const = default;
};

// Launches of one kernel with one problem shape, of one run on one device, within one hour.
struct BatchRow {
  std::int64_t hour_ns = 0;  // its begin, wall clock
  std::string kernel;        // readable
  std::string raw_kernel;    // as recorded; "" where it is the same
  std::string role;          // "attention", "mlp", "communication"; "" where unknown
  std::string op, shape, dtype;
  std::uint32_t device = 0, run = 0;  // indices into the batch's lists
  Sketch duration;                    // weights undo sampling
  double recorded = 0;                // launches whose duration was measured
  bool operator==(const BatchRow& other) const;
};

// How much of a device's time was seen, in one hour.
struct BatchCoverage {
  std::int64_t hour_ns = 0;
  std::uint32_t device = 0;
  double busy_ns = 0;  // of the device, by its driver
  double seen_ns = 0;  // in which launches would have been recorded
  double launches_seen = 0, launches_lost = 0, launches_sampled_out = 0;
  double overhead_ns = 0;
  double bad_timestamps = 0;
  std::string why;  // the main cause of what was not seen, "" for none
  bool operator==(const BatchCoverage&) const = default;
};

// What the node could not keep, of one cause. Totals since the boot.
struct BatchShed {
  std::string cause;  // "spool_full", "too_old"
  std::uint64_t batches = 0, rows = 0, raw_bytes = 0;
  bool operator==(const BatchShed&) const = default;
};

// How full the spool of a node's collector was when the batch was made: batches and raw profiles
// that wait for the server.
struct SpoolFill {
  std::uint64_t bytes = 0;
  std::uint64_t limit_bytes = 0;  // 0: not stated, as by an older collector
  bool operator==(const SpoolFill&) const = default;
};

// A profile or timeline under its content address (store/raws.h).
struct RawPointer {
  std::string sha256;  // 64 hexadecimal digits
  std::uint64_t bytes = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string kind;  // "profile", "timeline", "exemplar"
  std::uint32_t run = 0;
  std::string kernel;  // what it is an exemplar of; "" for all
  bool operator==(const RawPointer&) const = default;
};

struct Batch {
  std::string node;                                    // host name or configured id
  std::string boot;                                    // of the collector's machine
  std::uint64_t sequence = 0;                          // counts up per node and boot
  std::int64_t begin_ns = 0, end_ns = 0, sent_ns = 0;  // the node's wall clock
  // Time of receipt less the node's time of sending. The server fills it; it is not in the bytes.
  // sent_ns is when the bytes were written: a batch that waited in a spool is sent later, and its
  // request states when (header X-Purlin-Sent).
  std::int64_t skew_ns = 0;
  std::string tool_version;
  double collector_cpu_ns = 0;  // CPU time of the collector in the period
  std::uint64_t collector_rss_bytes = 0;
  std::vector<BatchDevice> devices;
  std::vector<BatchRun> runs;
  std::vector<BatchRow> rows;
  std::vector<BatchCoverage> coverage;
  std::vector<BatchShed> shed;
  SpoolFill spool;
  std::vector<RawPointer> raws;
  bool operator==(const Batch&) const = default;
};

struct Limits {
  std::size_t max_bytes = std::size_t{8} << 20;        // of the frame
  std::size_t max_body_bytes = std::size_t{64} << 20;  // of its contents
  std::size_t max_buckets = std::size_t{8} << 20;      // of all sketches together
  std::size_t max_rows = 200'000;
  // Of all texts as often as rows name them: a row of 9 bytes can name one of 64 KiB six times.
  std::size_t max_named_bytes = std::size_t{128} << 20;
  std::size_t max_text_bytes = 64 << 10;  // of one text; a node has at most 200
};

Result<std::string> encode(const Batch& batch);
Result<Batch> decode(std::string_view bytes, const Limits& limits = {});

}  // namespace purlin::store
