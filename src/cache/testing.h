// SPDX-License-Identifier: Apache-2.0
// For tests alone: a folder that goes away, and an entry to vary.
#pragma once

#include "base/files.h"
#include "cache/entry/entry.h"

#include <cstdlib>
#include <string>

namespace purlin::cache {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(make_temporary_directory("purlin-cache-test").value()) {}
  ~TemporaryDirectory() {
    if (!remove_tree(path_).is_ok()) std::abort();
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A winner of gemm for `m` x 1024 x 512, M bucketed by powers of two.
inline Entry sample_entry(std::int64_t m = 1024, std::int64_t bm = 64) {
  Entry entry;
  const std::int64_t bucket = BucketRule::parse("pow2")->apply(m);
  entry.key = {"gemm",   "gemm",   "f32",         fmt::format("M={},N=1024,K=512", bucket),
               "cuda",   "sm_90",  "NVIDIA H200", "NVRTC 13.0",
               "580.95", "0123ab", "warm",        "A=row,B=row,C=row"};
  entry.config.set("BM", bm);
  entry.config.set("UNROLL", true);
  entry.config.set("ALPHA", 0.5);
  entry.config.set("LAYOUT", std::string("nt"));
  entry.problem.set("M", m);
  entry.problem.set("N", 1024);
  entry.problem.set("K", 512);
  entry.bucket_rules = {{"M", *BucketRule::parse("pow2")}, {"N", {}}, {"K", {}}};
  entry.time_ms = 0.25;
  entry.samples = {{0.24, 1980}, {0.25, 1965}, {0.26, 1980}};
  entry.default_time_ms = 0.75;
  entry.runner_up_ms = 0.26;
  entry.ties = {entry.config};
  entry.evaluations = 321;
  entry.verified = true;
  entry.tool_version = "0.1.0";
  entry.host = "node7";
  entry.user = "ada";
  entry.recorded_at = "2026-11-20T12:00:00Z";
  entry.strategy = "exhaustive";
  return entry;
}

}  // namespace purlin::cache
