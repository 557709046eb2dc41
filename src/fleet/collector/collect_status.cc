// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/collect_status.h"

#include "fleet/answers.h"
#include "fleet/metrics.h"

namespace purlin::fleet {
namespace {

constexpr double kLatePeriods = 5;

std::string labelled(std::string_view name, std::string_view help,
                     const std::map<std::string, std::uint64_t>& values) {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
  for (const auto& [cause, count] : values)
    text += fmt::format("{}{{cause=\"{}\"}} {}\n", name, cause, count);
  return text;
}

}  // namespace

std::optional<HttpAnswer> CollectStatus::early(const HttpHead& head) {
  if (head.method != "GET" && head.method != "HEAD") return error_answer(405, "GET and HEAD alone");
  if (head.body_bytes > 0) return error_answer(413, "no body is taken here");
  if (head.target == "/healthz") return health();
  if (head.target == "/metrics") return std::nullopt;
  return error_answer(404, "there are /healthz and /metrics here");
}

HttpAnswer CollectStatus::answer(const HttpHead&, const std::string&) {
  HttpAnswer answer;
  answer.content_type = "text/plain; version=0.0.4";
  answer.body = metrics();
  if (more_metrics_) answer.body += more_metrics_();
  return answer;
}

HttpAnswer CollectStatus::health() const {
  const CollectFacts facts = facts_();
  const double age_s = static_cast<double>(clock_.wall_ns() - facts.state.last_look_ns) / 1e9;
  const bool well = age_s < kLatePeriods * facts.period_s;
  Json json = answer_document("purlin.health/1");
  json.set("status", well ? "ok" : "late");
  json.set("last_look_s", age_s);
  json.set("waiting_batches", facts.spool.waiting);
  json.set("server_status", facts.shipped.last_status);
  return json_answer(json, well ? 200 : 503);
}

std::string CollectStatus::metrics() const {
  const CollectFacts facts = facts_();
  const CollectorState& state = facts.state;
  std::string text;
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    text += RequestMetrics::single(name, "gauge", help, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, double value) {
    text += RequestMetrics::single(name, "counter", help, value);
  };
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  gauge("purlin_collect_captures", "Captures that are followed.", number(state.captures));
  counter("purlin_collect_looks_total", "Periods.", number(state.looks));
  counter("purlin_collect_failed_looks_total", "Periods that could not be stored yet.",
          number(state.failed_looks));
  counter("purlin_collect_unusable_captures_total", "Captures that are damaged or foreign.",
          number(state.unusable));
  counter("purlin_collect_removed_captures_total", "Captures that ended and were removed.",
          number(state.removed));
  counter("purlin_collect_rows_total", "Rows of batches.", number(state.rows));
  counter("purlin_collect_launches_total", "Launches whose duration was measured.",
          state.launches_seen);
  counter("purlin_collect_launches_lost_total", "Launches that captures lost.",
          state.launches_lost);
  counter("purlin_collect_launches_sampled_out_total", "Launches that others represent.",
          state.launches_sampled_out);
  counter("purlin_collect_capture_overhead_seconds_total", "What captures took of their programs.",
          state.capture_overhead_ns / 1e9);
  counter("purlin_collect_captured_seconds_total", "Time of programs under capture.",
          state.captured_ns / 1e9);
  counter("purlin_collect_stopped_captures_total", "Captures that were stopped for their overhead.",
          number(state.stopped));
  counter("purlin_collect_stop_failures_total", "Captures that could not be stopped.",
          number(state.stop_failures));
  text += labelled("purlin_collect_refused_files", "Files of the last look that do not count.",
                   state.refused);
  gauge("purlin_collect_waiting_batches", "Batches that are not sent yet.",
        number(facts.spool.waiting));
  gauge("purlin_collect_waiting_bytes", "Their bytes.", number(facts.spool.waiting_bytes));
  counter("purlin_collect_batches_total", "Batches that were made.", number(facts.spool.committed));
  counter("purlin_collect_sent_batches_total", "Batches that the server has.",
          number(facts.shipped.sent));
  counter("purlin_collect_duplicate_batches_total", "Of these, what it had before.",
          number(facts.shipped.duplicates));
  counter("purlin_collect_refused_batches_total", "Batches that it will never take.",
          number(facts.shipped.refused));
  counter("purlin_collect_send_failures_total", "Attempts to send without an answer or a place.",
          number(facts.shipped.failures));
  std::map<std::string, std::uint64_t> shed_batches, shed_rows;
  for (const store::BatchShed& one : facts.spool.shed) {
    shed_batches[one.cause] = one.batches;
    shed_rows[one.cause] = one.rows;
  }
  text += labelled("purlin_collect_shed_batches", "Batches that were given up, since the boot.",
                   shed_batches);
  text += labelled("purlin_collect_shed_rows", "Their rows, since the boot.", shed_rows);
  gauge("purlin_collect_waiting_raw_bytes", "Bytes of raw profiles that are not sent yet.",
        number(facts.raws.waiting_bytes));
  counter("purlin_collect_sent_raws_total", "Raw profiles that the server has.",
          number(facts.raws.sent));
  text += labelled("purlin_collect_shed_raw_bytes", "Bytes of raw profiles that were given up.",
                   facts.raws.shed_bytes);
  counter("purlin_collect_windows_total", "Requested windows that were taken.",
          number(facts.windows.taken));
  counter("purlin_collect_sent_windows_total", "Requested windows that were recorded.",
          number(facts.windows.sent));
  counter("purlin_collect_refused_windows_total", "Requested windows that were refused.",
          number(facts.windows.refused));
  gauge("purlin_collect_clock_offset_seconds", "Clock of the server less this one.",
        static_cast<double>(facts.shipped.clock_offset_ns) / 1e9);
  counter("purlin_collect_cpu_seconds_total", "CPU time of the collector.", state.cpu_s);
  gauge("purlin_collect_resident_bytes", "Memory of the collector.", number(state.rss_bytes));
  return text;
}

}  // namespace purlin::fleet
