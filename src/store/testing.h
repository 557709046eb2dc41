// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: made-up batches of a fleet, from numbers.
#pragma once

#include "base/sha256.h"
#include "store/store.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

namespace purlin::store {

// 2024-02-20T00:00:00Z, of a leap year; March begins 10 days later.
constexpr std::int64_t kMadeUpDayNs = 1'708'387'200'000'000'000;

inline HashedBatch hashed(Batch batch) {
  const std::string bytes = encode(batch).value();
  return {sha256_hex(bytes), std::move(batch)};
}

// One period of 10 s of a node with `gpus` GPUs, that begins at `begin_ns`.
struct MadeUpFleet {
  int kernels = 8, shapes = 3, gpus = 2;
  std::string build = "b1", driver = "580.1", model = "NVIDIA H200", job = "4711";
  double slower = 1;
  std::mt19937_64 random{7};

  Batch batch(const std::string& node, std::uint64_t sequence, std::int64_t begin_ns) {
    Batch batch;
    batch.node = node;
    batch.boot = "boot-" + node;
    batch.sequence = sequence;
    batch.begin_ns = begin_ns;
    batch.end_ns = begin_ns + 9'999'999'999;
    batch.sent_ns = batch.end_ns + 1;
    batch.tool_version = "0.1.0";
    batch.collector_cpu_ns = 1'000'000;
    batch.collector_rss_bytes = 30 << 20;
    for (int gpu = 0; gpu < gpus; ++gpu)
      batch.devices.push_back(
          {fmt::format("GPU-{}-{}", node, gpu), model, "", gpu, driver, "CUDA 13.0"});
    BatchRun run;
    run.build = build;
    run.command = "train";
    run.labels.host = node, run.labels.scheduler = "slurm", run.labels.job = job;
    batch.runs.push_back(run);
    const std::int64_t hour = begin_ns - begin_ns % kHourNs;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      for (int kernel = 0; kernel < kernels; ++kernel)
        for (int shape = 0; shape < shapes; ++shape)
          batch.rows.push_back(row(hour, kernel, shape, static_cast<std::uint32_t>(gpu)));
      batch.coverage.push_back({hour, static_cast<std::uint32_t>(gpu), 8e9, 9e9, 100, 1, 2, 1e6, 0,
                                gpu == 0 ? "" : "stood_aside"});
    }
    return batch;
  }

 private:
  BatchRow row(std::int64_t hour, int kernel, int shape, std::uint32_t gpu) {
    BatchRow row;
    row.hour_ns = hour;
    row.kernel = fmt::format("gemm_{}<float>", kernel);
    row.raw_kernel = fmt::format("_Z6gemm_{}IfEvv", kernel);
    row.role = kernel % 2 == 0 ? "attention" : "mlp";
    row.op = "gemm";
    row.shape = fmt::format("m={},n=64,k=32", 1 << shape);
    row.dtype = "bf16";
    row.device = gpu;
    const double mean = 1000.0 * (kernel + 1) * (shape + 1) * slower;
    for (int i = 0; i < 5; ++i)
      row.duration.add(
          std::floor(mean * (0.95 + 0.1 * static_cast<double>(random() % 1000) / 1000)));
    row.recorded = 5;
    return row;
  }
};

}  // namespace purlin::store
