// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/rocprof_csv.h"

#include "base/files.h"
#include "base/text.h"
#include "profile/import/assembly.h"
#include "profile/import/csv.h"
#include "profile/import/rocm/devices.h"
#include "profile/import/rocm/passes.h"
#include "profile/import/rocm/tables.h"
#include "profile/ops/api_calls.h"
#include "profile/ops/host_links.h"
#include "profile/ops/range_ops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace purlin::profile {
namespace {

using Columns = RocprofColumns;

constexpr std::int64_t kMaxRocprofTime = std::int64_t{1} << 61;
constexpr std::size_t kMaxQueues = 65'536, kMaxDispatches = 20'000'000;
constexpr std::uint64_t kProgressEveryRows = 4096;

// "/run/1234_kernel_trace.csv" -> "/run/1234_": what the files of one process share.
std::string group_of(const std::string& path) {
  const std::string base = base_name(path);
  std::size_t end = base.find('.');
  for (const std::string_view table :
       {"kernel_", "hip_", "hsa_", "memory_", "marker_", "counter_", "agent_info", "domain_",
        "rccl_", "scratch_", "rocdecode_", "kokkos_"})
    end = std::min(end, base.find(table));
  return join_path(parent_path(path), base.substr(0, end));
}

class RocprofImporter {
 public:
  RocprofImporter(const std::vector<RocprofFile>& files, const ImportOptions& options)
      : files_(files),
        options_(options),
        assembly_(profile_, options_),
        devices_(profile_.environment) {}

  Result<Profile> run() {
    profile_.source = "rocprof";
    PURLIN_TRY(read_headers());
    read_all(RocprofTable::kAgents, &RocprofImporter::agent);
    read_all(RocprofTable::kSystem, &RocprofImporter::system);
    read_all(RocprofTable::kRoofline, &RocprofImporter::roofline);
    read_all(RocprofTable::kCalls, &RocprofImporter::call);
    link_host(profile_.timeline);
    std::sort(launched_.begin(), launched_.end());
    read_all(RocprofTable::kKernels, &RocprofImporter::kernel);
    read_all(RocprofTable::kCopies, &RocprofImporter::copy);
    read_all(RocprofTable::kCounters, &RocprofImporter::counter);
    commit_counters();
    // Totals count what the launches of a trace have counted already.
    only_totals_ = profile_.kernels.empty() && profile_.copies.empty();
    if (only_totals_) read_all(RocprofTable::kStats, &RocprofImporter::stat);
    if (profile_.kernels.empty() && profile_.copies.empty() && profile_.timeline.calls.empty())
      return !failure_.is_ok()
                 ? failure_
                 : error(Code::kInvalid,
                         "{}: no kernels, copies or calls in it; give the run's other files too",
                         files_[0].name);
    notes();
    for (ProcessInfo& process : profile_.processes) {
      process.layer = "hip";
      process.complete = true;
    }
    assembly_.finish();
    return std::move(profile_);
  }

 private:
  using Fields = std::span<const std::string_view>;
  using Reader = void (RocprofImporter::*)(const Columns& columns, Fields fields);

  Status read_headers() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      PURLIN_ASSIGN(Input input, files_[i].open());
      CsvReader reader(std::move(input));
      const Result<bool> found = reader.next();
      if (!found.is_ok()) return in_file(found.status(), files_[i].name);
      const Columns columns(reader.fields());
      RocprofHeader header;
      header.file = i;
      header.group = group_of(files_[i].name);
      header.table = columns.table();
      header.numbered = columns.has(Columns::kDispatch);
      header.timed = columns.has(Columns::kStart);
      for (const auto& [column, name] : columns.counters()) header.counters += name + "\n";
      if (*found && header.table == RocprofTable::kNone)
        return error(Code::kInvalid, "{}: line {}: no header of a table of rocprof", files_[i].name,
                     reader.line());
      if (header.table == RocprofTable::kCalls && reader.next().value_or(false))
        header.hip = !starts_with(columns.get(Columns::kDomain, reader.fields()), "HSA");
      hip_calls_ = hip_calls_ || header.hip;
      counters_ = counters_ || header.table == RocprofTable::kCounters;
      headers_.push_back(std::move(header));
    }
    mark_pass_folders(files_, headers_);
    mark_pass_tables(files_, headers_);
    return Status::ok();
  }

  void read_all(RocprofTable table, Reader read) {
    for (const RocprofHeader& header : headers_) {
      if (header.table != table) continue;
      // HSA's calls are what HIP's consist of.
      if (table == RocprofTable::kCalls && hip_calls_ && !header.hip) continue;
      const bool once = table == RocprofTable::kCalls || table == RocprofTable::kCopies ||
                        table == RocprofTable::kStats;
      if (once && header.later_pass) continue;
      later_pass_ = header.later_pass;
      const Status status = read_file(header, read);
      if (status.is_ok()) continue;
      profile_.partial = true;
      failure_ = in_file(status, files_[header.file].name);
      assembly_.note("damaged", in_file(status, files_[header.file].name).message());
    }
  }

  Status read_file(const RocprofHeader& header, Reader read) {
    PURLIN_ASSIGN(Input input, files_[header.file].open());
    CsvReader reader(std::move(input));
    PURLIN_ASSIGN(const bool found, reader.next());
    if (!found) return Status::ok();
    const Columns columns(reader.fields());
    group_ = groups_.try_emplace(header.group, groups_.size()).first->second;
    for (std::uint64_t records = 1;; ++records) {
      PURLIN_ASSIGN(const bool more, reader.next());
      if (!more) return Status::ok();
      if (options_.progress && records % kProgressEveryRows == 0)
        options_.progress(reader.input().file_offset(), reader.input().file_size());
      if (reader.fields().size() != columns.size()) {
        if (reader.cut())
          return error(Code::kCorrupt, "line {}: the last record is cut short", reader.line());
        damaged(fmt::format("{}, line {}: {} fields where the header has {}",
                            files_[header.file].name, reader.line(), reader.fields().size(),
                            columns.size()));
        continue;
      }
      place_ = {header.file, reader.line()};
      (this->*read)(columns, reader.fields());
    }
  }

  void damaged(std::string text) {
    if (damaged_++ == 0) first_damage_ = std::move(text);
  }
  void damaged_time() {
    damaged(fmt::format("{}, line {}: no start, or no later end", files_[place_.first].name,
                        place_.second));
  }

  std::optional<std::pair<std::int64_t, std::int64_t>> span(const Columns& columns, Fields fields) {
    const auto start = parse_int(trim(columns.get(Columns::kStart, fields)));
    const auto end = parse_int(trim(columns.get(Columns::kEnd, fields)));
    const bool untimed = start == 0 && end == 0;  // the driver gave none
    if (!start || !end || untimed || *end < *start || *start < 0 || *end > kMaxRocprofTime) {
      damaged_time();
      return std::nullopt;
    }
    return std::pair(*start, *end - *start);
  }

  // A process is a group of files; rocprof and rocprofv2 also say which one a launch was of.
  std::uint32_t process(const Columns& columns, Fields fields) {
    const std::int64_t pid = parse_int(columns.get(Columns::kProcess, fields)).value_or(0);
    const std::uint32_t index = assembly_.process(group_, pid);
    if (profile_.processes[index].pid == 0) profile_.processes[index].pid = pid;
    return index;
  }

  void agent(const Columns& columns, Fields fields) { devices_.add_agent(columns, fields); }
  void system(const Columns& columns, Fields fields) { devices_.add_system(columns, fields); }
  void roofline(const Columns& columns, Fields fields) { devices_.add_roofline(columns, fields); }

  // Queues are numbers, or addresses; the latter are numbered as they come.
  std::uint32_t stream(const Columns& columns, Fields fields) {
    std::string_view text = columns.get(Columns::kStream, fields);
    if (text.empty()) text = columns.get(Columns::kQueue, fields);
    const std::int64_t number = number_in(text);
    if (number <= 0xFFFF) return static_cast<std::uint32_t>(std::max<std::int64_t>(number, 0));
    if (queues_.size() >= kMaxQueues) return 0;
    const auto next = static_cast<std::uint32_t>(queues_.size() + 1);
    return queues_.try_emplace(number, next).first->second;
  }

  void call(const Columns& columns, Fields fields) {
    const auto times = span(columns, fields);
    if (!times) return;
    const std::string_view name = columns.get(Columns::kFunction, fields);
    const auto fill = [&](auto& event) {
      event.start_ns = times->first;
      event.duration_ns = times->second;
      event.process = process(columns, fields);
      event.thread = to_count(columns.get(Columns::kThread, fields));
    };
    if (starts_with(columns.get(Columns::kDomain, fields), "MARKER")) {
      if (times->second == 0) return;  // a mark
      if (const std::optional<RangeOp> found = op_of_range(name)) {
        Op op;
        fill(op);
        op.name = assembly_.text(found->name);
        op.shape = assembly_.text(found->shape);
        op.dtype = assembly_.text(found->dtype);
        assembly_.add(op, reserve());
        return;
      }
      Range range;
      fill(range);
      range.name = assembly_.text(name);
      range.kind = kind_of_range(name, "");
      assembly_.add(range, reserve());
      return;
    }
    Call call;
    fill(call);
    call.name = assembly_.text(name);
    call.kind = classify_call(name);
    const std::uint32_t index = assembly_.add(call, reserve());
    const auto correlation = parse_int(columns.get(Columns::kCorrelation, fields));
    if (index != kNone && correlation && *correlation > 0)
      launched_.push_back({{call.process, *correlation}, index});
  }

  // Half the room is the devices'.
  std::size_t reserve() const { return options_.max_timeline_events / 2; }

  std::uint32_t call_of(std::uint32_t process, std::string_view correlation) const {
    const std::optional<std::int64_t> id = parse_int(correlation);
    if (!id || *id <= 0) return kNone;
    const std::pair<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> wanted{{process, *id},
                                                                                  0};
    const auto at = std::lower_bound(launched_.begin(), launched_.end(), wanted);
    return at != launched_.end() && at->first == wanted.first ? at->second : kNone;
  }

  // AMD counts a grid in work-items; rocprof and rocprofv2 give the product of its extents.
  static LaunchShape launch_of(const Columns& columns, Fields fields) {
    LaunchShape launch;
    if (!columns.has(Columns::kGroupX) && !columns.has(Columns::kGroup))
      return {{0, 0, 0}, {0, 0, 0}};  // not known
    const auto extent = [&](Columns::Name name) {
      return std::max(1u, to_count(columns.get(name, fields)));
    };
    const auto blocks = [](std::uint32_t items, std::uint32_t group) {
      return items / group + (items % group != 0 ? 1 : 0);
    };
    if (columns.has(Columns::kGroupX)) {
      launch.block = {extent(Columns::kGroupX), extent(Columns::kGroupY), extent(Columns::kGroupZ)};
      const Dim3 items = {extent(Columns::kGridX), extent(Columns::kGridY),
                          extent(Columns::kGridZ)};
      for (std::size_t i = 0; i < 3; ++i) launch.grid[i] = blocks(items[i], launch.block[i]);
    } else {
      launch.block[0] = extent(Columns::kGroup);
      launch.grid[0] = blocks(extent(Columns::kGrid), launch.block[0]);
    }
    return launch;
  }

  LaunchIdentity identity_of(const Columns& columns, Fields fields) {
    LaunchIdentity identity;
    identity.name = without_clone_marks(columns.get(Columns::kKernelName, fields));
    if (identity.name.empty()) identity.name = "(unnamed kernel)";
    identity.launch = launch_of(columns, fields);
    identity.registers = to_count(columns.get(Columns::kRegisters, fields)) +
                         (to_count(columns.get(Columns::kAccumulators, fields)) & 0xFFFF);
    identity.static_shared_bytes = to_count(columns.get(Columns::kShared, fields));
    identity.local_bytes = to_count(columns.get(Columns::kScratch, fields));
    identity.device = devices_.index(columns.get(Columns::kAgent, fields));
    const int wave = static_cast<int>(to_count(columns.get(Columns::kWaveSize, fields)) & 0xFFFF);
    if (wave > 0) devices_.info(identity.device).warp_size = wave;
    return identity;
  }

  void kernel(const Columns& columns, Fields fields) {
    const std::string_view kind = columns.get(Columns::kKind, fields);
    if (!kind.empty() && kind != "KERNEL_DISPATCH") return;
    LaunchIdentity identity = identity_of(columns, fields);
    if (later_pass_) {
      if (!columns.counters().empty())
        add_counters(columns, fields, assembly_.kernel_row(identity));
      return;
    }
    const std::uint32_t process = this->process(columns, fields);
    const std::uint32_t call = call_of(process, columns.get(Columns::kCorrelation, fields));
    const Timeline& timeline = profile_.timeline;
    if (call != kNone && timeline.calls[call].op != kNone) {
      const Op& op = timeline.ops[timeline.calls[call].op];
      identity.op = timeline.names[op.name];
      identity.shape = timeline.names[op.shape];
      identity.dtype = timeline.names[op.dtype];
    }
    const bool counted = !columns.counters().empty();
    if (!columns.has(Columns::kStart) || counted) {
      untimed(columns, fields, identity, counted);
      return;
    }
    const auto times = span(columns, fields);
    if (!times) return;
    Activity activity;
    activity.start_ns = times->first;
    activity.duration_ns = times->second;
    activity.process = process;
    activity.device = static_cast<std::uint16_t>(identity.device);
    activity.stream = stream(columns, fields);
    activity.call = call;
    activity.row = assembly_.kernel_row(identity);
    assembly_.add(activity);
    remember(columns, fields, activity.row);
  }

  // Launches with counters were run one at a time, so their times make no timeline.
  void untimed(const Columns& columns, Fields fields, const LaunchIdentity& identity,
               bool counted) {
    const std::uint32_t row = assembly_.kernel_row(identity);
    if (const auto duration = duration_of(columns, fields)) assembly_.add_untimed(row, *duration);
    add_counters(columns, fields, row);
    if (counted) ++counted_launches_;
  }

  void add_counters(const Columns& columns, Fields fields, std::uint32_t row) {
    std::size_t at = 0;
    for (const auto& [column, name] : columns.counters())
      if (const auto value = parse_double(trim(fields[column])); value && std::isfinite(*value))
        assembly_.add_counter(row, name, *value, 1, at);
  }

  std::optional<double> duration_of(const Columns& columns, Fields fields) {
    if (columns.has(Columns::kStart) && columns.has(Columns::kEnd)) {
      const auto times = span(columns, fields);
      if (times) return static_cast<double>(times->second);
      return std::nullopt;
    }
    const auto duration = parse_double(trim(columns.get(Columns::kDuration, fields)));
    if (duration && *duration >= 0 && *duration < 1e18) return duration;
    ++without_duration_;
    return std::nullopt;
  }

  // Counters name their launch by its number.
  void remember(const Columns& columns, Fields fields, std::uint32_t row) {
    const auto dispatch = parse_int(columns.get(Columns::kDispatch, fields));
    if (dispatch && counters_ && dispatches_.size() < kMaxDispatches)
      dispatches_[{group_, *dispatch}] = row;
  }

  // One row for each counter of a launch, and of each instance of a counter; gathered until the
  // next launch.
  void counter(const Columns& columns, Fields fields) {
    const std::int64_t dispatch = parse_int(columns.get(Columns::kDispatch, fields)).value_or(-1);
    const std::string_view name = columns.get(Columns::kCounterName, fields);
    const auto value = parse_double(trim(columns.get(Columns::kCounterValue, fields)));
    if (std::pair(group_, dispatch) != pending_launch_) {
      commit_counters();
      pending_launch_ = {group_, dispatch};
      pending_row_ = counted_row(columns, fields, dispatch);
    }
    if (name.empty() || !value || !std::isfinite(*value)) return;
    const auto same = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const auto& counter) { return counter.first == name; });
    if (same != pending_.end()) {
      same->second += *value;
    } else if (pending_.size() < 4096) {
      pending_.emplace_back(name, *value);
    }
  }

  std::uint32_t counted_row(const Columns& columns, Fields fields, std::int64_t dispatch) {
    if (later_pass_) return assembly_.kernel_row(identity_of(columns, fields));
    ++counted_launches_;
    if (const auto traced = dispatches_.find({group_, dispatch}); traced != dispatches_.end())
      return traced->second;
    const std::uint32_t row = assembly_.kernel_row(identity_of(columns, fields));
    process(columns, fields);
    // Each pass runs the program again: launches are those of the first.
    if (first_counted_ == kNoGroup) first_counted_ = group_;
    if (group_ != first_counted_) return row;
    if (columns.has(Columns::kStart)) {
      if (const auto duration = duration_of(columns, fields)) assembly_.add_untimed(row, *duration);
    } else {
      ++without_duration_;
    }
    return row;
  }

  void commit_counters() {
    std::size_t at = 0;
    for (const auto& [name, value] : pending_)
      assembly_.add_counter(pending_row_, name, value, 1, at);
    pending_.clear();
    pending_launch_ = {kNoGroup, -1};
  }

  void copy(const Columns& columns, Fields fields) {
    const auto times = span(columns, fields);
    if (!times) return;
    const std::string_view kind = classify_copy(columns.get(Columns::kDirection, fields));
    Activity activity;
    activity.kind = ActivityKind::kCopy;
    activity.start_ns = times->first;
    activity.duration_ns = times->second;
    activity.process = process(columns, fields);
    activity.device = static_cast<std::uint16_t>(devices_.index(
        columns.get(kind == "h2d" ? Columns::kTargetAgent : Columns::kSourceAgent, fields)));
    activity.stream = stream(columns, fields);
    activity.call = call_of(activity.process, columns.get(Columns::kCorrelation, fields));
    activity.row = assembly_.copy_row(kind, activity.device);
    assembly_.add(activity);
    ++copies_;
  }

  void stat(const Columns& columns, Fields fields) {
    const std::string_view name = columns.get(Columns::kName, fields);
    const double calls = parse_double(columns.get(Columns::kCalls, fields)).value_or(0);
    const double total = parse_double(columns.get(Columns::kTotal, fields)).value_or(-1);
    // API functions and whole domains have such tables as well.
    for (const std::string_view other : {"hip", "__hip", "hsa_", "HIP_", "HSA_", "KERNEL_DISPATCH",
                                         "MARKER_", "RCCL_", "SCRATCH_MEMORY", "roctx"})
      if (starts_with(name, other)) return;
    if (name == "MEMORY_COPY") return;
    if (!(calls >= 1) || !(total >= 0) || !(calls < 1e15) || !(total < 1e18)) {
      damaged(fmt::format("{}, line {}: no count, or no total", files_[place_.first].name,
                          place_.second));
      return;
    }
    if (starts_with(name, "MEMORY_COPY") || starts_with(name, "Copy")) {
      const std::uint32_t row = assembly_.copy_row(classify_copy(name), devices_.index(""));
      profile_.copies[row].duration.add(total / calls, calls);
      copies_ += calls;
      return;
    }
    LaunchIdentity identity;
    identity.name = without_clone_marks(name);
    identity.device = devices_.index("");
    assembly_.add_untimed(assembly_.kernel_row(identity), total / calls, calls);
  }

  void notes() {
    if (profile_.kernels.empty())
      assembly_.note("no_device_work", "no kernels: give the run's *_kernel_trace.csv as well");
    if (only_totals_)
      assembly_.note("aggregates_only",
                     "totals per kernel alone: no quantiles, launch shapes or timeline. Give the "
                     "trace of the launches as well");
    else if (profile_.timeline.calls.empty() && !profile_.timeline.empty())
      assembly_.note("no_calls",
                     "no calls of the runtime: the causes of idle time are not known. Record with "
                     "--hip-trace and give all files of the run, or their folder");
    if (counted_launches_ > 0)
      assembly_.note("replayed",
                     "launches with counters were run one at a time; their times make no timeline",
                     counted_launches_);
    if (without_duration_ > 0)
      assembly_.note("durations_unknown", "launches without times; record with --kernel-trace",
                     without_duration_);
    if (copies_ > 0)
      assembly_.note("copies_without_bytes", "memcpys without a number of bytes", copies_);
    if (!devices_.described())
      assembly_.note("no_device_info",
                     "the files do not say which GPU it was; *_agent_info.csv (rocprofv3) and "
                     "sysinfo.csv (rocprof-compute) do");
    if (damaged_ > 0)
      assembly_.note("rows_damaged",
                     fmt::format("{} left out; {}", counted(damaged_, "row"), first_damage_),
                     static_cast<double>(damaged_));
  }

  struct HashLaunch {
    std::size_t operator()(const std::pair<std::size_t, std::int64_t>& launch) const {
      return launch.first * 0x9E3779B97F4A7C15u ^ static_cast<std::size_t>(launch.second);
    }
  };
  static constexpr std::size_t kNoGroup = static_cast<std::size_t>(-1);

  const std::vector<RocprofFile>& files_;
  const ImportOptions& options_;
  Profile profile_;
  Assembly assembly_;
  RocprofDevices devices_;
  std::vector<RocprofHeader> headers_;
  std::map<std::string, std::size_t> groups_;
  std::size_t group_ = 0;
  std::pair<std::size_t, std::uint64_t> place_;  // file, line: for messages
  std::map<std::int64_t, std::uint32_t> queues_;
  // process and correlation id -> call; group and dispatch -> row
  std::vector<std::pair<std::pair<std::uint32_t, std::int64_t>, std::uint32_t>> launched_;
  std::unordered_map<std::pair<std::size_t, std::int64_t>, std::uint32_t, HashLaunch> dispatches_;
  std::pair<std::size_t, std::int64_t> pending_launch_ = {kNoGroup, -1};
  std::uint32_t pending_row_ = 0;
  std::vector<std::pair<std::string, double>> pending_;
  std::size_t first_counted_ = kNoGroup, damaged_ = 0;
  bool hip_calls_ = false, counters_ = false, only_totals_ = false, later_pass_ = false;
  double counted_launches_ = 0, without_duration_ = 0, copies_ = 0;
  std::string first_damage_;
  Status failure_;
};

}  // namespace

Result<Profile> import_rocprof_csv(const std::vector<RocprofFile>& files,
                                   const ImportOptions& options) {
  if (files.empty()) return error(Code::kInvalid, "no files of rocprof");
  return RocprofImporter(files, options).run();
}

Result<Profile> import_rocprof_csv(const std::vector<std::string>& paths,
                                   const ImportOptions& options) {
  std::vector<RocprofFile> files;
  for (const std::string& path : paths)
    files.push_back({path, [path] { return Input::open(path); }});
  return import_rocprof_csv(files, options);
}

Result<Profile> import_rocprof_csv(const std::string& path, const ImportOptions& options) {
  if (!is_directory(path)) return import_rocprof_csv(std::vector<std::string>{path}, options);
  PURLIN_ASSIGN(const std::vector<std::string> paths, rocprof_files(path));
  if (paths.empty())
    return error(Code::kInvalid, "{}: a folder without CSV files of rocprof", path);
  return import_rocprof_csv(paths, options);
}

}  // namespace purlin::profile
