// SPDX-License-Identifier: Apache-2.0
// The report for programs: JSON (docs/formats/report.md) and CSV.
#include "analyze/report/finding.h"
#include "analyze/report/identity.h"
#include "analyze/report/report.h"
#include "analyze/report/selection.h"
#include "analyze/roofline/counters.h"
#include "analyze/stalls/stalls.h"
#include "analyze/text/number.h"
#include "base/csv.h"
#include "base/text.h"
#include "model/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

// Times of quantiles carry the sketch's error; more than a tenth of a nanosecond is noise.
Json quantile(const Sketch& sketch, double q) {
  return number(std::round(sketch.quantile(q) * 10) / 10);
}

void add_durations(Json& out, const Sketch& duration) {
  out.set("count", number(duration.count()));
  out.set("total_ns", number(duration.total_ns()));
  const bool known = !duration.empty();
  out.set("p50_ns", known ? quantile(duration, 0.50) : Json());
  out.set("p95_ns", known ? quantile(duration, 0.95) : Json());
  out.set("min_ns", known ? number(duration.min_ns()) : Json());
  out.set("max_ns", known ? number(duration.max_ns()) : Json());
}

// Zero represents "not known" in a Roof; null does in a document.
Json known(double value) { return value > 0 ? number(std::round(value)) : Json(); }
// Rates and ratios are derived from measured times: beyond six digits they say nothing.
Json rounded(double value) {
  return value > 0 ? number(parse_double(fmt::format("{:.6g}", value)).value_or(value)) : Json();
}

// Estimates: beyond four digits they say nothing.
Json short_share(double value) {
  return number(parse_double(fmt::format("{:.4f}", value)).value_or(value));
}

// One word for where the work's figures come from; `roof` has it for each of them.
Json provenance(const Roof& roof) {
  const Provenance flops = roof.flops_from, bytes = roof.bytes_from;
  if (flops == Provenance::kNone && bytes == Provenance::kNone) return {};
  if (flops == bytes || bytes == Provenance::kNone) return to_text(flops);
  if (flops == Provenance::kNone) return to_text(bytes);
  return "mixed";
}

Json roof_json(const KernelStat& kernel) {
  const Roof& roof = kernel.roof;
  if (roof.flops <= 0 && roof.bytes <= 0 && roof.bound == Bound::kUnknown && roof.evidence.empty())
    return {};
  const double headroom = headroom_ns(kernel);
  return Json::object({{"ceiling", roof.ceiling},
                       {"grade", roof.grade},
                       {"evidence", roof.evidence},
                       {"bound_from", roof.bound_from},
                       {"flops_from", to_text(roof.flops_from)},
                       {"bytes_from", to_text(roof.bytes_from)},
                       {"model_flops", known(roof.model_flops)},
                       {"model_bytes", known(roof.model_bytes)},
                       {"l2_bytes", known(roof.l2_bytes)},
                       {"flops_per_s", rounded(roof.flops_per_s)},
                       {"bytes_per_s", rounded(roof.bytes_per_s)},
                       {"intensity", rounded(roof.intensity)},
                       {"attainable_flops_per_s", rounded(roof.attainable_flops_per_s)},
                       {"headroom_ns", headroom < 0 ? Json() : number(std::round(headroom))},
                       {"clock_mhz", rounded(roof.clock_mhz)},
                       {"tensor_cores_idle", roof.tensor_cores_idle},
                       {"tensor_ceiling", roof.tensor_ceiling},
                       {"tensor_share", rounded(roof.tensor_share)}});
}

Json occupancy_json(const Roof& roof) {
  if (roof.occupancy_theoretical <= 0 && roof.occupancy_achieved <= 0 && roof.cannot_launch.empty())
    return {};
  return Json::object(
      {{"cannot_launch", roof.cannot_launch.empty() ? Json() : Json(roof.cannot_launch)},
       {"theoretical", rounded(roof.occupancy_theoretical)},
       {"achieved", rounded(roof.occupancy_achieved)},
       {"measured", roof.occupancy_measured},
       {"limiter", roof.occupancy_limiter}});
}

Json counters_json(const std::vector<Counter>& counters) {
  Json out = Json::array();
  for (const Counter& counter : counters)
    out.push(Json::object({{"name", counter.name},
                           {"value", number(counter.value)},
                           {"launches", number(counter.launches)}}));
  return out;
}

// The facts of the build in the kernel's name; null without any.
Json built_json(const KernelName& name) {
  Json out = Json::object();
  const auto add = [&](const char* key, std::string_view text) {
    if (!text.empty()) out.set(key, text);
  };
  add("dtype", name.dtype);
  add("accumulator", name.accumulator);
  add("tile", name.tile);
  if (name.stages > 0) out.set("stages", name.stages);
  add("layout", name.layout);
  add("arch", name.arch);
  if (name.tensor != TensorCores::kUnknown)
    out.set("tensor_cores", name.tensor == TensorCores::kYes);
  if (name.split_k) out.set("split_k", true);
  return out;
}

Json target_json(const Roof& roof, const TargetFractions& fractions) {
  const Target target = target_of(roof, fractions);
  if (target.fraction <= 0) return {};
  return Json::object({{"fraction", target.fraction},
                       {"flops_per_s", rounded(target.flops_per_s)},
                       {"speedup", rounded(target.speedup)}});
}

// The hottest lines; what the others have is what is missing of the samples.
Json sites_json(const StallSites& sampled) {
  constexpr std::size_t kSites = 50;
  Json out = Json::array();
  for (std::size_t i = 0; i < std::min(kSites, sampled.lines.size()); ++i) {
    const StallLine& line = sampled.lines[i];
    Json reasons = Json::array();
    for (const auto& [reason, samples] : line.reasons)
      reasons.push(Json::object({{"reason", reason}, {"samples", number(samples)}}));
    out.push(
        Json::object({{"file", line.line == 0 ? Json() : Json(line.file)},
                      {"line", line.line == 0 ? Json() : Json(line.line)},
                      {"offset", line.offset == StallSite::kNowhere ? Json() : Json(line.offset)},
                      {"instructions", line.instructions},
                      {"samples", number(line.samples)},
                      {"share", rounded(line.samples / sampled.samples)},
                      {"reasons", std::move(reasons)}}));
  }
  return out;
}

Json stalls_json(const KernelStat& kernel) {
  const StallTable stalls = read_stalls(kernel.counters, kernel.sampled);
  if (stalls.empty()) return {};
  Json reasons = Json::array();
  for (const StallReason& reason : stalls.reasons)
    reasons.push(Json::object({{"reason", reason.name},
                               {"meaning", reason.meaning},
                               {"share", rounded(reason.share)},
                               {"stalled_share", rounded(reason.stalled)}}));
  const std::string why =
      why_occupancy_does_not_help(stalls, read_counters(kernel.counters, kernel.duration.mean_ns()),
                                  kernel.roof.occupancy_achieved);
  return Json::object({{"samples", stalls.sampled ? rounded(stalls.samples) : Json()},
                       {"reasons", std::move(reasons)},
                       {"occupancy", why.empty() ? Json() : Json(why)},
                       {"sites", sites_json(kernel.sampled)}});
}

Json kernel_json(const KernelStat& kernel, const Report& report) {
  const Roof& roof = kernel.roof;
  const bool guessed = kernel.has_guess();
  Json out = Json::object({{"id", row_id(kernel, report.group_by)},
                           {"name", kernel.name.full},
                           {"label", kernel.label},
                           {"family", kernel.name.family},
                           {"op_class", kernel.name.op_class},
                           {"op", kernel.op},
                           {"shape", kernel.shape},
                           {"dtype", guessed ? kernel.dtype_guess.dtype : kernel.dtype},
                           {"dtype_from", guessed                ? Json(kernel.dtype_guess.from)
                                          : kernel.dtype.empty() ? Json()
                                                                 : Json("program")},
                           {"device", kernel.device},
                           {"build", kernel.build},
                           {"built", built_json(kernel.name)}});
  add_durations(out, kernel.duration);
  out.set("share", kernel.share);
  out.set("bound", to_text(roof.bound));
  out.set("utilization", rounded(roof.utilization));
  out.set("flops", known(roof.flops));
  out.set("bytes", known(roof.bytes));
  out.set("provenance", provenance(roof));
  out.set("roof", roof_json(kernel));
  out.set("target", target_json(roof, report.targets));
  out.set("occupancy", occupancy_json(roof));
  out.set("stalls", stalls_json(kernel));
  out.set("counters", counters_json(kernel.counters));
  out.set("launch", to_json(kernel.launch));
  out.set("launch_shapes", kernel.launch_shapes);
  out.set("kernels", kernel.kernels);
  // Every kernel has registers: without them, nothing is known of its build.
  const auto fact = [&kernel](std::uint32_t value) {
    return kernel.registers > 0 || value > 0 ? Json(value) : Json();
  };
  out.set("registers", fact(kernel.registers));
  out.set("static_shared_bytes", fact(kernel.static_shared_bytes));
  out.set("local_bytes", fact(kernel.local_bytes));
  out.set("first_ns", kernel.first_ns > 0 ? Json(kernel.first_ns) : Json());
  out.set("last_ns", kernel.last_ns > 0 ? Json(kernel.last_ns) : Json());
  return out;
}

Json advice_json(const Report& report) {
  Json out = Json::array();
  for (const BriefAdvice& one : report.advice)
    out.push(Json::object({{"id", one.id},
                           {"title", one.title},
                           {"kernels", Json::array_of(one.kernels)},
                           {"saved_share", Json::object({{"low", short_share(one.low)},
                                                         {"mid", short_share(one.mid)},
                                                         {"high", short_share(one.high)}})}}));
  return out;
}

Json alerts_json(const Report& report) {
  Json out = Json::array();
  for (const Alert& alert : report.alerts)
    out.push(Json::object({{"id", alert.id},
                           {"severity", alert.severity},
                           {"value", short_share(alert.value)},
                           {"threshold", short_share(alert.threshold)},
                           {"kernel", alert.kernel},
                           {"kernel_id", alert.kernel_id},
                           {"profile", report.profile_id},
                           {"text", alert.text}}));
  return out;
}

Json stall_sampling_json(const StallSampling& sampling) {
  if (sampling.windows <= 0 && sampling.samples <= 0) return {};
  Json elsewhere = Json::array();
  for (const auto& [function, samples] : sampling.elsewhere)
    elsewhere.push(Json::object({{"function", function}, {"samples", number(samples)}}));
  const auto cycles = [](std::uint64_t period) { return period == 0 ? Json() : Json(period); };
  return Json::object({{"windows", number(sampling.windows)},
                       {"sampled_ns", number(sampling.sampled_ns)},
                       {"least_period_cycles", cycles(sampling.least_period)},
                       {"most_period_cycles", cycles(sampling.most_period)},
                       {"samples", number(sampling.samples)},
                       {"dropped", number(sampling.dropped)},
                       {"untold", number(sampling.untold)},
                       {"elsewhere", std::move(elsewhere)}});
}

// null where nothing was sampled.
Json sampling_json(const Sampling& sampling) {
  if (sampling.budget <= 0) return Json();
  return Json::object({{"budget", sampling.budget},
                       {"governed_ns", number(sampling.governed_ns)},
                       {"recorded_ns", number(sampling.recorded_ns)},
                       {"windows", number(sampling.windows)},
                       {"total_error", rounded(sampling.total_error())},
                       {"waits", sampling.waits ? Json(*sampling.waits) : Json()},
                       {"counted_windows", number(sampling.counted_windows)},
                       {"timed_windows", number(sampling.timed_windows)},
                       {"presence", rounded(sampling.presence)},
                       {"one_in", sampling.one_in > 0 ? Json(sampling.one_in) : Json()},
                       {"hidden_ns", number(sampling.hidden_ns)},
                       {"unsure_ns", number(sampling.unsure_ns)}});
}

Json coverage_json(const Coverage& coverage, bool partial) {
  Json notes = Json::array();
  for (const CoverageNote& note : coverage.notes)
    notes.push(Json::object({{"cause", note.cause},
                             {"text", note.text},
                             {"count", number(note.count)},
                             {"seconds", number(note.seconds)}}));
  Json out = Json::object({{"partial", partial},
                           {"launches_seen", number(coverage.launches_seen)},
                           {"launches_counted", number(coverage.launches_counted)},
                           {"launches_lost", number(coverage.launches_lost)},
                           {"launches_sampled_out", number(coverage.launches_sampled_out)},
                           {"overhead_ns", number(coverage.overhead_ns)},
                           {"step_ns", coverage.step_ns > 0 ? number(coverage.step_ns) : Json()},
                           {"sampling", sampling_json(coverage.sampling)},
                           {"bytes_written", coverage.bytes_written}});
  out.set("notes", std::move(notes));
  return out;
}

Json process_json(const ProcessInfo& process) {
  return Json::object({{"pid", process.pid},
                       {"parent", process.parent},
                       {"rank", process.rank < 0 ? Json() : Json(process.rank)},
                       {"world_size", process.world_size <= 0 ? Json() : Json(process.world_size)},
                       {"stands_for", process.stands_for},
                       {"command", process.command},
                       {"layer", process.layer},
                       {"start_ns", process.start_ns},
                       {"end_ns", process.end_ns},
                       {"complete", process.complete},
                       {"labels", to_json(process.labels)}});
}

}  // namespace

Json to_json(const Report& report, std::size_t max_rows) {
  Json out = new_document("purlin.report/1", report.environment);
  out.set("profile",
          Json::object({{"id", report.profile_id}, {"files", Json::array_of(report.files)}}));
  Json runs = Json::array();
  for (const RunLabels& labels : report.runs) runs.push(to_json(labels));
  out.set("runs", std::move(runs));
  out.set("command", report.command);
  out.set("source", report.source);
  out.set("exit_code", report.exit_code);
  out.set("wall_ns", report.wall_ns);
  out.set("group_by", to_text(report.group_by));
  out.set("filter", report.filter.empty() ? Json() : Json(report.filter));
  out.set("rows_left_out", report.rows_left_out);
  out.set("kernel_ns", number(report.kernel_ns));
  out.set("copy_ns", number(report.copy_ns));
  out.set("launches", number(report.launches));
  Json findings = Json::array();
  for (const Finding& finding : find(report))
    findings.push(Json::object(
        {{"kind", finding.kind}, {"share", rounded(finding.share)}, {"text", finding.text}}));
  out.set("findings", std::move(findings));
  out.set("verdict", report.verdict.empty() ? Json() : Json(report.verdict));
  out.set("advice", advice_json(report));
  out.set("alerts", alerts_json(report));
  Json kernels = Json::array();
  for (std::size_t i = 0; i < std::min(max_rows, report.kernels.size()); ++i)
    kernels.push(kernel_json(report.kernels[i], report));
  out.set("kernels", std::move(kernels));
  Json copies = Json::array();
  for (const CopyStat& copy : report.copies) {
    Json item = Json::object({{"kind", copy.kind}, {"device", copy.device}});
    add_durations(item, copy.duration);
    item.set("bytes", number(copy.bytes));
    item.set("traffic_bytes", known(copy.traffic_bytes));
    item.set("utilization", rounded(copy.utilization));
    copies.push(std::move(item));
  }
  out.set("copies", std::move(copies));
  Json waits = Json::array();
  for (const WaitRow& wait : report.waits) {
    Json item = Json::object({{"kind", wait.kind}});
    add_durations(item, wait.duration);
    waits.push(std::move(item));
  }
  out.set("waits", std::move(waits));
  Json ceilings = Json::array();
  for (const Ceilings& device : report.ceilings)
    if (!device.empty()) ceilings.push(to_json(device));
  out.set("ceilings", std::move(ceilings));
  out.set("stall_sampling", stall_sampling_json(report.stall_sampling));
  out.set("timeline", to_json(report.timeline));
  out.set("coverage", coverage_json(report.coverage, report.partial));
  Json processes = Json::array();
  for (const ProcessInfo& process : report.processes) processes.push(process_json(process));
  out.set("processes", std::move(processes));
  return out;
}

std::string to_csv(const Report& report) {
  std::string out =
      "name,label,family,op_class,op,shape,dtype,device,count,total_ns,p50_ns,p95_ns,min_ns,max_ns,"
      "share,bound,utilization,ceiling,flops,bytes,provenance,flops_per_s,bytes_per_s,intensity,"
      "headroom_ns,occupancy_theoretical,occupancy_achieved,occupancy_limiter,grid,block,cluster,"
      "launch_shapes,dynamic_shared_bytes,static_shared_bytes,local_bytes,registers,"
      "build,kernels,tile,stages,layout,arch,tensor_cores,built_dtype,bound_from,dtype_from\r\n";
  for (const KernelStat& kernel : report.kernels) {
    const Json json = kernel_json(kernel, report);
    const Json &roof = json["roof"], &occupancy = json["occupancy"], &launch = json["launch"];
    bool first = true;
    const auto field = [&](const Json& value) {
      if (!first) out += ',';
      first = false;
      if (value.is_string()) {
        out += csv_text(value.as_string());
      } else if (!value.is_null()) {
        out += value.dump();
      }
    };
    const auto dims = [&](const char* name) {
      std::vector<std::string> extents;
      for (const Json& extent : launch[name].items()) extents.push_back(extent.dump());
      field(join(extents, "x"));
    };
    for (const char* key :
         {"name", "label", "family", "op_class", "op", "shape", "dtype", "device", "count",
          "total_ns", "p50_ns", "p95_ns", "min_ns", "max_ns", "share", "bound", "utilization"})
      field(json[key]);
    field(roof["ceiling"]);
    for (const char* key : {"flops", "bytes", "provenance"}) field(json[key]);
    for (const char* key : {"flops_per_s", "bytes_per_s", "intensity", "headroom_ns"})
      field(roof[key]);
    for (const char* key : {"theoretical", "achieved", "limiter"}) field(occupancy[key]);
    for (const char* key : {"grid", "block", "cluster"}) dims(key);
    field(json["launch_shapes"]);
    field(launch["dynamic_shared_bytes"]);
    for (const char* key : {"static_shared_bytes", "local_bytes", "registers", "build", "kernels"})
      field(json[key]);
    for (const char* key : {"tile", "stages", "layout", "arch", "tensor_cores", "dtype"})
      field(json["built"][key]);
    field(roof["bound_from"]);
    field(json["dtype_from"]);
    out += "\r\n";
  }
  return out;
}

}  // namespace purlin::analyze
