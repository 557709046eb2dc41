// SPDX-License-Identifier: Apache-2.0
// Nsight Systems' SQLite export: kernels, copies, sets and graphs on the devices; API calls, NVTX
// ranges and ops on the host; the calls that launched what, by correlation id.
#include "base/text.h"
#include "model/profile/copy_kind.h"
#include "profile/import/assembly.h"
#include "profile/import/import.h"
#include "profile/import/nsys/session.h"
#include "profile/import/nsys/sqlite_file.h"
#include "profile/ops/api_calls.h"
#include "profile/ops/graph_captures.h"
#include "profile/ops/host_links.h"
#include "profile/ops/range_ops.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

namespace purlin::profile {
namespace {

constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kConcurrentKernels = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL";  // nvprof
constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::string_view kDriverCalls = "CUPTI_ACTIVITY_KIND_DRIVER";  // nvprof
constexpr std::string_view kSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr std::string_view kRanges = "NVTX_EVENTS";
constexpr std::size_t kMaxDomains = 100'000;
constexpr std::uint64_t kProgressEvery = 1 << 16;
constexpr std::uint64_t kMaxSorted = 32'000'000;

std::uint32_t to_u32(std::optional<std::int64_t> value) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value.value_or(0), 0, std::numeric_limits<std::uint32_t>::max()));
}

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

class NsysImporter {
 public:
  NsysImporter(const SqliteFile& file, const ImportOptions& options)
      : file_(file),
        options_(options),
        assembly_(profile_, options_),
        session_(file, profile_, assembly_) {}

  Result<Profile> run() {
    profile_.source = "nsys";
    for (const std::string_view table :
         {kKernels, kConcurrentKernels, kCopies, kSets, kGraphs, kCalls, kDriverCalls, kRanges})
      total_ += file_.row_bound(table);
    for (const std::string_view table : {kKernels, kConcurrentKernels, kCopies, kSets, kGraphs})
      device_events_ += file_.row_bound(table);
    // Beyond the bound the first are kept, so they must come in order of time; but a sort of very
    // many rows would fill the disk, and nsys writes them nearly in order.
    order_ = total_ > options_.max_timeline_events && total_ < kMaxSorted ? "start" : "";
    attempt(session_.read());
    for (const std::string_view table : {kCalls, kDriverCalls}) read(table, &NsysImporter::calls);
    if (profile_.timeline.calls.empty()) read(kSyncs, &NsysImporter::syncs);
    domains();
    read(kRanges, &NsysImporter::ranges);
    for (const std::string_view table : {"PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"})
      read(table, &NsysImporter::overhead);
    link_host(profile_.timeline);
    std::sort(launched_.begin(), launched_.end());
    for (const std::string_view table : {kKernels, kConcurrentKernels})
      read(table, &NsysImporter::kernels);
    read(kCopies, &NsysImporter::copies);
    read(kSets, &NsysImporter::sets);
    read(kGraphs, &NsysImporter::graphs);
    notes();
    session_.finish();
    assembly_.finish();
    return std::move(profile_);
  }

 private:
  using Reader = Status (NsysImporter::*)(std::string_view table);

  // A damaged table costs what is behind the damage, and no other table.
  void attempt(const Status& status) {
    if (status.is_ok()) return;
    profile_.partial = true;
    assembly_.note("damaged", status.message());
  }

  void read(std::string_view table, Reader reader) {
    if (file_.has(table)) attempt((this->*reader)(table));
  }

  Result<bool> next(SqliteFile::Rows& rows) {
    if (++done_ % kProgressEvery == 0 && options_.progress && total_ > 0)
      options_.progress(std::min(done_, total_) * (file_.file_bytes() / total_ + 1),
                        file_.file_bytes());
    return rows.next();
  }

  // Room kept for the devices' events while those of the host are read.
  std::size_t reserve() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(device_events_, options_.max_timeline_events / 2));
  }

  // nvprof has plain ids where nsys has a serialised one.
  std::optional<std::int64_t> global_id(const SqliteFile::Rows& rows, int global, int pid,
                                        int tid) const {
    if (rows.integer(global)) return rows.integer(global);
    if (!rows.integer(pid)) return std::nullopt;
    return (*rows.integer(pid) & 0xFFFFFF) << 24 | (rows.integer(tid).value_or(0) & 0xFFFFFF);
  }

  Status calls(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select(table,
                               {"start", "end", "globalTid", "correlationId", "nameId", "name",
                                "cbid", "processId", "threadId"},
                               order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      const std::optional<Span> span = session_.span(rows, 0, 1);
      if (!span) continue;
      const std::optional<std::int64_t> id = global_id(rows, 2, 7, 8);
      std::string_view name = session_.name(rows, 4);
      if (name.empty()) name = session_.name(rows, 5);
      std::string number;
      if (name.empty()) {
        number = fmt::format("{} {}", table == kCalls ? "runtime call" : "driver call",
                             rows.integer(6).value_or(0));
        name = number;
      }
      name = without_version(name);
      Call call;
      call.start_ns = span->start_ns;
      call.duration_ns = span->duration_ns;
      call.name = assembly_.text(name);
      call.process = session_.process(id);
      call.thread = NsysSession::thread(id.value_or(0));
      call.kind = classify_call(name);
      const std::uint32_t index = assembly_.add(call, reserve());
      const std::optional<std::int64_t> correlation = rows.integer(3);
      if (index != kNone && correlation && *correlation > 0)
        launched_.push_back({key_of(call.process, *correlation), index});
    }
  }

  // Where the calls were not recorded, CUPTI's records of waits replace them.
  Status syncs(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select(table, {"start", "end", "globalPid", "syncType"}, order_));
    constexpr std::array<std::string_view, 5> kNames = {
        "synchronization", "event synchronization", "stream wait event", "stream synchronization",
        "context synchronization"};
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      const std::optional<Span> span = session_.span(rows, 0, 1);
      if (!span) continue;
      const std::uint32_t type = to_u32(rows.integer(3));
      Call call;
      call.start_ns = span->start_ns;
      call.duration_ns = span->duration_ns;
      call.name = assembly_.text(kNames[type < kNames.size() ? type : 0]);
      call.process = session_.process(rows.integer(2));
      call.kind = type == 2 ? CallKind::kOther : CallKind::kSync;  // the stream waits, not the host
      assembly_.add(call, reserve());
    }
  }

  // An event of NVTX is a range where it has an end; NCCL's domain is known by its creation.
  static constexpr std::int64_t kDomainCreate = 75;

  void domains() {
    if (!file_.has(kRanges, "domainId")) return;
    Result<SqliteFile::Rows> rows =
        file_.find(kRanges, {"globalTid", "domainId", "text", "textId"}, "eventType");
    if (!rows.is_ok() || !rows->rewind(kDomainCreate).is_ok()) return;
    while (domains_.size() < kMaxDomains && rows->next().value_or(false)) {
      std::string_view name = session_.name(*rows, 2);
      if (name.empty()) name = session_.name(*rows, 3);
      domains_[{rows->integer(0).value_or(0) >> 24, rows->integer(1).value_or(0)}] = name;
    }
  }

  Status ranges(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select(table,
                                                      {"start", "end", "globalTid", "text",
                                                       "textId", "eventType", "domainId"},
                                                      order_));
    constexpr std::array<std::int64_t, 4> kRangeTypes = {59, 60, 70, 71};  // push-pop, start-end
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      if (rows.is_null(1)) continue;  // a mark, a domain, a range never closed
      const std::optional<std::int64_t> type = rows.integer(5);
      if (type && std::find(kRangeTypes.begin(), kRangeTypes.end(), *type) == kRangeTypes.end())
        continue;
      const std::optional<Span> span = session_.span(rows, 0, 1);
      if (!span) continue;
      std::string_view name = session_.name(rows, 3);
      if (name.empty()) name = session_.name(rows, 4);
      const std::optional<std::int64_t> id = rows.integer(2);
      const auto fill = [&](auto& event) {
        event.start_ns = span->start_ns;
        event.duration_ns = span->duration_ns;
        event.process = session_.process(id);
        event.thread = NsysSession::thread(id.value_or(0));
      };
      if (const std::optional<RangeOp> found = op_of_range(name)) {
        Op op;
        fill(op);
        op.name = assembly_.text(found->name);
        op.shape = assembly_.text(found->shape);
        op.dtype = assembly_.text(found->dtype);
        assembly_.add(op, reserve());
        continue;
      }
      const auto domain = domains_.find({id.value_or(0) >> 24, rows.integer(6).value_or(0)});
      Range range;
      range.kind = kind_of_range(name, domain != domains_.end() ? domain->second : "");
      range.name = assembly_.text(name);
      fill(range);
      assembly_.add(range, reserve());
    }
  }

  Status overhead(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select(table, {"start", "end", "globalTid", "nameId", "name"}, order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      const std::optional<Span> span = session_.span(rows, 0, 1);
      if (!span) continue;
      std::string_view name = session_.name(rows, 3);
      if (name.empty()) name = session_.name(rows, 4);
      Range range;
      range.start_ns = span->start_ns;
      range.duration_ns = span->duration_ns;
      range.name = assembly_.text(name.empty() ? "profiler overhead" : name);
      range.process = session_.process(rows.integer(2));
      range.thread = NsysSession::thread(rows.integer(2).value_or(0));
      range.kind = RangeKind::kProfiler;
      assembly_.add(range, reserve());
    }
  }

  static std::uint64_t key_of(std::uint32_t process, std::int64_t correlation) {
    return std::uint64_t{process} << 32 | static_cast<std::uint32_t>(correlation);
  }

  std::uint32_t call_of(std::uint32_t process, std::optional<std::int64_t> correlation) const {
    if (!correlation || *correlation <= 0) return kNone;
    const std::pair<std::uint64_t, std::uint32_t> wanted{key_of(process, *correlation), 0};
    const auto at = std::lower_bound(launched_.begin(), launched_.end(), wanted);
    return at != launched_.end() && at->first == wanted.first ? at->second : kNone;
  }

  // What all tables of device activities share: start, end, deviceId, streamId, correlationId,
  // globalPid and graphNodeId, in columns 0 to 6.
  std::optional<Activity> activity(const SqliteFile::Rows& rows) {
    const std::optional<Span> span = session_.span(rows, 0, 1);
    if (!span) return std::nullopt;
    Activity activity;
    activity.start_ns = span->start_ns;
    activity.duration_ns = span->duration_ns;
    activity.process = session_.process(rows.integer(5));
    activity.device = session_.device(activity.process, rows.integer(2).value_or(0));
    activity.stream = to_u32(rows.integer(3));
    activity.call = call_of(activity.process, rows.integer(4));
    // CUPTI numbers nodes with their graph in the upper half; where that is empty some graph it is.
    if (const std::int64_t node = rows.integer(6).value_or(0); node != 0) {
      const auto graph = static_cast<std::uint32_t>(static_cast<std::uint64_t>(node) >> 32);
      activity.graph = graph != 0 ? graph : kNone;
    }
    return activity;
  }

  Status kernels(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select(table,
                                                      {"start",
                                                       "end",
                                                       "deviceId",
                                                       "streamId",
                                                       "correlationId",
                                                       "globalPid",
                                                       "graphNodeId",
                                                       "demangledName",
                                                       "mangledName",
                                                       "shortName",
                                                       "name",
                                                       "gridX",
                                                       "gridY",
                                                       "gridZ",
                                                       "blockX",
                                                       "blockY",
                                                       "blockZ",
                                                       "registersPerThread",
                                                       "staticSharedMemory",
                                                       "dynamicSharedMemory",
                                                       "localMemoryPerThread",
                                                       "clusterX",
                                                       "clusterY",
                                                       "clusterZ",
                                                       "graphId"},
                                                      order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> kernel = activity(rows);
      if (!kernel) continue;
      LaunchIdentity identity;
      std::string name;  // a copy: looking up the next string may move it
      for (int column = 7; column <= 10 && name.empty(); ++column)
        name = session_.name(rows, column);
      if (name.empty()) name = "(unnamed kernel)";
      identity.name = name;
      const auto extent = [&](int column) { return std::max(1u, to_u32(rows.integer(column))); };
      identity.launch.grid = {extent(11), extent(12), extent(13)};
      identity.launch.block = {extent(14), extent(15), extent(16)};
      identity.launch.cluster = {extent(21), extent(22), extent(23)};
      identity.registers = to_u32(rows.integer(17));
      identity.static_shared_bytes = to_u32(rows.integer(18));
      identity.launch.dynamic_shared_bytes = to_u32(rows.integer(19));
      identity.local_bytes = to_u32(rows.integer(20));
      identity.device = kernel->device;
      const Timeline& timeline = profile_.timeline;
      if (kernel->call != kNone && timeline.calls[kernel->call].op != kNone) {
        const Op& op = timeline.ops[timeline.calls[kernel->call].op];
        identity.op = timeline.names[op.name];
        identity.shape = timeline.names[op.shape];
        identity.dtype = timeline.names[op.dtype];
      }
      if (const std::uint32_t graph = to_u32(rows.integer(24)); graph != 0) kernel->graph = graph;
      kernel->row = assembly_.kernel_row(identity);
      assembly_.add(*kernel);
    }
  }

  static std::string memory_of(std::string_view name) {
    for (const auto& [word, memory] : {std::pair("PAGEABLE", "pageable"), {"PINNED", "pinned"}})
      if (ends_with(name, word)) return memory;
    return name.empty() ? "" : "other";
  }

  // Names by number, from a table of the file: what `meaning` makes of the name, else of the label.
  Status name_kinds(std::string_view table, std::vector<std::string>& kinds,
                    const std::function<std::string(std::string_view)>& meaning) {
    constexpr std::size_t kMostKinds = 64;
    if (!file_.has(table)) return Status::ok();
    PURLIN_ASSIGN(SqliteFile::Rows names, file_.select(table, {"id", "name", "label"}));
    while (names.next().value_or(false)) {
      const std::size_t id = to_u32(names.integer(0));
      std::string kind = meaning(names.text(1));
      if (kind.empty()) kind = meaning(names.text(2));
      if (id >= kMostKinds || kind.empty()) continue;
      kinds.resize(std::max(kinds.size(), id + 1));
      kinds[id] = std::move(kind);
    }
    return Status::ok();
  }

  Status copies(std::string_view table) {
    // The kinds by number as CUPTI has them; a file's own list of them goes first.
    std::vector<std::string> kinds = {
        "copy", "h2d", "d2h", "h2d", "d2h",           "d2d",           "d2d",
        "d2d",  "d2d", "h2h", "p2p", "migration h2d", "migration d2h", "migration d2d"};
    PURLIN_TRY(name_kinds("ENUM_CUDA_MEMCPY_OPER", kinds, [](std::string_view name) {
      return classify_copy(name) == "copy" ? "" : copy_kind(name);
    }));
    // CUPTI's numbers, which nvprof writes, have "unknown" first.
    std::vector<std::string> memories = file_.has("StringIds")
                                            ? std::vector<std::string>{"pageable", "pinned"}
                                            : std::vector<std::string>{"", "pageable", "pinned"};
    PURLIN_TRY(name_kinds("ENUM_CUDA_MEM_KIND", memories, memory_of));
    PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select(table,
                                                      {"start", "end", "deviceId", "streamId",
                                                       "correlationId", "globalPid", "graphNodeId",
                                                       "bytes", "copyKind", "srcKind", "dstKind"},
                                                      order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> copy = activity(rows);
      if (!copy) continue;
      const std::uint32_t kind = to_u32(rows.integer(8));
      copy->kind = ActivityKind::kCopy;
      copy->bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, rows.integer(7).value_or(0)));
      const std::string direction = kind < kinds.size() ? kinds[kind] : "copy";
      const std::optional<std::int64_t> side = rows.integer(direction == "h2d" ? 9 : 10);
      const std::size_t memory = side && *side >= 0 ? to_u32(side) : memories.size();
      copy->row = assembly_.copy_row(
          copy_kind_of(direction, memory < memories.size() ? memories[memory] : ""), copy->device);
      assembly_.add(*copy);
    }
  }

  Status sets(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select(table,
                               {"start", "end", "deviceId", "streamId", "correlationId",
                                "globalPid", "graphNodeId", "bytes"},
                               order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> set = activity(rows);
      if (!set) continue;
      set->kind = ActivityKind::kSet;
      set->bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, rows.integer(7).value_or(0)));
      set->row = assembly_.copy_row("memset", set->device);
      assembly_.add(*set);
    }
  }

  // One record for all that a launched graph did: time of the device, but of no known kernel.
  Status graphs(std::string_view table) {
    PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select(table,
                                                      {"start", "end", "deviceId", "streamId",
                                                       "correlationId", "globalPid", "", "graphId"},
                                                      order_));
    while (true) {
      PURLIN_ASSIGN(const bool more, next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> graph = activity(rows);
      if (!graph) continue;
      const std::uint32_t id = to_u32(rows.integer(7));
      const std::string name = fmt::format("(CUDA graph {})", id);
      LaunchIdentity identity;
      identity.name = name;
      identity.device = graph->device;
      graph->graph = std::max(1u, id);
      graph->row = assembly_.kernel_row(identity);
      assembly_.add(*graph);
      ++whole_graphs_;
    }
  }

  void notes() {
    const Timeline& timeline = profile_.timeline;
    if (profile_.kernels.empty() && profile_.copies.empty())
      assembly_.note("no_device_work",
                     "the report has no GPU work; record it with nsys profile --trace=cuda,nvtx");
    else if (timeline.calls.empty())
      assembly_.note("no_calls",
                     "no CUDA API calls were recorded: the causes of idle time are not known");
    if (whole_graphs_ > 0)
      assembly_.note(
          "whole_graphs",
          "CUDA graphs were recorded as a whole: their kernels are not known, their time "
          "is under '(CUDA graph N)'. Record with --cuda-graph-trace=node",
          whole_graphs_);
    if (timeline.ops.empty() && !profile_.kernels.empty())
      assembly_.note("no_shapes",
                     "problem shapes are not recorded; PyTorch writes them under "
                     "torch.autograd.profiler.emit_nvtx(record_shapes=True)");
    if (session_.damaged() > 0)
      assembly_.note("rows_damaged", "rows without a start and a later end were left out",
                     session_.damaged());
  }

  const SqliteFile& file_;
  const ImportOptions& options_;
  Profile profile_;
  Assembly assembly_;
  NsysSession session_;
  std::string_view order_;
  std::uint64_t done_ = 0, total_ = 0, device_events_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> launched_;  // key_of -> call
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> domains_;
  double whole_graphs_ = 0;
};

}  // namespace

Result<Profile> import_nsys(const SqliteFile& file, const ImportOptions& options) {
  return NsysImporter(file, options).run();
}

Result<Profile> import_nsys_sqlite(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(const SqliteFile file, SqliteFile::open(path));
  return import_nsys(file, options);
}

}  // namespace purlin::profile
