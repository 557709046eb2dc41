// SPDX-License-Identifier: Apache-2.0
#include "measure/output/times_collector.h"

#include "base/hash.h"

#include <algorithm>

namespace purlin::measure {
namespace {

constexpr std::size_t kMaxBenchmarks = 20000;
constexpr std::size_t kMaxName = 1000;

}  // namespace

Status TimesCollector::add(std::string name, double time_ns, double clock_mhz) {
  // A benchmark that is below the resolution of its timer fails, and not the whole output.
  if (!is_time(time_ns))
    return fail(std::move(name), fmt::format("it has a time of {} ns; times must be positive{}",
                                             time_ns, time_ns > 0 ? ", and of a real clock" : ""));
  if (!is_clock(clock_mhz)) clock_mhz = 0;
  PURLIN_ASSIGN(BenchmarkTimes * times, find(std::move(name)));
  if (++samples_ > kMaxOutputSamples)
    return error(Code::kInvalid, "the output has more than {} samples", kMaxOutputSamples);
  times->times_ns.push_back(time_ns);
  times->clocks_mhz.push_back(clock_mhz);
  return Status::ok();
}

Status TimesCollector::fail(std::string name, std::string why) {
  PURLIN_ASSIGN(BenchmarkTimes * times, find(std::move(name)));
  times->failure = why.empty() ? "it failed" : std::move(why);
  return Status::ok();
}

Status TimesCollector::skip(std::string name, std::string why) {
  PURLIN_ASSIGN(BenchmarkTimes * times, find(std::move(name)));
  times->skipped = why.empty() ? "it gives no reason" : std::move(why);
  return Status::ok();
}

Status TimesCollector::once(const std::string& key) {
  if (seen_.insert(key).second) return Status::ok();
  return error(Code::kInvalid,
               "'{}' is there twice: two benchmarks with one name cannot be told apart; give each "
               "its own name",
               key);
}

Result<std::vector<BenchmarkTimes>> TimesCollector::finish(std::string_view expected) {
  if (all_.empty()) return error(Code::kInvalid, "the output holds no times: {}", expected);
  for (BenchmarkTimes& times : all_) {
    const bool clocks = std::any_of(times.clocks_mhz.begin(), times.clocks_mhz.end(),
                                    [](double clock) { return clock > 0; });
    if (!clocks) times.clocks_mhz.clear();
  }
  return std::move(all_);
}

Result<BenchmarkTimes*> TimesCollector::find(std::string name) {
  if (name.size() > kMaxName) {  // long template arguments often differ at the end only
    const std::string hash = hash128_hex(name);
    name.resize(kMaxName - hash.size() - 1);
    name += "~" + hash;
  }
  const auto [position, added] = positions_.try_emplace(name, all_.size());
  if (added) {
    if (all_.size() == kMaxBenchmarks)
      return error(Code::kInvalid, "the output names more than {} benchmarks", kMaxBenchmarks);
    all_.push_back({std::move(name), {}, {}, "", ""});
  }
  return &all_[position->second];
}

}  // namespace purlin::measure
