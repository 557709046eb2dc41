// SPDX-License-Identifier: Apache-2.0
// The report for programs: JSON (docs/formats/report.md) and CSV.
#include "analyze/report.h"
#include "model/document.h"

#include <fmt/format.h>

#include <cmath>

namespace purlin::analyze {
namespace {

// Whole numbers as integers, so that a count of 12 does not read 12.0.
Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53)
    return static_cast<std::int64_t>(value);
  return value;
}

// Times of quantiles carry the sketch's error; more than a tenth of a nanosecond is noise.
Json quantile(const Sketch& sketch, double q) {
  return number(std::round(sketch.quantile(q) * 10) / 10);
}

void add_durations(Json& out, const Sketch& duration) {
  out.set("count", number(duration.count()));
  out.set("total_ns", number(duration.total_ns()));
  out.set("p50_ns", quantile(duration, 0.50));
  out.set("p95_ns", quantile(duration, 0.95));
  out.set("min_ns", number(duration.min_ns()));
  out.set("max_ns", number(duration.max_ns()));
}

Json kernel_json(const KernelStat& kernel) {
  Json out = Json::object({{"name", kernel.name.full},
                           {"label", kernel.label},
                           {"family", kernel.name.family},
                           {"op_class", kernel.name.op_class},
                           {"op", kernel.op},
                           {"shape", kernel.shape},
                           {"device", kernel.device}});
  add_durations(out, kernel.duration);
  out.set("share", kernel.share);
  // Work and its limits are not in a profile without counters; null and "unknown" say so.
  out.set("bound", "unknown");
  out.set("utilization", Json());
  out.set("flops", Json());
  out.set("bytes", Json());
  out.set("provenance", Json());
  out.set("launch", to_json(kernel.launch));
  out.set("launch_shapes", kernel.launch_shapes);
  out.set("registers", kernel.registers);
  out.set("static_shared_bytes", kernel.static_shared_bytes);
  out.set("local_bytes", kernel.local_bytes);
  return out;
}

Json coverage_json(const Coverage& coverage, bool partial) {
  Json notes = Json::array();
  for (const CoverageNote& note : coverage.notes)
    notes.push(Json::object({{"cause", note.cause},
                             {"text", note.text},
                             {"count", number(note.count)},
                             {"seconds", note.seconds}}));
  Json out = Json::object({{"partial", partial},
                           {"launches_seen", number(coverage.launches_seen)},
                           {"launches_counted", number(coverage.launches_counted)},
                           {"launches_lost", number(coverage.launches_lost)},
                           {"launches_sampled_out", number(coverage.launches_sampled_out)},
                           {"overhead_ns", number(coverage.overhead_ns)},
                           {"bytes_written", coverage.bytes_written}});
  out.set("notes", std::move(notes));
  return out;
}

Json process_json(const ProcessInfo& process) {
  return Json::object({{"pid", process.pid},
                       {"parent", process.parent},
                       {"command", process.command},
                       {"layer", process.layer},
                       {"start_ns", process.start_ns},
                       {"end_ns", process.end_ns},
                       {"complete", process.complete}});
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace

Json to_json(const Report& report) {
  Json out = new_document("purlin.report/1", report.environment);
  out.set("command", report.command);
  out.set("exit_code", report.exit_code);
  out.set("wall_ns", report.wall_ns);
  out.set("group_by", report.group_by == GroupBy::kKernel ? "kernel" : "launch");
  out.set("kernel_ns", number(report.kernel_ns));
  out.set("copy_ns", number(report.copy_ns));
  out.set("launches", number(report.launches));
  Json kernels = Json::array();
  for (const KernelStat& kernel : report.kernels) kernels.push(kernel_json(kernel));
  out.set("kernels", std::move(kernels));
  Json copies = Json::array();
  for (const CopyStat& copy : report.copies) {
    Json item = Json::object({{"kind", copy.kind}, {"device", copy.device}});
    add_durations(item, copy.duration);
    item.set("bytes", number(copy.bytes));
    copies.push(std::move(item));
  }
  out.set("copies", std::move(copies));
  out.set("coverage", coverage_json(report.coverage, report.partial));
  Json processes = Json::array();
  for (const ProcessInfo& process : report.processes) processes.push(process_json(process));
  out.set("processes", std::move(processes));
  return out;
}

std::string to_csv(const Report& report) {
  std::string out =
      "name,family,op_class,op,shape,device,count,total_ns,p50_ns,p95_ns,share,grid,block,"
      "dynamic_shared_bytes,static_shared_bytes,local_bytes,registers\n";
  const auto dims = [](const Dim3& dim) { return fmt::format("{}x{}x{}", dim[0], dim[1], dim[2]); };
  for (const KernelStat& kernel : report.kernels)
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{:.6f},{},{},{},{},{},{}\n", csv_field(kernel.name.full),
        kernel.name.family, kernel.name.op_class, csv_field(kernel.op), csv_field(kernel.shape),
        csv_field(kernel.device), number(kernel.duration.count()).dump(),
        number(kernel.duration.total_ns()).dump(), quantile(kernel.duration, 0.50).dump(),
        quantile(kernel.duration, 0.95).dump(), kernel.share, dims(kernel.launch.grid),
        dims(kernel.launch.block), kernel.launch.dynamic_shared_bytes, kernel.static_shared_bytes,
        kernel.local_bytes, kernel.registers);
  return out;
}

}  // namespace purlin::analyze
