// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/samples.h"

#include "base/csv.h"
#include "base/files.h"
#include "base/gzip.h"
#include "base/text.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxSamplesBytes = std::size_t{1} << 30;  // decompressed
constexpr std::size_t kMaxKernels = 100000;

struct Columns {
  std::size_t process = SIZE_MAX, kernel = SIZE_MAX, time = SIZE_MAX, clock = SIZE_MAX,
              iteration = SIZE_MAX;
  std::size_t last = 0;
};

Result<Columns> parse_header(std::string_view line, const std::string& file) {
  Columns columns;
  const std::vector<std::string> names = csv_cells(line);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = trim(names[i]);
    if (name == "process") columns.process = i;
    if (name == "kernel") columns.kernel = i;
    if (name == "time_us") columns.time = i;
    if (name == "sm_clock_mhz") columns.clock = i;
    if (name == "iteration") columns.iteration = i;
  }
  for (const auto& [at, name] :
       {std::pair{columns.process, "process"}, std::pair{columns.kernel, "kernel"},
        std::pair{columns.time, "time_us"}}) {
    if (at == SIZE_MAX)
      return error(Code::kInvalid,
                   "{}:1: no column '{}'; the columns are process, kernel, "
                   "iteration, time_us and optionally sm_clock_mhz",
                   file, name);
    columns.last = std::max(columns.last, at);
  }
  return columns;
}

// The numbers of the iterations of each process of each kernel, as far as the file has them.
class Iterations {
 public:
  void add(std::size_t kernel, std::size_t process, std::string_view number) {
    if (const auto value = parse_int(trim(number))) numbers_[{kernel, process}].push_back(*value);
  }
  // kInvalid where a process has an iteration twice: the samples are those of two kernels.
  Status check(const std::vector<KernelSamples>& kernels, const std::string& file) {
    for (auto& [place, numbers] : numbers_) {
      std::sort(numbers.begin(), numbers.end());
      const auto same = std::adjacent_find(numbers.begin(), numbers.end());
      if (same == numbers.end()) continue;
      const KernelSamples& kernel = kernels[place.first];
      return error(
          Code::kInvalid,
          "{}: process {} has iteration {} of '{}' twice: two kernels with one name cannot "
          "be told apart; give each its own name",
          file, kernel.processes[place.second].id, *same, kernel.kernel);
    }
    return Status::ok();
  }

 private:
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> numbers_;
};

}  // namespace

Result<std::vector<KernelSamples>> parse_samples(std::string_view csv, const std::string& file) {
  std::vector<KernelSamples> kernels;
  std::unordered_map<std::string, std::size_t> kernel_index;
  std::vector<std::unordered_map<std::string, std::size_t>> process_index;
  Columns columns;
  Iterations iterations;
  std::size_t line_number = 0;
  while (!csv.empty()) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = trim(csv.substr(0, end));
    csv.remove_prefix(std::min(end + 1, csv.size()));
    ++line_number;
    if (line_number == 1) {
      PURLIN_ASSIGN(columns, parse_header(line, file));
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string> cells = csv_cells(line);
    if (cells.size() <= columns.last)
      return error(Code::kInvalid, "{}:{}: {} cells where the header has more", file, line_number,
                   cells.size());
    const auto time_us = parse_double(trim(cells[columns.time]));
    if (!time_us || !is_time(*time_us * 1e3))
      return error(Code::kInvalid, "{}:{}: time_us '{}' is not a positive number", file,
                   line_number, cells[columns.time]);
    double clock = 0;
    if (columns.clock < cells.size()) clock = parse_double(trim(cells[columns.clock])).value_or(0);

    const std::string kernel(trim(cells[columns.kernel]));
    const auto [place, is_new] = kernel_index.try_emplace(kernel, kernels.size());
    if (is_new) {
      if (kernels.size() == kMaxKernels)
        return error(Code::kInvalid, "{}:{}: more than {} kernels", file, line_number, kMaxKernels);
      kernels.push_back({kernel, {}});
      process_index.emplace_back();
    }
    KernelSamples& samples = kernels[place->second];
    const std::string process(trim(cells[columns.process]));
    const auto [where, first] =
        process_index[place->second].try_emplace(process, samples.processes.size());
    if (first) samples.processes.push_back({process, {}, {}});
    samples.processes[where->second].times_ns.push_back(*time_us * 1e3);
    if (columns.iteration < cells.size())
      iterations.add(place->second, where->second, cells[columns.iteration]);
    samples.processes[where->second].clocks_mhz.push_back(is_clock(clock) ? clock : 0);
  }
  if (kernels.empty()) return error(Code::kInvalid, "{}: no samples", file);
  PURLIN_TRY(iterations.check(kernels, file));
  return kernels;
}

Result<std::vector<KernelSamples>> load_samples(const std::string& path) {
  PURLIN_ASSIGN(std::string text, read_file(path, kMaxSamplesBytes));
  if (is_gzip(text)) {
    Result<std::string> unpacked = gunzip(text, kMaxSamplesBytes);
    if (!unpacked.is_ok()) return unpacked.status().with_context(path);
    text = std::move(unpacked).value();
  }
  return parse_samples(text, path);
}

double timer_resolution_ns(const std::vector<double>& times_ns) {
  std::vector<double> sorted = times_ns;
  std::sort(sorted.begin(), sorted.end());
  double step = 0;
  bool repeats = false;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const double difference = sorted[i] - sorted[i - 1];
    if (difference <= 1e-3) {  // a picosecond: the noise of unit conversions
      repeats = true;
    } else if (step == 0 || difference < step) {
      step = difference;
    }
  }
  return repeats ? step : 0;
}

double KernelSamples::nominal_mhz() const {
  double highest = 0;
  for (const Process& process : processes)
    for (const double clock : process.clocks_mhz) highest = std::max(highest, clock);
  return highest;
}

ArmReading reading_of(const std::vector<double>& times_ns, const std::vector<double>& clocks_mhz) {
  ArmReading reading;
  reading.time_ns = median_of(times_ns);
  reading.resolution_ns = timer_resolution_ns(times_ns);
  std::vector<double> cycles;
  for (std::size_t i = 0; i < times_ns.size() && i < clocks_mhz.size(); ++i)
    if (clocks_mhz[i] > 0) cycles.push_back(times_ns[i] * clocks_mhz[i] / 1e3);
  if (cycles.size() == times_ns.size()) reading.cycles = median_of(cycles);
  return reading;
}

Result<ProcessReading> summarise(std::vector<double> times_ns, std::vector<double> clocks_mhz,
                                 double nominal_mhz) {
  ProcessReading process;
  const std::size_t taken = times_ns.size();
  std::size_t untimed = 0;
  double last_untimed = 0;
  if (clocks_mhz.size() != taken) clocks_mhz.assign(taken, 0);
  for (std::size_t i = 0; i < taken; ++i) {
    if (!is_clock(clocks_mhz[i])) clocks_mhz[i] = 0;
    if (!is_time(times_ns[i])) {  // below the timer's resolution, or of a clock that jumped
      ++untimed;
      last_untimed = times_ns[i];
      continue;
    }
    if (clocks_mhz[i] > 0 && clocks_mhz[i] < kMinClockShare * nominal_mhz) continue;
    process.times_ns.push_back(times_ns[i]);
    process.clocks_mhz.push_back(clocks_mhz[i]);
  }
  process.iterations = static_cast<int>(process.times_ns.size());
  process.rejected = static_cast<int>(taken) - process.iterations;
  if (taken == 0) return error(Code::kFailed, "the process gave no sample");
  if (untimed * 2 > taken)
    process.unfit = fmt::format("{} of {} samples have times that are none, such as {} ns", untimed,
                                taken, last_untimed);
  else if (process.iterations * 2 < static_cast<int>(taken))
    process.unfit = fmt::format("{} of {} samples ran below {:.0f} % of the nominal {:.0f} MHz",
                                process.rejected, taken, kMinClockShare * 100, nominal_mhz);
  if (process.iterations == 0) return process;
  process.reading = reading_of(process.times_ns, process.clocks_mhz);
  process.p95_ns = quantile_of(process.times_ns, 0.95);
  process.clock_mhz = median_of(process.clocks_mhz);
  return process;
}

namespace {

// Adds the pair of two recorded processes, or the reason why it does not count.
void add_pair(const KernelSamples::Process& baseline, const KernelSamples::Process& current,
              double nominal_mhz, std::vector<Pair>* pairs, SamplesVerdict* verdict) {
  const Result<ProcessReading> then =
      summarise(baseline.times_ns, baseline.clocks_mhz, nominal_mhz);
  const Result<ProcessReading> now = summarise(current.times_ns, current.clocks_mhz, nominal_mhz);
  for (const Result<ProcessReading>* reading : {&then, &now}) {
    const std::string why = reading->is_ok() ? (*reading)->unfit : reading->status().message();
    if (why.empty()) continue;
    verdict->rejected.push_back(fmt::format("process {}: {}", baseline.id, why));
    return;
  }
  verdict->rejected_samples += then->rejected + now->rejected;
  pairs->push_back({then->reading, now->reading});
}

}  // namespace

std::vector<SamplesVerdict> compare_samples(const std::vector<KernelSamples>& baseline,
                                            const std::vector<KernelSamples>& current,
                                            const Thresholds& thresholds, const Design& design) {
  std::map<std::string, const KernelSamples*> other;
  for (const KernelSamples& kernel : current) other[kernel.kernel] = &kernel;
  std::vector<SamplesVerdict> verdicts;
  std::vector<std::vector<Pair>> pairs;
  for (const KernelSamples& kernel : baseline) {
    verdicts.push_back({kernel.kernel, {}, 0, {}});
    pairs.emplace_back();
    const auto found = other.find(kernel.kernel);
    if (found == other.end()) continue;
    const double nominal = std::max(kernel.nominal_mhz(), found->second->nominal_mhz());
    std::map<std::string, const KernelSamples::Process*> processes;
    for (const auto& process : found->second->processes) processes[process.id] = &process;
    for (const auto& process : kernel.processes)
      if (const auto match = processes.find(process.id); match != processes.end())
        add_pair(process, *match->second, nominal, &pairs.back(), &verdicts.back());
    other.erase(found);
  }
  for (const auto& [name, kernel] : other) {
    verdicts.push_back({name, {}, 0, {}});
    pairs.emplace_back();
  }

  Design known = design;
  for (const std::vector<Pair>& some : pairs)
    known.available = std::max(known.available, static_cast<int>(some.size()));
  SuiteGate gate(std::vector<Thresholds>(verdicts.size(), thresholds), known);
  std::vector<std::size_t> used(verdicts.size(), 0);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (!pairs[i].empty()) continue;
    const std::vector<std::string>& rejected = verdicts[i].rejected;
    if (rejected.empty())
      gate.give_up(i, Verdict::kInconclusive, "no process with the same id in both files");
    else
      gate.give_up(i, Verdict::kInvalid,
                   fmt::format("none of {} can be used, the last because in {}",
                               counted(rejected.size(), "pair"), rejected.back()));
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const std::size_t item : gate.wanted()) {
      if (used[item] == pairs[item].size()) continue;
      gate.add(item, pairs[item][used[item]++]);
      progress = true;
    }
    if (progress) continue;
    // An item that still screens has no more pairs. It must be decided before confirming starts.
    for (const std::size_t item : gate.wanted())
      if (used[item] == pairs[item].size()) progress |= gate.last_look(item);
  }
  for (std::size_t i = 0; i < verdicts.size(); ++i) verdicts[i].result = gate.result(i);
  return verdicts;
}

}  // namespace purlin::guard
