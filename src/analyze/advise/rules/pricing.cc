// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/pricing.h"

#include "analyze/text/layout.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kLeastLaunch = 2'000;  // ns that even an empty kernel takes
constexpr std::size_t kMostNamed = 8;

// Where the host sets the pace, each launch less is a call less.
Interval3 saved_calls(const Facts& facts, double launches, double exposed) {
  const RecorderOverhead recorder = recorder_overhead(facts.profile->source);
  const double call = facts.timeline->launches.call_p50_ns;
  const double calls = in_one_unit(facts, launches) * (1 - exposed);
  return {0, calls * std::max(0.0, call - recorder.call.mid),
          calls * std::max(0.0, call - recorder.call.low)};
}

// What launches save that took `ns` in all, of which `exposed_ns` set the pace.
Interval3 of_launches(const Facts& facts, Interval3 saved, double ns, double exposed_ns) {
  const Interval3 x = facts.without_recorder(ns > 0 ? exposed_ns / ns : 1);
  const double most = in_one_unit(facts, ns);
  const Interval3 one = bounded({in_one_unit(facts, saved.low), in_one_unit(facts, saved.mid),
                                 in_one_unit(facts, saved.high)},
                                most);
  const Interval3 scaled = {one.low * (one.low > 0 ? x.low : 1), one.mid * x.mid,
                            std::min(one.high, most * x.high)};
  return facts.capped(scaled);
}

}  // namespace

double in_one_unit(const Facts& facts, double total) {
  return total / (facts.unit.count * facts.unit.devices);
}

Peaks peaks_of(const Facts& facts, const KernelStat& kernel, std::string_view dtype) {
  Peaks out;
  const Ceilings* ceilings = facts.ceilings_of(kernel);
  if (ceilings == nullptr) return out;
  if (const Ceiling* peak = ceilings->compute_for(dtype, true)) out.flops = peak->peak;
  out.bandwidth = facts.bandwidth_of(kernel);
  out.l2_bytes = ceilings->l2_bytes;
  return out;
}

double roof_ns(const Peaks& peaks, double flops, double bytes, double compute, double memory) {
  const double arithmetic = peaks.flops > 0 ? flops / (peaks.flops * compute) * 1e9 : 0;
  const double traffic = peaks.bandwidth > 0 ? bytes / (peaks.bandwidth * memory) * 1e9 : 0;
  return std::max({arithmetic, traffic, kLeastLaunch});
}

void become(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
            Intervention& out) {
  const double each = chain.each_ns(), count = chain.count();
  const Interval3 saved = {(each - after_ns.low) * count, (each - after_ns.mid) * count,
                           (each - after_ns.high) * count};
  const double exposed = facts.without_recorder(chain.ns > 0 ? chain.exposed_ns / chain.ns : 1).mid;
  const double fewer = (static_cast<double>(chain.rows.size()) - launches) * count;
  const Interval3 all = of_launches(facts, saved, chain.ns, chain.exposed_ns) +
                        saved_calls(facts, std::max(0.0, fewer), exposed);
  out.saved_ns = out.saved_ns + bounded(all, all.high);
  if (facts.exposure.known && exposed < 0.9)
    out.evidence.push_back(
        {"share of their time that sets the pace", percent(exposed), "timeline"});
}

void remove_launches(const Walk& walk, const Launches& work, Interval3 gone, Intervention& out) {
  const Facts& facts = walk.facts();
  double ns = 0, exposed_ns = 0;
  for (const std::uint32_t activity : work) {
    const Activity& one = walk.at(activity);
    const double length = walk.duration(activity);
    ns += length;
    exposed_ns +=
        one.kind == ActivityKind::kKernel ? length * facts.exposure.share[one.row] : length;
  }
  const double exposed = facts.without_recorder(ns > 0 ? exposed_ns / ns : 1).mid;
  const Interval3 all = of_launches(facts, gone * ns, ns, exposed_ns) +
                        saved_calls(facts, static_cast<double>(work.size()), exposed);
  out.saved_ns = out.saved_ns + bounded(all, all.high);
}

void scale_row(const Facts& facts, std::size_t row, Interval3 factor, Intervention& out) {
  const double t = facts.rows.kernels[row].duration.total_ns();
  const Interval3 saved = {t * (1 - factor.low), t * (1 - factor.mid), t * (1 - factor.high)};
  out.saved_ns = facts.capped(out.saved_ns + facts.end_to_end(row, saved));
}

void name_kernel(const KernelStat& kernel, Intervention& out) {
  if (std::find(out.kernels.begin(), out.kernels.end(), kernel.label) != out.kernels.end()) return;
  if (out.kernels.size() < kMostNamed) {
    out.kernels.push_back(kernel.label);
  } else {
    out.kernels_left_out += 1;
  }
}

void name_kernels(const Facts& facts, const std::vector<std::uint32_t>& rows, Intervention& out) {
  for (const std::uint32_t row : rows) name_kernel(facts.rows.kernels[facts.row_of[row]], out);
}

bool from_library(const KernelStat& kernel) {
  const std::string_view family = kernel.name.family;
  return family == "cublas" || family == "cudnn" || family == "rocblas" || family == "miopen";
}

int architecture_number(std::string_view arch) {
  if (!starts_with(arch, "sm_")) return 0;
  const auto number = parse_int(arch.substr(3));
  return number ? static_cast<int>(*number) : 0;
}

std::string a_unit(const Facts& facts) { return facts.unit.kind == "step" ? " a step" : ""; }

}  // namespace purlin::analyze
