// SPDX-License-Identifier: Apache-2.0
#include "profile/import/nsys/host.h"

#include "base/text.h"
#include "profile/ops/api_calls.h"
#include "profile/ops/cuda_errors.h"
#include "profile/ops/host_links.h"
#include "profile/ops/range_ops.h"

#include <algorithm>
#include <array>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxDomains = 100'000;

// "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz_v7000" -> without the interface's version, as
// other tools name them. "_v2" is part of a driver function's name.
std::string_view without_version(std::string_view name) {
  const std::size_t at = name.rfind("_v");
  if (at != std::string_view::npos && name.size() - at >= 6 &&
      name.find_first_not_of("0123456789", at + 2) == std::string_view::npos)
    name = name.substr(0, at);
  for (const std::string_view suffix : {"_ptsz", "_ptds"})
    if (ends_with(name, suffix)) name.remove_suffix(suffix.size());
  return name;
}

// nvprof has plain ids where nsys has a serialised one.
std::optional<std::int64_t> global_id(const SqliteFile::Rows& rows, int global, int pid, int tid) {
  if (rows.integer(global)) return rows.integer(global);
  if (!rows.integer(pid)) return std::nullopt;
  return (*rows.integer(pid) & 0xFFFFFF) << 24 | (rows.integer(tid).value_or(0) & 0xFFFFFF);
}

// An event of NVTX is a range where it has an end; NCCL's domain is known by its creation.
static constexpr std::int64_t kDomainCreate = 75;

std::uint64_t launch_key(std::uint32_t process, std::int64_t correlation) {
  return std::uint64_t{process} << 32 | static_cast<std::uint32_t>(correlation);
}

}  // namespace

void NsysHost::read() {
  using TableReader = Status (NsysHost::*)(std::string_view);
  const auto each = [&](std::string_view table, TableReader reader) {
    if (tables_.file.has(table)) tables_.attempt((this->*reader)(table));
  };
  for (const std::string_view table : {kNsysCalls, kNsysDriverCalls}) each(table, &NsysHost::calls);
  if (tables_.profile.timeline.calls.empty()) each(kNsysSyncs, &NsysHost::syncs);
  domains();
  each(kNsysRanges, &NsysHost::ranges);
  for (const std::string_view table : {"PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"})
    each(table, &NsysHost::overhead);
  note_failures();
  link_host(tables_.profile.timeline);
  std::sort(launched_.begin(), launched_.end());
}

Status NsysHost::calls(std::string_view table) {
  PURLIN_ASSIGN(SqliteFile::Rows rows,
                tables_.file.select(table,
                                    {"start", "end", "globalTid", "correlationId", "nameId", "name",
                                     "cbid", "processId", "threadId", "returnValue"},
                                    tables_.order));
  while (true) {
    PURLIN_ASSIGN(const bool more, tables_.next(rows));
    if (!more) return Status::ok();
    const std::optional<Span> span = tables_.session.span(rows, 0, 1);
    if (!span) continue;
    const std::optional<std::int64_t> id = global_id(rows, 2, 7, 8);
    std::string_view name = tables_.session.name(rows, 4);
    if (name.empty()) name = tables_.session.name(rows, 5);
    std::string number;
    if (name.empty()) {
      number = fmt::format("{} {}", table == kNsysCalls ? "runtime call" : "driver call",
                           rows.integer(6).value_or(0));
      name = number;
    }
    name = without_version(name);
    Call call;
    call.start_ns = span->start_ns;
    call.duration_ns = span->duration_ns;
    call.name = tables_.assembly.text(name);
    call.process = tables_.session.process(id);
    call.thread = NsysSession::thread(id.value_or(0));
    call.kind = classify_call(name);
    const std::uint32_t index = tables_.assembly.add(call, tables_.reserve());
    const std::optional<std::int64_t> correlation = rows.integer(3);
    if (index != kNone && correlation && *correlation > 0)
      launched_.push_back({launch_key(call.process, *correlation), index});
    const std::int64_t result = rows.integer(9).value_or(0);
    if (result != 0 && call.kind == CallKind::kLaunch) ++failed_[result];
  }
}

void NsysHost::note_failures() {
  for (const auto& [code, count] : failed_) {
    const std::string name = cuda_error_name(code);
    tables_.profile.coverage.notes.push_back(
        {"launches_failed",
         fmt::format("launches returned {}: they ran nothing. The program may not have looked at "
                     "the error; compute-sanitizer shows where it arises",
                     name.empty() ? fmt::format("CUDA error {}", code)
                                  : fmt::format("{} ({})", name, code)),
         static_cast<double>(count)});
  }
}

// Where the calls were not recorded, CUPTI's records of waits replace them.
Status NsysHost::syncs(std::string_view table) {
  PURLIN_ASSIGN(
      SqliteFile::Rows rows,
      tables_.file.select(table, {"start", "end", "globalPid", "syncType"}, tables_.order));
  constexpr std::array<std::string_view, 5> kNames = {"synchronization", "event synchronization",
                                                      "stream wait event", "stream synchronization",
                                                      "context synchronization"};
  while (true) {
    PURLIN_ASSIGN(const bool more, tables_.next(rows));
    if (!more) return Status::ok();
    const std::optional<Span> span = tables_.session.span(rows, 0, 1);
    if (!span) continue;
    const std::uint32_t type = nsys_u32(rows.integer(3));
    Call call;
    call.start_ns = span->start_ns;
    call.duration_ns = span->duration_ns;
    call.name = tables_.assembly.text(kNames[type < kNames.size() ? type : 0]);
    call.process = tables_.session.process(rows.integer(2));
    call.kind = type == 2 ? CallKind::kOther : CallKind::kSync;  // the stream waits, not the host
    tables_.assembly.add(call, tables_.reserve());
  }
}

void NsysHost::domains() {
  if (!tables_.file.has(kNsysRanges, "domainId")) return;
  Result<SqliteFile::Rows> rows =
      tables_.file.find(kNsysRanges, {"globalTid", "domainId", "text", "textId"}, "eventType");
  if (!rows.is_ok() || !rows->rewind(kDomainCreate).is_ok()) return;
  while (domains_.size() < kMaxDomains && rows->next().value_or(false)) {
    std::string_view name = tables_.session.name(*rows, 2);
    if (name.empty()) name = tables_.session.name(*rows, 3);
    domains_[{rows->integer(0).value_or(0) >> 24, rows->integer(1).value_or(0)}] = name;
  }
}

Status NsysHost::ranges(std::string_view table) {
  PURLIN_ASSIGN(SqliteFile::Rows rows,
                tables_.file.select(
                    table, {"start", "end", "globalTid", "text", "textId", "eventType", "domainId"},
                    tables_.order));
  constexpr std::array<std::int64_t, 4> kRangeTypes = {59, 60, 70, 71};  // push-pop, start-end
  while (true) {
    PURLIN_ASSIGN(const bool more, tables_.next(rows));
    if (!more) return Status::ok();
    if (rows.is_null(1)) continue;  // a mark, a domain, a range never closed
    const std::optional<std::int64_t> type = rows.integer(5);
    if (type && std::find(kRangeTypes.begin(), kRangeTypes.end(), *type) == kRangeTypes.end())
      continue;
    const std::optional<Span> span = tables_.session.span(rows, 0, 1);
    if (!span) continue;
    std::string_view name = tables_.session.name(rows, 3);
    if (name.empty()) name = tables_.session.name(rows, 4);
    const std::optional<std::int64_t> id = rows.integer(2);
    const auto fill = [&](auto& event) {
      event.start_ns = span->start_ns;
      event.duration_ns = span->duration_ns;
      event.process = tables_.session.process(id);
      event.thread = NsysSession::thread(id.value_or(0));
    };
    if (const std::optional<RangeOp> found = op_of_range(name)) {
      Op op;
      fill(op);
      op.name = tables_.assembly.text(found->name);
      op.shape = tables_.assembly.text(found->shape);
      op.dtype = tables_.assembly.text(found->dtype);
      tables_.assembly.add(op, tables_.reserve());
      continue;
    }
    const auto domain = domains_.find({id.value_or(0) >> 24, rows.integer(6).value_or(0)});
    Range range;
    range.kind = kind_of_range(name, domain != domains_.end() ? domain->second : "");
    range.name = tables_.assembly.text(name);
    fill(range);
    tables_.assembly.add(range, tables_.reserve());
  }
}

Status NsysHost::overhead(std::string_view table) {
  PURLIN_ASSIGN(
      SqliteFile::Rows rows,
      tables_.file.select(table, {"start", "end", "globalTid", "nameId", "name"}, tables_.order));
  while (true) {
    PURLIN_ASSIGN(const bool more, tables_.next(rows));
    if (!more) return Status::ok();
    const std::optional<Span> span = tables_.session.span(rows, 0, 1);
    if (!span) continue;
    std::string_view name = tables_.session.name(rows, 3);
    if (name.empty()) name = tables_.session.name(rows, 4);
    Range range;
    range.start_ns = span->start_ns;
    range.duration_ns = span->duration_ns;
    range.name = tables_.assembly.text(name.empty() ? "profiler overhead" : name);
    range.process = tables_.session.process(rows.integer(2));
    range.thread = NsysSession::thread(rows.integer(2).value_or(0));
    range.kind = RangeKind::kProfiler;
    tables_.assembly.add(range, tables_.reserve());
  }
}

std::uint32_t NsysHost::call_of(std::uint32_t process,
                                std::optional<std::int64_t> correlation) const {
  if (!correlation || *correlation <= 0) return kNone;
  const std::pair<std::uint64_t, std::uint32_t> wanted{launch_key(process, *correlation), 0};
  const auto at = std::lower_bound(launched_.begin(), launched_.end(), wanted);
  return at != launched_.end() && at->first == wanted.first ? at->second : kNone;
}

}  // namespace purlin::profile
