// SPDX-License-Identifier: Apache-2.0
// fleet_captures FOLDER PROCESSES PERIODS PERIOD_MS SEED [KERNELS [LAUNCHES]]: writes captures as
// the capture libraries do, one file per process, a sealed period every PERIOD_MS, and prints the
// ledger of the launches as JSON: {"kernel": count}. The clock of the periods is the machine's.
#include "base/json/json.h"
#include "base/random.h"
#include "base/time.h"
#include "profile/format/capture_file_testing.h"

#include <cstdio>
#include <map>
#include <memory>

using namespace purlin;

namespace {

long number(char** arguments, int count, int index, long otherwise) {
  return index < count ? std::strtol(arguments[index], nullptr, 10) : otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 6) {
    std::fprintf(
        stderr,
        "usage: fleet_captures FOLDER PROCESSES PERIODS PERIOD_MS SEED [KERNELS [LAUNCHES]]\n");
    return 2;
  }
  const long processes = number(arguments, count, 2, 1), periods = number(arguments, count, 3, 1);
  const long period_ms = number(arguments, count, 4, 100), seed = number(arguments, count, 5, 1);
  const auto kernels = static_cast<std::uint64_t>(number(arguments, count, 6, 20));
  const auto launches = static_cast<std::uint64_t>(number(arguments, count, 7, 50));
  Random random(static_cast<std::uint64_t>(seed));
  Clock& clock = system_clock();
  std::map<std::string, double> ledger;
  std::vector<std::unique_ptr<profile::CaptureFile>> files;
  for (long i = 0; i < processes; ++i) {
    profile::CaptureFileFacts facts;
    facts.pid = seed * 1000 + i + 1;
    facts.start_ns = clock.wall_ns();
    facts.uuid = fmt::format("GPU-{}", i % 8);
    facts.labels = {{"scheduler", "slurm"}, {"job", fmt::format("{}.0", seed)}};
    files.push_back(std::make_unique<profile::CaptureFile>(arguments[1], facts));
  }
  for (long period = 0; period < periods; ++period) {
    for (const auto& file : files) {
      for (std::uint64_t i = 0; i < launches; ++i) {
        const std::string kernel = fmt::format("kernel_{}", random.below(kernels));
        file->launch(kernel, random.uniform(2'000, 2'000'000));
        ++ledger[kernel];
      }
      file->overhead(100'000);
      file->seal(clock.wall_ns(), period + 1 == periods);
    }
    clock.sleep_ns(period_ms * 1'000'000);
  }
  Json json = Json::object();
  for (const auto& [kernel, launched] : ledger) json.set(kernel, launched);
  std::printf("%s\n", json.dump().c_str());
  return 0;
}
