// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/rocpd.h"

#include "base/json/json.h"
#include "base/text.h"
#include "profile/import/rocm/run_builder.h"

#include <algorithm>
#include <unordered_map>

namespace purlin::profile {
namespace {

constexpr std::string_view kDispatchTable = "rocpd_kernel_dispatch";
constexpr std::size_t kMostCached = 4'000'000, kMostCounterValues = 20'000'000;
constexpr std::uint64_t kRowsPerReport = 1 << 16;

std::uint32_t count_in(std::optional<std::int64_t> value) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value.value_or(0), 0, std::int64_t{0xFFFFFFFF}));
}

// A table of facts by id, read once.
template <class Fact>
using ById = std::unordered_map<std::int64_t, Fact>;

// The tables of one run: those whose names end alike.
class RocpdRun {
 public:
  RocpdRun(const SqliteFile& file, std::string suffix, std::uint64_t number, RocmRun& run,
           const ImportOptions& options)
      : file_(file), suffix_(std::move(suffix)), number_(number), run_(run), options_(options) {}

  void facts() {
    read("rocpd_info_process", {"id", "pid", "command"}, [&](const SqliteFile::Rows& row) {
      const std::int64_t id = row.integer(0).value_or(0);
      processes_[id] =
          run_.process(number_ << 32 | count_in(id), row.integer(1).value_or(0), row.text(2));
    });
    read("rocpd_info_thread", {"id", "tid"}, [&](const SqliteFile::Rows& row) {
      threads_[row.integer(0).value_or(0)] = count_in(row.integer(1));
    });
    read("rocpd_string", {"id", "string"}, [&](const SqliteFile::Rows& row) {
      if (strings_.size() < kMostCached) strings_[row.integer(0).value_or(0)] = row.text(1);
    });
    read("rocpd_info_agent",
         {"id", "type", "absolute_index", "type_index", "name", "product_name", "model_name",
          "extdata"},
         [&](const SqliteFile::Rows& row) { agent(row); });
    read("rocpd_info_kernel_symbol",
         {"id", "display_name", "kernel_name", "arch_vgpr_count", "accum_vgpr_count"},
         [&](const SqliteFile::Rows& row) {
           if (symbols_.size() >= kMostCached) return;
           Symbol& symbol = symbols_[row.integer(0).value_or(0)];
           symbol.name = row.text(1).empty() ? row.text(2) : row.text(1);
           symbol.registers = count_in(row.integer(3)) + (count_in(row.integer(4)) & 0xFFFF);
         });
    read("rocpd_track", {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"},
         [&](const SqliteFile::Rows& row) {
           if (tracks_.size() >= kMostCached) return;
           Track& track = tracks_[row.integer(0).value_or(0)];
           track = {row.integer(1).value_or(0), row.integer(2).value_or(0),
                    row.integer(3).value_or(-1), row.integer(4).value_or(0),
                    row.integer(5).value_or(0)};
         });
  }

  void calls() {
    read("rocpd_region",
         {"start", "end", "start_id", "end_id", "track_id", "pid", "tid", "name_id", "event_id"},
         [&](const SqliteFile::Rows& row) {
           Track track = track_of(row, 4);
           if (const auto pid = row.integer(5)) track.process = *pid;
           if (const auto tid = row.integer(6)) track.thread = *tid;
           const auto name = strings_.find(row.integer(7).value_or(-1));
           if (name == strings_.end() || name->second.empty()) return;
           const auto thread = threads_.find(track.thread);
           run_.add_call(name->second, span_of(row), process(track.process),
                         thread == threads_.end() ? 0 : thread->second, stack_of(row.integer(8)));
         });
  }

  void work() {
    const bool counted = file_.row_bound(table("rocpd_pmc_event")) > 0;
    read(kDispatchTable,
         {"start", "end", "start_id", "end_id", "track_id", "pid", "agent_id", "queue_id",
          "stream_id", "kernel_id", "group_segment_size", "private_segment_size",
          "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y",
          "grid_size_z", "event_id"},
         [&](const SqliteFile::Rows& row) {
           const std::optional<std::uint32_t> known = dispatch(row);
           if (known && counted && rows_.size() < kMostCached)
             rows_[row.integer(18).value_or(-1)] = *known;
         });
    read("rocpd_memory_copy",
         {"start", "end", "start_id", "end_id", "track_id", "pid", "src_agent_id", "dst_agent_id",
          "queue_id", "stream_id", "name_id", "size", "event_id"},
         [&](const SqliteFile::Rows& row) { copy(row); });
    counters();
  }

 private:
  struct Symbol {
    std::string name;
    std::uint32_t registers = 0;
  };
  struct Track {
    std::int64_t process = 0, thread = 0, agent = -1, queue = 0, stream = 0;
  };

  std::string table(std::string_view name) const { return std::string(name) + suffix_; }

  // Damage ends a table, and no other.
  template <class Use>
  void read(std::string_view name, SqliteFile::Columns columns, Use use) {
    if (!file_.has(table(name))) return;
    Result<SqliteFile::Rows> rows = file_.select(table(name), columns);
    Status status = rows.status();
    while (status.is_ok()) {
      const Result<bool> more = rows->next();
      status = more.status();
      if (!status.is_ok() || !*more) break;
      if (options_.progress && rows->count() % kRowsPerReport == 0)
        options_.progress(0, file_.file_bytes());
      use(*rows);
    }
    if (!status.is_ok()) run_.damaged(status);
  }

  // One column of the row with this id.
  std::optional<std::int64_t> look_up(std::optional<SqliteFile::Rows>& rows, std::string_view name,
                                      std::string_view column, std::optional<std::int64_t> id) {
    if (!id) return std::nullopt;
    if (!rows) {
      if (!file_.has(table(name), column)) return std::nullopt;
      Result<SqliteFile::Rows> found = file_.find(table(name), {column}, "id");
      if (!found.is_ok()) return std::nullopt;
      rows.emplace(std::move(found).value());
    }
    if (!rows->rewind(*id).is_ok() || !rows->next().value_or(false)) return std::nullopt;
    return rows->integer(0);
  }

  // start, end, start_id and end_id are the first columns of all records.
  RocmSpan span_of(const SqliteFile::Rows& row) {
    const auto time = [&](int value, int reference) {
      if (const auto inline_value = row.integer(value)) return *inline_value;
      return look_up(timestamps_, "rocpd_timestamp", "value", row.integer(reference)).value_or(0);
    };
    return {time(0, 2), time(1, 3)};
  }

  Track track_of(const SqliteFile::Rows& row, int column) const {
    const auto track = tracks_.find(row.integer(column).value_or(-1));
    return track == tracks_.end() ? Track{} : track->second;
  }

  // What a call and its work have in common.
  std::int64_t stack_of(std::optional<std::int64_t> event) {
    return look_up(events_, "rocpd_event", "stack_id", event).value_or(0);
  }

  std::uint32_t process(std::int64_t id) {
    const auto known = processes_.find(id);
    if (known != processes_.end()) return known->second;
    return processes_[id] = run_.process(number_ << 32 | count_in(id), id);
  }

  void agent(const SqliteFile::Rows& row) {
    RocmAgent agent;
    agent.id = row.integer(0).value_or(0) + agent_base();
    agent.gpu = row.text(1) == "GPU";
    agent.node = row.integer(2).value_or(-1);
    agent.ordinal = row.integer(3).value_or(-1);
    DeviceInfo& info = agent.info;
    info.arch = row.text(4);
    info.name = row.text(5).empty() ? row.text(6) : row.text(5);
    if (info.name.empty()) info.name = info.arch;
    constexpr std::size_t kMostFacts = 1 << 20;
    const Result<Json> facts = Json::parse(row.text(7), {kMostFacts, 16});
    if (facts.is_ok()) {
      const auto fact = [&](std::string_view key) { return count_in((*facts)[key].as_int()); };
      info.compute_units = static_cast<int>(fact("cu_count") & 0xFFFFFF);
      info.clock_mhz = fact("max_engine_clk_fcompute");
      info.warp_size = static_cast<int>(fact("wave_front_size") & 0xFFFF);
      info.shared_memory_per_unit = std::int64_t{fact("lds_size_in_kb")} * 1024;
    }
    run_.add_agent(std::move(agent));
  }
  // Agents of several runs in one file may have the same ids.
  std::int64_t agent_base() const { return static_cast<std::int64_t>(number_) * 1'000'000; }

  std::optional<std::uint32_t> dispatch(const SqliteFile::Rows& row) {
    const Track track = track_of(row, 4);
    const auto symbol = symbols_.find(row.integer(9).value_or(-1));
    RocmDispatch dispatch;
    if (symbol != symbols_.end()) {
      dispatch.name = symbol->second.name;
      dispatch.registers = symbol->second.registers;
    }
    dispatch.span = span_of(row);
    dispatch.process = process(row.integer(5).value_or(track.process));
    dispatch.agent = row.integer(6).value_or(track.agent) + agent_base();
    const std::int64_t stream = row.integer(8).value_or(track.stream);
    dispatch.stream = stream > 0 ? stream : row.integer(7).value_or(track.queue);
    dispatch.correlation = stack_of(row.integer(18));
    dispatch.shared_bytes = count_in(row.integer(10));
    dispatch.scratch_bytes = count_in(row.integer(11));
    for (int i = 0; i < 3; ++i) {
      dispatch.group[static_cast<std::size_t>(i)] = count_in(row.integer(12 + i));
      dispatch.items[static_cast<std::size_t>(i)] = count_in(row.integer(15 + i));
    }
    return run_.add(dispatch);
  }

  void copy(const SqliteFile::Rows& row) {
    const Track track = track_of(row, 4);
    const auto name = strings_.find(row.integer(10).value_or(-1));
    RocmCopy copy;
    if (name != strings_.end()) copy.direction = name->second;
    copy.span = span_of(row);
    copy.process = process(row.integer(5).value_or(track.process));
    copy.source_agent = row.integer(6).value_or(track.agent) + agent_base();
    copy.target_agent = row.integer(7).value_or(track.agent) + agent_base();
    const std::int64_t stream = row.integer(9).value_or(track.stream);
    copy.stream = stream > 0 ? stream : row.integer(8).value_or(track.queue);
    copy.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.integer(11).value_or(0)));
    copy.correlation = stack_of(row.integer(12));
    run_.add(copy);
  }

  // A counter has a row for each of its instances; they belong together.
  void counters() {
    ById<std::string> names;
    read("rocpd_info_pmc", {"id", "symbol", "name"}, [&](const SqliteFile::Rows& row) {
      if (names.size() < kMostCached)
        names[row.integer(0).value_or(0)] = row.text(1).empty() ? row.text(2) : row.text(1);
    });
    std::map<std::pair<std::int64_t, std::int64_t>, double> sums;  // event, counter
    read("rocpd_pmc_event", {"event_id", "pmc_id", "value"}, [&](const SqliteFile::Rows& row) {
      if (sums.size() < kMostCounterValues)
        sums[{row.integer(0).value_or(-1), row.integer(1).value_or(-1)}] += row.real(2).value_or(0);
    });
    for (const auto& [key, sum] : sums) {
      const auto row = rows_.find(key.first);
      const auto name = names.find(key.second);
      if (row != rows_.end() && name != names.end())
        run_.add_counter(row->second, name->second, sum);
    }
  }

  const SqliteFile& file_;
  std::string suffix_;
  std::uint64_t number_;
  RocmRun& run_;
  const ImportOptions& options_;
  ById<std::uint32_t> processes_, threads_, rows_;  // rows_: by event
  ById<std::string> strings_;
  ById<Symbol> symbols_;
  ById<Track> tracks_;
  std::optional<SqliteFile::Rows> timestamps_, events_;
};

}  // namespace

bool looks_like_rocpd(const std::vector<std::string>& tables) {
  return std::any_of(tables.begin(), tables.end(), [](const std::string& table) {
    return starts_with(table, kDispatchTable) || starts_with(table, "rocpd_info_agent");
  });
}

Result<Profile> import_rocpd(const SqliteFile& file, const std::string& name,
                             const ImportOptions& options) {
  constexpr std::size_t kMostRuns = 1000;
  RocmRun run(options);
  std::vector<std::unique_ptr<RocpdRun>> runs;
  for (const std::string& table : file.tables())
    if (starts_with(table, kDispatchTable) && runs.size() < kMostRuns)
      runs.push_back(std::make_unique<RocpdRun>(file, table.substr(kDispatchTable.size()),
                                                runs.size(), run, options));
  for (const auto& one : runs) one->facts();
  for (const auto& one : runs) one->calls();
  run.link_calls();
  for (const auto& one : runs) one->work();
  return run.finish(name);
}

Result<Profile> import_rocpd(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(const SqliteFile file, SqliteFile::open(path));
  return import_rocpd(file, path, options);
}

}  // namespace purlin::profile
