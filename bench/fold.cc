// SPDX-License-Identifier: Apache-2.0
// bench_fold [RECORDS [REPEATS]]: what a CUPTI record costs the capture, without a GPU. Buffers of
// made-up CONCURRENT_KERNEL records go through ActivityAggregator as CUPTI would give them back,
// with a seal after every 250,000; beside it the least that a consumer can do, walking the buffer.
// Best of REPEATS (default 5) of RECORDS (default 2 million) each.
//
// Processor time; aggregation is of the thread that CUPTI calls, sealing of the session's. Exit
// code 1 where a launch takes more than 8 bytes on disk, but of thousands of launch shapes: those
// take sketches, too.
#include "profile/capture/cuda/activity/records_for_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <time.h>
#include <vector>

using namespace purlin::profile::capture;
using namespace purlin::profile::capture::cuda;

namespace {

// A program that launches its kernels one after the other, again and again.
struct Program {
  const char* name;
  std::size_t kernels, names;  // different launches, and names among them
  std::uint32_t graph, streams;
  double gap_ns, duration_ns;
};

constexpr std::size_t kPerBuffer = Buffers::kBytes / sizeof(CUpti_ActivityKernel10);

class Records {
 public:
  explicit Records(const Program& program) : program_(program) {
    // As PyTorch's are: long, and alike at their beginning.
    for (std::size_t i = 0; i < program.names; ++i)
      names_.push_back(
          "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_" +
          std::to_string(i) + std::string(program.names > 1 ? 140 : 0, 'x') +
          "<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor<float>)");
  }
  // Fills a buffer with the next `count` records.
  void fill(std::uint8_t* bytes, std::size_t count) {
    std::normal_distribution<double> noise(1, 0.05);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t kernel = at_++ % program_.kernels;
      CUpti_ActivityKernel10 record = {};
      record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      record.name = names_[kernel % names_.size()].c_str();
      record.gridX = static_cast<std::int32_t>(1 + kernel / names_.size());
      record.gridY = record.gridZ = record.blockY = record.blockZ = 1;
      record.blockX = 128;
      record.registersPerThread = 32;
      record.streamId = static_cast<std::uint32_t>(7 + at_ / 3 % program_.streams);
      record.graphId = program_.graph;
      record.graphNodeId = kernel;
      record.correlationId = static_cast<std::uint32_t>(at_);
      const double part = 1 + static_cast<double>(kernel % 7);
      const auto length = static_cast<std::uint64_t>(program_.duration_ns * part * noise(random_));
      record.start = clock_ += static_cast<std::uint64_t>(program_.gap_ns * noise(random_));
      record.end = clock_ += length / 32 * 32;  // the clock of an H200
      std::memcpy(bytes + i * sizeof record, &record, sizeof record);
    }
  }

 private:
  const Program& program_;
  std::vector<std::string> names_;
  std::mt19937_64 random_{3};
  std::size_t at_ = 0;
  std::uint64_t clock_ = 1'795'345'187'000'000'000;
};

struct Cost {
  double walk_ns = 1e9, fold_ns = 1e9, seal_ns = 1e9, bytes = 0;
};

// Of this thread's processor time: the machine may be busy.
double now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double since_ns(double began) { return now_ns() - began; }

Cost cost_of(const Program& program, bool full, std::size_t count, int repeats) {
  Cost best;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    AggregatorRig rig(full);
    CaptureSession& session = rig.session;
    ActivityAggregator& aggregator = rig.aggregator;
    Records records(program);
    double walk = 0, fold = 0, seal = 0, bytes = 0;
    std::size_t unsealed = 0, offset = 0;
    const auto drain = [&](bool final) {
      const double began = now_ns();
      const std::string chunks = session.recorder().drain(offset, 1, final);
      seal += since_ns(began);
      offset += chunks.size();
      unsealed = 0;
    };
    for (std::size_t done = 0; done < count; done += kPerBuffer) {
      std::uint8_t* buffer = nullptr;
      std::size_t size = 0, most = 0;
      aggregator.lend(&buffer, &size, &most);
      const std::size_t valid = kPerBuffer * sizeof(CUpti_ActivityKernel10);
      records.fill(buffer, kPerBuffer);
      double began = now_ns();
      std::size_t kernels = 0;
      for (CUpti_Activity* record = nullptr;
           next_kernel_record(buffer, valid, &record) == CUPTI_SUCCESS;)
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? 1 : 0;
      walk += since_ns(began);
      if (kernels != kPerBuffer) std::abort();
      began = now_ns();
      aggregator.take(nullptr, 0, buffer, valid);
      fold += since_ns(began);
      if ((unsealed += kPerBuffer) >= 250'000) drain(false);
    }
    drain(true);
    bytes = static_cast<double>(offset);
    const auto all = static_cast<double>((count + kPerBuffer - 1) / kPerBuffer * kPerBuffer);
    best.walk_ns = std::min(best.walk_ns, walk / all);
    best.fold_ns = std::min(best.fold_ns, fold / all);
    best.seal_ns = std::min(best.seal_ns, seal / all);
    best.bytes = bytes / all;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atol(argv[1]) : 2'000'000);
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  const Program programs[] = {
      {"one empty kernel", 1, 1, 0, 1, 2500, 800},
      {"training step, 619 launches", 619, 36, 0, 1, 15'000, 600},
      {"four streams in turn", 619, 36, 0, 4, 1500, 600},
      {"20,000 launch shapes", 20'000, 500, 0, 1, 2500, 800},
      {"graph of 1,000 nodes", 1000, 42, 5, 1, 300, 400},
  };
  std::printf(
      "| records of | capture | walk, ns | fold, ns | seal, ns | bytes "
      "|\n|---|---|---|---|---|---|\n");
  bool fat = false;
  for (const Program& program : programs)
    for (const bool full : {false, true}) {
      const Cost cost = cost_of(program, full, count, repeats);
      std::printf("| %s | %s | %.1f | %.1f | %.1f | %.2f |\n", program.name,
                  full ? "every launch" : "sketches", cost.walk_ns, cost.fold_ns, cost.seal_ns,
                  cost.bytes);
      std::fflush(stdout);
      fat |= cost.bytes > 8 && program.kernels <= 1000;
    }
  return fat ? 1 : 0;
}
