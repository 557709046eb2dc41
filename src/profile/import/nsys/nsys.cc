// SPDX-License-Identifier: Apache-2.0
// Nsight Systems' SQLite export: kernels, copies, sets and graphs on the devices; API calls, NVTX
// ranges and ops on the host; the calls that launched what, by correlation id.
#include "base/text.h"
#include "model/profile/copy_kind.h"
#include "profile/import/assembly.h"
#include "profile/import/import.h"
#include "profile/import/nsys/host.h"
#include "profile/import/nsys/session.h"
#include "profile/import/nsys/sqlite_file.h"
#include "profile/ops/api_calls.h"
#include "profile/ops/graph_captures.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

namespace purlin::profile {
namespace {

constexpr std::uint64_t kMaxSorted = 32'000'000;

class NsysImporter {
 public:
  NsysImporter(const SqliteFile& file, const ImportOptions& options)
      : file_(file),
        options_(options),
        assembly_(profile_, options_),
        session_(file, profile_, assembly_),
        tables_{file, options_, profile_, assembly_, session_},
        host_(tables_) {}

  Result<Profile> run() {
    profile_.source = "nsys";
    for (const std::string_view table :
         {kNsysKernels, kNsysConcurrentKernels, kNsysCopies, kNsysSets, kNsysGraphs, kNsysCalls,
          kNsysDriverCalls, kNsysRanges})
      tables_.total += file_.row_bound(table);
    for (const std::string_view table :
         {kNsysKernels, kNsysConcurrentKernels, kNsysCopies, kNsysSets, kNsysGraphs})
      tables_.device_events += file_.row_bound(table);
    // Beyond the bound the first are kept, so they must come in order of time; but a sort of very
    // many rows would fill the disk, and nsys writes them nearly in order.
    tables_.order =
        tables_.total > options_.max_timeline_events && tables_.total < kMaxSorted ? "start" : "";
    tables_.attempt(session_.read());
    host_.read();
    for (const std::string_view table : {kNsysKernels, kNsysConcurrentKernels})
      read(table, &NsysImporter::kernels);
    read(kNsysCopies, &NsysImporter::copies);
    read(kNsysSets, &NsysImporter::sets);
    read(kNsysGraphs, &NsysImporter::graphs);
    notes();
    session_.finish();
    assembly_.finish();
    return std::move(profile_);
  }

 private:
  using Reader = Status (NsysImporter::*)(std::string_view table);

  void read(std::string_view table, Reader reader) {
    if (file_.has(table)) tables_.attempt((this->*reader)(table));
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
    activity.stream = nsys_u32(rows.integer(3));
    activity.call = host_.call_of(activity.process, rows.integer(4));
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
                                                      tables_.order));
    while (true) {
      PURLIN_ASSIGN(const bool more, tables_.next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> kernel = activity(rows);
      if (!kernel) continue;
      LaunchIdentity identity;
      std::string name;  // a copy: looking up the next string may move it
      for (int column = 7; column <= 10 && name.empty(); ++column)
        name = session_.name(rows, column);
      if (name.empty()) name = "(unnamed kernel)";
      identity.name = name;
      const auto extent = [&](int column) { return std::max(1u, nsys_u32(rows.integer(column))); };
      identity.launch.grid = {extent(11), extent(12), extent(13)};
      identity.launch.block = {extent(14), extent(15), extent(16)};
      identity.launch.cluster = {extent(21), extent(22), extent(23)};
      identity.registers = nsys_u32(rows.integer(17));
      identity.static_shared_bytes = nsys_u32(rows.integer(18));
      identity.launch.dynamic_shared_bytes = nsys_u32(rows.integer(19));
      identity.local_bytes = nsys_u32(rows.integer(20));
      identity.device = kernel->device;
      const Timeline& timeline = profile_.timeline;
      if (kernel->call != kNone && timeline.calls[kernel->call].op != kNone) {
        const Op& op = timeline.ops[timeline.calls[kernel->call].op];
        identity.op = timeline.names[op.name];
        identity.shape = timeline.names[op.shape];
        identity.dtype = timeline.names[op.dtype];
      }
      if (const std::uint32_t graph = nsys_u32(rows.integer(24)); graph != 0) kernel->graph = graph;
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
      const std::size_t id = nsys_u32(names.integer(0));
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
                                                      tables_.order));
    while (true) {
      PURLIN_ASSIGN(const bool more, tables_.next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> copy = activity(rows);
      if (!copy) continue;
      const std::uint32_t kind = nsys_u32(rows.integer(8));
      copy->kind = ActivityKind::kCopy;
      copy->bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, rows.integer(7).value_or(0)));
      const std::string direction = kind < kinds.size() ? kinds[kind] : "copy";
      const std::optional<std::int64_t> side = rows.integer(direction == "h2d" ? 9 : 10);
      const std::size_t memory = side && *side >= 0 ? nsys_u32(side) : memories.size();
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
                               tables_.order));
    while (true) {
      PURLIN_ASSIGN(const bool more, tables_.next(rows));
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
                                                      tables_.order));
    while (true) {
      PURLIN_ASSIGN(const bool more, tables_.next(rows));
      if (!more) return Status::ok();
      std::optional<Activity> graph = activity(rows);
      if (!graph) continue;
      const std::uint32_t id = nsys_u32(rows.integer(7));
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
  NsysTables tables_;
  NsysHost host_;
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
