// SPDX-License-Identifier: Apache-2.0
// Names and weights: Nsight Compute's roofline sections and CUPTI's metric list for NVIDIA; the
// "compute unit" and "L2 cache" pages of ROCm's performance counters for AMD.
#include "analyze/roofline/counters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace purlin::analyze {
namespace {

class Counters {
 public:
  Counters(const std::vector<Counter>& counters, double duration_ns) : duration_ns_(duration_ns) {
    for (const Counter& counter : counters)
      if (std::isfinite(counter.value) && counter.value >= 0)
        values_.emplace(counter.name, counter.value);
  }
  std::optional<double> get(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional<double>(found->second);
  }
  // "X.sum", else what X.sum.per_second and X.sum.per_cycle_elapsed come to.
  std::optional<double> total(const std::string& name) const {
    if (const auto value = get(name + ".sum")) return value;
    if (const auto rate = get(name + ".sum.per_second"); rate && duration_ns_ > 0)
      return *rate * duration_ns_ * 1e-9;
    if (const auto rate = get(name + ".sum.per_cycle_elapsed"))
      for (const char* cycles : {"smsp__cycles_elapsed.avg", "sm__cycles_elapsed.avg",
                                 "smsp__cycles_elapsed.max", "sm__cycles_elapsed.max"})
        if (const auto elapsed = get(cycles)) return *rate * *elapsed;
    return std::nullopt;
  }
  std::optional<double> share(std::string_view name) const {
    const auto percent = get(name);
    return percent ? std::optional<double>(std::min(1.0, *percent / 100)) : std::nullopt;
  }
  const std::map<std::string, double, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, double, std::less<>> values_;
  double duration_ns_;
};

void add(std::optional<double>& sum, std::optional<double> value, double weight = 1) {
  if (value) sum = sum.value_or(0) + weight * *value;
}

struct Instruction {
  std::string_view name, unit;
  double flops;  // of one thread
};

// A half-precision instruction works on two halves.
constexpr Instruction kInstructions[] = {
    {"ffma", "f32", 2}, {"fadd", "f32", 1}, {"fmul", "f32", 1},
    {"dfma", "f64", 2}, {"dadd", "f64", 1}, {"dmul", "f64", 1},
    {"hfma", "f16", 4}, {"hadd", "f16", 2}, {"hmul", "f16", 2}};

using FlopsByUnit = std::map<std::string, double, std::less<>>;

void read_vector_flops(const Counters& counters, FlopsByUnit& flops) {
  for (const Instruction& instruction : kInstructions)
    for (const char* prefix :
         {"smsp__sass_thread_inst_executed_op_", "sm__sass_thread_inst_executed_op_"}) {
      const std::string name = prefix + std::string(instruction.name);
      auto count = counters.total(name + "_pred_on");
      if (!count) count = counters.total(name);
      if (!count) continue;
      flops[std::string(instruction.unit)] += instruction.flops * *count;
      break;
    }
  // nvprof's, of devices before sm_75.
  for (const auto& [name, unit] :
       {std::pair{"flop_count_sp", "f32"}, {"flop_count_dp", "f64"}, {"flop_count_hp", "f16"}})
    if (const auto count = counters.get(name); count && flops.find(unit) == flops.end())
      flops[unit] = *count;
}

// "src_bf16_dst_fp32" -> "bf16"; "" for what is no floating or 8-bit type of a ceiling.
std::string_view tensor_dtype(std::string_view source) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"src_bf16", "bf16"}, {"src_fp16", "f16"}, {"src_tf32", "tf32"},  {"src_fp8", "f8"},
      {"src_int8", "i8"},   {"src_fp64", "f64"}, {"src_fp4_fp6", "f8"}, {"src_fp4", "f4"}};
  for (const auto& [prefix, dtype] : kTypes)
    if (source.substr(0, prefix.size()) == prefix) return dtype;
  return "";
}

// sm__ops_path_tensor_src_X[_dst_Y][_sparsity_off|_on].sum: the least specific of them counts all.
void read_tensor_flops(const Counters& counters, FlopsByUnit& flops) {
  constexpr std::string_view kPrefix = "sm__ops_path_tensor_", kSuffix = ".sum";
  struct Ops {
    double whole = -1, by_result = -1, by_sparsity = -1, by_instruction = -1;
  };
  std::map<std::string_view, Ops> by_dtype;
  const auto sum = [](double& into, double value) { into = std::max(0.0, into) + value; };
  for (const auto& [name, value] : counters.all()) {
    std::string_view rest = name;
    if (rest.substr(0, kPrefix.size()) != kPrefix || rest.size() < kSuffix.size() ||
        rest.substr(rest.size() - kSuffix.size()) != kSuffix)
      continue;
    rest.remove_prefix(kPrefix.size());
    rest.remove_suffix(kSuffix.size());
    const bool sparsity = rest.find("_sparsity_") != std::string_view::npos;
    const bool instruction = rest.substr(0, 3) == "op_";
    const std::size_t source = rest.find("src_");
    if (source == std::string_view::npos) continue;
    const std::string_view dtype = tensor_dtype(rest.substr(source));
    if (dtype.empty()) continue;
    Ops& ops = by_dtype[dtype];
    if (instruction) {
      sum(ops.by_instruction, value);
    } else if (sparsity) {
      sum(ops.by_sparsity, value);
    } else if (rest.find("_dst_") != std::string_view::npos) {
      sum(ops.by_result, value);
    } else {
      sum(ops.whole, value);
    }
  }
  for (const auto& [dtype, ops] : by_dtype)
    for (const double count : {ops.whole, ops.by_result, ops.by_sparsity, ops.by_instruction})
      if (count >= 0) {
        flops[std::string(dtype) + " tensor"] += count;
        break;
      }
}

// SQ_INSTS_VALU_* count instructions of a wavefront of 64; MFMA_MOPS counts 512 operations.
void read_amd_flops(const Counters& counters, FlopsByUnit& flops) {
  for (const auto& [suffix, unit] : {std::pair{"F16", "f16"}, {"F32", "f32"}, {"F64", "f64"}}) {
    std::optional<double> count;
    for (const auto& [operation, weight] :
         {std::pair{"ADD", 1.0}, {"MUL", 1.0}, {"TRANS", 1.0}, {"FMA", 2.0}})
      add(count, counters.get(std::string("SQ_INSTS_VALU_") + operation + "_" + suffix),
          64 * weight);
    if (count) flops[unit] += *count;
  }
  for (const auto& [suffix, unit] : {std::pair{"F16", "f16 tensor"},
                                     {"BF16", "bf16 tensor"},
                                     {"F32", "f32 tensor"},
                                     {"F64", "f64 tensor"},
                                     {"F8", "f8 tensor"},
                                     {"I8", "i8 tensor"}})
    if (const auto count = counters.get(std::string("SQ_INSTS_VALU_MFMA_MOPS_") + suffix))
      flops[unit] += 512 * *count;
}

// Requests of the L2 to memory, of 32 or 64 bytes.
std::optional<double> amd_dram_bytes(const Counters& counters) {
  std::optional<double> bytes;
  add(bytes, counters.get("FETCH_SIZE"), 1024);
  add(bytes, counters.get("WRITE_SIZE"), 1024);
  if (bytes) return bytes;
  for (const char* unit : {"TCC_EA0_", "TCC_EA_"}) {
    const auto read = counters.get(std::string(unit) + "RDREQ_sum");
    const auto write = counters.get(std::string(unit) + "WRREQ_sum");
    const double small = counters.get(std::string(unit) + "RDREQ_32B_sum").value_or(0);
    const double large = counters.get(std::string(unit) + "WRREQ_64B_sum").value_or(0);
    if (read) add(bytes, 64 * std::max(0.0, *read - small) + 32 * small);
    if (write) add(bytes, 32 * std::max(0.0, *write - large) + 64 * large);
    if (bytes) return bytes;
  }
  return bytes;
}

std::optional<double> dram_bytes(const Counters& counters) {
  if (const auto bytes = counters.total("dram__bytes")) return bytes;
  for (const auto& [read, write] : {std::pair{"dram__bytes_read", "dram__bytes_write"},
                                    {"dram__bytes_op_read", "dram__bytes_op_write"}}) {
    const auto in = counters.total(read), out = counters.total(write);
    if (in && out) return *in + *out;
  }
  const auto read = counters.total("dram__sectors_read");
  const auto write = counters.total("dram__sectors_write");
  if (read && write) return 32 * (*read + *write);
  const auto in = counters.get("dram_read_bytes"), out = counters.get("dram_write_bytes");
  if (in && out) return *in + *out;
  return amd_dram_bytes(counters);
}

std::optional<double> l2_bytes(const Counters& counters) {
  if (const auto bytes = counters.total("lts__t_bytes")) return bytes;
  if (const auto sectors = counters.total("lts__t_sectors")) return 32 * *sectors;
  if (const auto requests = counters.get("TCC_REQ_sum")) return 128 * *requests;
  return std::nullopt;
}

std::optional<double> dram_peak(const Counters& counters) {
  const auto per_cycle = counters.get("dram__bytes.sum.peak_sustained");
  const auto clock = counters.get("dram__cycles_elapsed.avg.per_second");
  if (!per_cycle || !clock || *per_cycle <= 0 || *clock <= 0) return std::nullopt;
  return *per_cycle * *clock;
}

}  // namespace

bool CounterFigures::empty() const {
  return !flops && !dram_bytes && !l2_bytes && !compute_busy && !memory_busy && !dram_busy &&
         !tensor_busy && !occupancy && clock_mhz == 0;
}

CounterFigures read_counters(const std::vector<Counter>& list, double duration_ns) {
  CounterFigures out;
  if (list.empty()) return out;
  const Counters counters(list, duration_ns);
  FlopsByUnit flops;
  read_vector_flops(counters, flops);
  read_tensor_flops(counters, flops);
  read_amd_flops(counters, flops);
  for (const auto& [unit, count] : flops) {
    add(out.flops, count);
    if (out.unit.empty() || count > out.unit_flops) {
      out.unit = unit;
      out.unit_flops = count;
    }
  }
  // Counters of some launches may be incomplete. Without the tensor cores' counts, their work is
  // missing from the sum. A count of 0 for them does not cover the other units.
  double tensor_flops = 0;
  bool others_counted = false;
  for (const auto& [unit, count] : flops) {
    const bool tensor = unit.find("tensor") != std::string::npos;
    if (tensor) tensor_flops += count;
    others_counted = others_counted || !tensor;
  }
  const bool tensor_counted = tensor_flops > 0;
  out.tensor_busy =
      counters.share("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
  if (!out.tensor_busy)
    out.tensor_busy =
        counters.share("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active");
  if (!out.tensor_busy)
    out.tensor_busy =
        counters.share("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active");
  const double tensor_instructions = counters.get("sm__inst_executed_pipe_tensor.sum").value_or(0);
  if (!tensor_counted && (out.tensor_busy.value_or(0) > 0.001 || tensor_instructions > 0))
    out.flops.reset();
  if (!others_counted && !tensor_counted) out.flops.reset();
  if (!out.flops) out.unit.clear(), out.unit_flops = 0;

  out.dram_bytes = dram_bytes(counters);
  out.l2_bytes = l2_bytes(counters);
  out.dram_peak = dram_peak(counters);
  for (const char* name :
       {"sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.avg.per_second"})
    if (const auto hertz = counters.get(name); hertz && *hertz > 1e8 && *hertz < 5e9) {
      out.clock_mhz = *hertz / 1e6;
      break;
    }
  if (const auto cycles = counters.get("GRBM_GUI_ACTIVE"); cycles && duration_ns > 0) {
    const double mhz = *cycles / duration_ns * 1e3;
    if (out.clock_mhz == 0 && mhz > 100 && mhz < 5000) out.clock_mhz = mhz;
  }
  out.compute_busy = counters.share("sm__throughput.avg.pct_of_peak_sustained_elapsed");
  out.memory_busy =
      counters.share("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
  out.dram_busy = counters.share("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
  if (!out.dram_busy)
    out.dram_busy = counters.share("dram__throughput.avg.pct_of_peak_sustained_elapsed");
  out.occupancy = counters.share("sm__warps_active.avg.pct_of_peak_sustained_active");
  if (const auto achieved = counters.get("achieved_occupancy"); achieved && !out.occupancy)
    out.occupancy = std::min(1.0, *achieved);
  return out;
}

}  // namespace purlin::analyze
