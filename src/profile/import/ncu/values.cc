// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu/values.h"

#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

namespace purlin::profile {
namespace {

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

// Without what only groups digits: blanks and apostrophes, also their kinds in UTF-8.
std::string compact(std::string_view text) {
  text = trim(text.substr(0, std::min<std::size_t>(text.size(), 512)));
  if (const std::size_t instances = text.find(" ("); instances != std::string_view::npos)
    text = trim(text.substr(0, instances));
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\xC2\xA0") {
      ++i;
    } else if (const auto three = text.substr(i, 3);
               three == "\xE2\x80\xAF" || three == "\xE2\x80\x89" || three == "\xE2\x80\x99") {
      i += 2;
    } else if (text[i] != ' ' && text[i] != '\'') {
      out += text[i];
    }
  }
  return out;
}

struct Scale {
  std::string_view unit;
  double factor;
};

constexpr std::array<Scale, 5> kPrefixes = {
    {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
constexpr std::array<std::string_view, 10> kCounted = {
    "byte", "hz", "inst", "cycle", "sector", "request", "warp", "thread", "block", "flop"};

double numerator_factor(std::string_view unit) {
  if (const std::optional<double> ns = ns_per_unit(unit)) return *ns;
  if (unit.size() < 2) return 1;
  std::string rest(unit.substr(1));
  if (rest == "B") rest = "byte";
  std::transform(rest.begin(), rest.end(), rest.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::find(kCounted.begin(), kCounted.end(), rest) == kCounted.end()) return 1;
  for (const Scale& prefix : kPrefixes)
    if (unit[0] == prefix.unit[0]) return prefix.factor;
  return 1;
}

double denominator_factor(std::string_view unit) {
  const std::optional<double> ns = ns_per_unit(unit);  // "per second" of a time in ns
  return ns.has_value() ? 1e9 / *ns : 1;
}

struct Label {
  std::string_view label;
  char unit;  // '%', 'b'ytes per second, or 0 for any
  std::string_view metric;
};

// The sections of ncu's default and full sets, in its versions since 2019.
constexpr std::array<Label, 48> kLabels = {{
    {"Duration", 0, "gpu__time_duration.sum"},
    {"Elapsed Cycles", 0, "sm__cycles_elapsed.max"},
    {"SM Frequency", 0, "sm__cycles_elapsed.avg.per_second"},
    {"DRAM Frequency", 0, "dram__cycles_elapsed.avg.per_second"},
    {"SM Active Cycles", 0, "sm__cycles_active.avg"},
    {"Memory Throughput", '%', "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Memory [%]", 0, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SOL Memory", 0, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Memory Throughput", 'b', "dram__bytes.sum.per_second"},
    {"DRAM Throughput", 0, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SOL DRAM", 0, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Compute (SM) Throughput", 0, "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Compute (SM) [%]", 0, "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SM [%]", 0, "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SOL SM", 0, "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L1/TEX Cache Throughput", 0, "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    {"SOL L1/TEX Cache", 0, "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    {"L2 Cache Throughput", 0, "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SOL L2 Cache", 0, "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Executed Ipc Active", 0, "sm__inst_executed.avg.per_cycle_active"},
    {"Executed Ipc Elapsed", 0, "sm__inst_executed.avg.per_cycle_elapsed"},
    {"Issued Ipc Active", 0, "sm__inst_issued.avg.per_cycle_active"},
    {"Issue Slots Busy", 0, "sm__inst_issued.avg.pct_of_peak_sustained_active"},
    {"SM Busy", 0, "sm__instruction_throughput.avg.pct_of_peak_sustained_active"},
    {"Mem Busy", 0, "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Max Bandwidth", 0,
     "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Mem Pipes Busy", 0, "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L1/TEX Hit Rate", 0, "l1tex__t_sector_hit_rate.pct"},
    {"L2 Hit Rate", 0, "lts__t_sector_hit_rate.pct"},
    {"Registers Per Thread", 0, "launch__registers_per_thread"},
    {"Block Size", 0, "launch__block_size"},
    {"Grid Size", 0, "launch__grid_size"},
    {"Threads", 0, "launch__thread_count"},
    {"Waves Per SM", 0, "launch__waves_per_multiprocessor"},
    {"# SMs", 0, "launch__sm_count"},
    {"Static Shared Memory Per Block", 0, "launch__shared_mem_per_block_static"},
    {"Dynamic Shared Memory Per Block", 0, "launch__shared_mem_per_block_dynamic"},
    {"Driver Shared Memory Per Block", 0, "launch__shared_mem_per_block_driver"},
    {"Shared Memory Configuration Size", 0, "launch__shared_mem_config_size"},
    {"Theoretical Occupancy", 0, "sm__maximum_warps_per_active_cycle_pct"},
    {"Theoretical Active Warps per SM", 0, "sm__maximum_warps_avg_per_active_cycle"},
    {"Achieved Occupancy", 0, "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {"Achieved Active Warps Per SM", 0, "sm__warps_active.avg.per_cycle_active"},
    {"Block Limit SM", 0, "launch__occupancy_limit_blocks"},
    {"Block Limit Registers", 0, "launch__occupancy_limit_registers"},
    {"Block Limit Shared Mem", 0, "launch__occupancy_limit_shared_mem"},
    {"Block Limit Warps", 0, "launch__occupancy_limit_warps"},
    {"Block Limit Barriers", 0, "launch__occupancy_limit_barriers"},
}};

// Whether values of it have no decimals: a sum or an extreme in a unit that nothing scales.
bool is_whole(std::string_view metric_or_label, std::string_view unit) {
  constexpr std::array<std::string_view, 8> kWhole = {"ns",   "nsecond", "inst",    "cycle",
                                                      "byte", "sector",  "request", "thread"};
  if (std::find(kWhole.begin(), kWhole.end(), unit) == kWhole.end()) return false;
  const std::string_view known = metric_of_label(metric_or_label, unit);
  const std::string_view metric = known.empty() ? metric_or_label : known;
  return ends_with(metric, ".sum") || ends_with(metric, ".max") || ends_with(metric, ".min");
}

// The only separator of a number like "117.344"; 0 for others.
char grouping_separator(std::string_view raw) {
  const std::string text = compact(raw);
  const std::size_t at = text.find_first_not_of("0123456789");
  if (at == std::string::npos || at == 0 || at > 3 || text.size() != at + 4) return 0;
  if (text.find_first_not_of("0123456789", at + 1) != std::string::npos) return 0;
  return text[at] == '.' || text[at] == ',' ? text[at] : 0;
}

}  // namespace

void SeparatorVotes::add(std::string_view metric_or_label, std::string_view unit,
                         std::string_view value) {
  const char decimal = decimal_separator(value);
  commas_ += decimal == ',' ? 1 : 0;
  points_ += decimal == '.' ? 1 : 0;
  if (!is_whole(metric_or_label, trim(unit))) return;
  const char grouping = grouping_separator(value);
  grouping_commas_ += grouping == ',' ? 1 : 0;
  grouping_points_ += grouping == '.' ? 1 : 0;
}

char SeparatorVotes::decimal() const {
  if (commas_ != points_) return commas_ > points_ ? ',' : '.';
  if (grouping_points_ != grouping_commas_) return grouping_points_ > grouping_commas_ ? ',' : '.';
  return columns_ == ';' ? ',' : '.';
}

char decimal_separator(std::string_view raw) {
  std::string text = compact(raw);
  if (!text.empty() && text[0] == '-') text.erase(0, 1);
  if (text.empty() || !is_decimal_digit(text[0])) return 0;
  char kind = 0, other = 0;
  std::size_t last = 0, count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_decimal_digit(text[i])) continue;
    if (text[i] != '.' && text[i] != ',') return 0;
    if (kind != 0 && text[i] != kind) other = kind;
    kind = text[i];
    ++count;
    last = i;
  }
  if (count == 0) return 0;
  if (other != 0) return kind;  // "1,024.5": the last of two kinds
  if (count > 1) return kind == ',' ? '.' : ',';
  // One separator: thousands have exactly three digits behind and one to three, no zero, before.
  const std::size_t behind = text.size() - last - 1;
  return behind == 3 && last <= 3 && text[0] != '0' ? '\0' : kind;
}

std::optional<double> parse_ncu_number(std::string_view raw, char decimal) {
  const std::string text = compact(raw);
  std::string plain;
  for (const char c : text) {
    if (c == decimal) {
      plain += '.';
    } else if (c != '.' && c != ',') {
      plain += c;
    }
  }
  if (plain.empty() || !(is_decimal_digit(plain[0]) || plain[0] == '-' || plain[0] == '.'))
    return std::nullopt;  // "nan", "inf", "no data"
  const std::optional<double> value = parse_double(plain);
  return value.has_value() && std::isfinite(*value) ? value : std::nullopt;
}

double unit_factor(std::string_view unit) {
  double factor = 1;
  for (bool above = true; !unit.empty(); above = false) {
    const std::size_t slash = unit.find('/');
    const std::string_view part = trim(unit.substr(0, slash));
    factor *= above ? numerator_factor(part) : denominator_factor(part);
    unit.remove_prefix(slash == std::string_view::npos ? unit.size() : slash + 1);
  }
  return factor;
}

std::string_view metric_of_label(std::string_view label, std::string_view unit) {
  for (const Label& known : kLabels) {
    if (label != known.label) continue;
    const bool percent = unit == "%";
    if (known.unit == 0 || (known.unit == '%') == percent) return known.metric;
  }
  return "";
}

}  // namespace purlin::profile
