// SPDX-License-Identifier: Apache-2.0
// What common hardware counters count, by the start of their names.
import * as f from "../format";

const meanings: [RegExp, string][] = [
  [/^dram__bytes_read/, "bytes read from device memory"], [/^dram__bytes_write/, "bytes written to device memory"],
  [/^dram__bytes/, "bytes to and from device memory"], [/^dram__throughput/, "use of the memory's peak rate"],
  [/^lts__t_sector_hit_rate|l2.*hit/i, "sectors found in the L2 cache"], [/^lts__t_bytes/, "bytes through the L2 cache"],
  [/^l1tex__t_sector_hit_rate|l1.*hit/i, "sectors found in the L1 cache"], [/^l1tex__data_bank_conflicts/, "bank conflicts of shared memory"],
  [/^sm__throughput/, "use of the busiest unit of the SMs"], [/^gpu__compute_memory_throughput/, "use of the busiest part of the memory path"],
  [/^gpu__time_duration/, "duration while it was counted"], [/^sm__cycles_elapsed.*per_second/, "clock of the SMs"],
  [/^sm__warps_active|achieved_occupancy/, "warps present, as a share of the slots"],
  [/^sm__pipe_tensor|^sm__inst_executed_pipe_tensor/, "use of the tensor cores"],
  [/^smsp?__sass_thread_inst_executed_op_[dfh](add|mul)/, "additions or products of threads: one operation each"],
  [/^smsp?__sass_thread_inst_executed_op_[dfh]fma|ffma/, "fused multiply-adds of threads: two operations each"],
  [/^smsp__inst_executed/, "instructions of warps"], [/^smsp__warps_eligible/, "warps that could be issued, per cycle"],
  [/^smsp__issue_active/, "cycles in which a warp was issued"], [/^launch__registers/, "registers of a thread"],
  [/^smsp__average_warps_issue_stalled_(\w+)/, "warps stalled for this reason, per issue"],
  [/est_achieved_occupancy/, "estimated occupancy, from the grid"], [/FETCH_SIZE/, "kilobytes read from device memory"],
  [/WRITE_SIZE/, "kilobytes written to device memory"], [/SQ_WAVES/, "wavefronts started"], [/VALUBusy/, "time that the vector units work"],
];
// The value with its unit, as far as the name states it.
const units: [RegExp, (value: number) => string][] = [
  [/pct|hit_rate|VALUBusy/i, (v) => `${f.digits(v)} %`], [/bytes.*per_second/, f.rate], [/bytes/, f.bytes],
  [/FETCH_SIZE|WRITE_SIZE/, (v) => f.bytes(v * 1024)], [/time_duration/, f.ns], [/cycles.*per_second/, (v) => f.si(v, "Hz")],
];
export function counterValue(name: string, value: number): string {
  const unit = units.find(([pattern]) => pattern.test(name))?.[1];
  return unit ? unit(value) : Math.abs(value) >= 1e4 ? f.si(value, "").trim() : String(Number(value.toPrecision(5)));
}

export function counterMeaning(name: string): string {
  return meanings.find(([pattern]) => pattern.test(name))?.[1] ?? "";
}
