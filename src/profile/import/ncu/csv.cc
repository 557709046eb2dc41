// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's CSV: `--page raw` has one row per launch and the units in the second row,
// `--page details` and `--metrics` have one row per metric of a launch.
#include "profile/import/ncu/csv.h"

#include "base/text.h"
#include "profile/import/assembly.h"
#include "profile/import/csv.h"
#include "profile/import/import.h"
#include "profile/import/ncu/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxMessages = 10;
constexpr int kMaxNcuDevices = 1024;
constexpr std::size_t kSniffedRecords = 2048;
constexpr std::string_view kDevicePrefix = "device__attribute_";

std::uint32_t to_u32(double value) {
  if (!(value > 0)) return 0;
  return static_cast<std::uint32_t>(
      std::min(std::round(value), static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
}

// "(256, 1, 1)", "256x1x1" -> three extents; what is absent is 1.
std::optional<Dim3> parse_dim3(std::string_view text) {
  Dim3 dims = {1, 1, 1};
  std::size_t found = 0;
  for (std::size_t i = 0; i < text.size() && found < 3;) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    std::uint64_t value = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(text[i] - '0'),
                                      std::numeric_limits<std::uint32_t>::max());
    dims[found++] = static_cast<std::uint32_t>(value);
  }
  return found > 0 ? std::optional(dims) : std::nullopt;
}

bool is_header(const CsvReader& reader) {
  bool kernel = false, id = false;
  for (const std::string_view field : reader.fields()) {
    kernel = kernel || field == "Kernel Name";
    id = id || field == "ID" || field == "Process ID" || field == "Metric Name";
  }
  return kernel && id;
}

// Where the columns with a meaning are; the rest are metrics.
struct NcuColumns {
  static constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();
  std::size_t id = kAbsent, process = kAbsent, process_name = kAbsent, kernel = kAbsent,
              context = kAbsent, stream = kAbsent, block = kAbsent, grid = kAbsent,
              device = kAbsent, cc = kAbsent, section = kAbsent, metric = kAbsent, unit = kAbsent,
              value = kAbsent, invocations = kAbsent;
  std::vector<std::string> names;      // metric names by column, "" for the columns above
  std::vector<double> factors;         // of the units row
  std::vector<std::uint32_t> metrics;  // numbers of the names, filled by the importer

  explicit NcuColumns(const CsvReader& reader) {
    const std::pair<std::string_view, std::size_t NcuColumns::*> known[] = {
        {"ID", &NcuColumns::id},
        {"Process ID", &NcuColumns::process},
        {"Process Name", &NcuColumns::process_name},
        {"Kernel Name", &NcuColumns::kernel},
        {"Context", &NcuColumns::context},
        {"Stream", &NcuColumns::stream},
        {"Block Size", &NcuColumns::block},
        {"Grid Size", &NcuColumns::grid},
        {"Device", &NcuColumns::device},
        {"CC", &NcuColumns::cc},
        {"Section Name", &NcuColumns::section},
        {"Metric Name", &NcuColumns::metric},
        {"Metric Unit", &NcuColumns::unit},
        {"Metric Value", &NcuColumns::value},
        {"Average", &NcuColumns::value},
        {"Invocations", &NcuColumns::invocations}};
    const std::span<const std::string_view> fields = reader.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      names.emplace_back(fields[i]);
      for (const auto& [name, member] : known)
        if (fields[i] == name && this->*member == kAbsent) {
          this->*member = i;
          names.back().clear();
        }
      if (fields[i] == "Host Name" || fields[i] == "Kernel Time") names.back().clear();
    }
    factors.assign(names.size(), 1);
  }
  bool one_metric_a_row() const { return metric != kAbsent && value != kAbsent; }
};

// One profiled launch, gathered before its row is known.
struct Launch {
  std::string key;  // what tells it from the next
  std::string name, process_name, device, cc;
  std::optional<Dim3> grid, block;
  std::int64_t pid = 0;
  double invocations = 1;
  std::vector<std::pair<std::uint32_t, double>> values;    // metric -> value in base units
  std::vector<std::pair<std::string, std::string>> texts;  // device attributes that are no numbers
};

class NcuImporter {
 public:
  NcuImporter(const std::string& path, const ImportOptions& options)
      : path_(path), options_(options), assembly_(profile_, options) {}

  Result<Profile> run(Input input, Input again) {
    PURLIN_TRY(sniff(std::move(again)));
    CsvReader reader(std::move(input));
    PURLIN_TRY(find_table(reader));
    const Status status = read_table(reader);
    if (!status.is_ok()) {
      if (profile_.kernels.empty() && pending_.key.empty()) return in_file(status, path_);
      partial(status.message());
    }
    commit();
    return finish();
  }

 private:
  // The locale is not in the file, so the numbers are asked before any is read.
  Status sniff(Input input) {
    CsvReader reader(std::move(input));
    PURLIN_TRY(find_table(reader));
    SeparatorVotes votes(reader.separator());
    std::vector<std::string> units(columns_->names.size());
    for (std::size_t i = 0; i < kSniffedRecords && reader.next().value_or(false); ++i) {
      if (columns_->one_metric_a_row()) {
        votes.add(at(reader, columns_->metric), at(reader, columns_->unit),
                  at(reader, columns_->value));
        continue;
      }
      const bool is_units = at(reader, columns_->kernel).empty();
      for (std::size_t column = 0; column < units.size(); ++column) {
        if (columns_->names[column].empty()) continue;
        if (is_units)
          units[column] = reader.field(column);
        else
          votes.add(columns_->names[column], units[column], reader.field(column));
      }
    }
    decimal_ = votes.decimal();
    messages_.clear();
    return Status::ok();
  }

  // Everything before the table is what ncu and the program printed.
  Status find_table(CsvReader& reader) {
    while (true) {
      Result<bool> line = reader.next_line();
      if (!line.is_ok()) return in_file(line.status(), path_);
      if (!*line) break;
      if (is_header(reader)) {
        new_table(reader);
        return Status::ok();
      }
      const std::string text = join({reader.fields().begin(), reader.fields().end()}, ",");
      if ((starts_with(text, "==WARNING==") || starts_with(text, "==ERROR==")) &&
          messages_.size() < kMaxMessages)
        messages_.push_back(text.substr(0, 500));
    }
    return error(Code::kInvalid, "{}: no table of Nsight Compute, no line with \"Kernel Name\"{}{}",
                 path_,
                 messages_.empty() ? "" : "; it says: ", messages_.empty() ? "" : messages_.back());
  }

  void new_table(const CsvReader& reader) {
    columns_.emplace(reader);
    for (const std::string& name : columns_->names) columns_->metrics.push_back(metric(name));
  }

  std::uint32_t metric(const std::string& name) {
    const auto next = static_cast<std::uint32_t>(metric_names_.size());
    const auto [at, added] = metrics_.try_emplace(name, next);
    if (added) metric_names_.push_back(name);
    return at->second;
  }

  Status read_table(CsvReader& reader) {
    for (std::uint64_t records = 0;; ++records) {
      PURLIN_ASSIGN(const bool more, reader.next());
      if (!more) return Status::ok();
      if (options_.progress && records % 64 == 0)
        options_.progress(reader.input().file_offset(), reader.input().file_size());
      if (starts_with(reader.field(0), "==")) continue;  // ncu's own messages
      if (is_header(reader)) {                           // another table in the same file
        commit();
        new_table(reader);
        continue;
      }
      if (!whole(reader)) {
        damaged(reader);
      } else if (columns_->one_metric_a_row()) {
        metric_row(reader);
      } else {
        launch_row(reader);
      }
    }
  }

  std::string_view at(const CsvReader& reader, std::size_t column) const {
    return column == NcuColumns::kAbsent ? "" : reader.field(column);
  }

  // The details page ends a metric's row one comma behind its value, without the columns of rules
  // (2025.3: 16 fields of 20).
  bool whole(const CsvReader& reader) const {
    const std::size_t fields = reader.fields().size(), columns = columns_->names.size();
    return fields == columns || (columns_->one_metric_a_row() && fields < columns &&
                                 fields > columns_->value + 1 && !reader.cut());
  }

  void damaged(const CsvReader& reader) {
    if (damaged_++ == 0)
      first_damage_ = fmt::format("line {}: {} fields where the header has {}", reader.line(),
                                  reader.fields().size(), columns_->names.size());
    if (reader.cut()) partial(fmt::format("line {}: the last record is cut short", reader.line()));
  }

  void partial(std::string text) {
    profile_.partial = true;
    assembly_.note("damaged", std::move(text));
  }

  void identify(Launch& launch, const CsvReader& reader) const {
    launch.name = at(reader, columns_->kernel);
    launch.process_name = at(reader, columns_->process_name);
    launch.pid = parse_int(at(reader, columns_->process)).value_or(0);
    launch.device = at(reader, columns_->device);
    launch.cc = at(reader, columns_->cc);
    launch.grid = parse_dim3(at(reader, columns_->grid));
    launch.block = parse_dim3(at(reader, columns_->block));
    const double count = parse_double(at(reader, columns_->invocations)).value_or(1);
    launch.invocations = count >= 1 ? count : 1;
  }

  void launch_row(const CsvReader& reader) {
    NcuColumns& columns = *columns_;
    if (at(reader, columns.kernel).empty() && at(reader, columns.id).empty()) {  // units
      for (std::size_t i = 0; i < columns.names.size(); ++i)
        columns.factors[i] = unit_factor(reader.field(i));
      return;
    }
    Launch launch;
    launch.key = "launch";
    identify(launch, reader);
    for (std::size_t i = 0; i < columns.names.size(); ++i)
      if (!columns.names[i].empty())
        add_value(launch, columns.metrics[i], reader.field(i), columns.factors[i]);
    pending_ = std::move(launch);
    commit();
  }

  void metric_row(const CsvReader& reader) {
    const NcuColumns& columns = *columns_;
    std::string key;
    for (const std::size_t column :
         {columns.id, columns.process, columns.kernel, columns.context, columns.stream,
          columns.block, columns.grid, columns.device, columns.invocations})
      (key += at(reader, column)) += '\n';
    if (key != pending_.key) {
      commit();
      pending_.key = std::move(key);
      identify(pending_, reader);
    }
    const std::string_view label = at(reader, columns.metric), unit = at(reader, columns.unit);
    if (label.empty()) return;  // a rule's text
    const std::string_view known = metric_of_label(label, unit);
    // Unknown labels stay unchanged; the section tells namesakes apart.
    std::string name(known.empty() ? label : known);
    if (find(pending_, name).has_value()) {
      if (!known.empty()) return;  // the same metric in another section
      name = fmt::format("{}: {}", at(reader, columns.section), label);
      if (find(pending_, name).has_value()) return;
    }
    add_value(pending_, metric(name), at(reader, columns.value), unit_factor(unit));
  }

  void add_value(Launch& launch, std::uint32_t metric, std::string_view text, double factor) {
    if (const std::optional<double> value = parse_ncu_number(text, decimal_)) {
      launch.values.emplace_back(metric, *value * factor);
    } else if (!text.empty() && starts_with(metric_names_[metric], kDevicePrefix)) {
      launch.texts.emplace_back(metric_names_[metric].substr(kDevicePrefix.size()), text);
    }
  }

  std::optional<double> find(const Launch& launch, const std::string& name) const {
    const auto metric = metrics_.find(name);
    if (metric == metrics_.end()) return std::nullopt;
    for (const auto& [number, value] : launch.values)
      if (number == metric->second) return value;
    return std::nullopt;
  }

  int device_of(const Launch& launch) {
    const auto [at, added] =
        devices_.try_emplace(launch.device, static_cast<int>(profile_.environment.devices.size()));
    if (!added) return at->second;
    if (at->second >= kMaxNcuDevices) return at->second = 0;
    DeviceInfo& info = profile_.environment.devices.emplace_back();
    // A number. Early versions print the model instead.
    const std::optional<std::int64_t> ordinal = parse_int(launch.device);
    info.id = fmt::format("cuda:{}", ordinal ? std::max<std::int64_t>(*ordinal, 0) : at->second);
    if (!ordinal) info.name = launch.device;
    info.backend = "cuda";
    info.kind = "gpu";
    info.vendor = "NVIDIA";
    if (!launch.cc.empty()) {
      info.arch = "sm_" + launch.cc;
      info.arch.erase(std::remove(info.arch.begin(), info.arch.end(), '.'), info.arch.end());
    }
    for (const auto& [name, text] : launch.texts)
      if (name == "display_name") info.name = text;
    const auto number = [&](std::string_view name) {
      return find(launch, std::string(kDevicePrefix) + std::string(name)).value_or(0);
    };
    const auto integer = [&](std::string_view name) {
      return static_cast<std::int64_t>(std::clamp(number(name), 0.0, 1e18));
    };
    info.compute_units = static_cast<int>(to_u32(number("multiprocessor_count")) & 0xFFFFFF);
    info.clock_mhz = number("clock_rate") / 1e3;  // given in kHz
    info.memory_clock_mhz = number("memory_clock_rate") / 1e3;
    info.memory_bus_bits = static_cast<int>(to_u32(number("global_memory_bus_width")) & 0xFFFFFF);
    info.memory_bytes = static_cast<std::uint64_t>(integer("total_memory"));
    info.l2_bytes = static_cast<std::uint64_t>(integer("l2_cache_size"));
    info.shared_memory_per_block = integer("max_shared_memory_per_block_optin");
    if (info.shared_memory_per_block == 0)
      info.shared_memory_per_block = integer("max_shared_memory_per_block");
    info.shared_memory_per_unit = integer("max_shared_memory_per_multiprocessor");
    info.registers_per_block = integer("max_registers_per_block");
    info.registers_per_unit = integer("max_registers_per_multiprocessor");
    info.warp_size = static_cast<int>(integer("warp_size") & 0xFFFF);
    info.max_threads_per_block = static_cast<int>(integer("max_threads_per_block") & 0xFFFFFF);
    info.max_threads_per_unit =
        static_cast<int>(integer("max_threads_per_multiprocessor") & 0xFFFFFF);
    const char axis[] = {'x', 'y', 'z'};
    for (std::size_t i = 0; i < 3; ++i) {
      info.max_block[i] = integer(std::string("max_block_dim_") + axis[i]);
      info.max_grid[i] = integer(std::string("max_grid_dim_") + axis[i]);
    }
    return at->second;
  }

  // The gathered launch into its row.
  void commit() {
    if (pending_.key.empty()) return;
    const Launch launch = std::exchange(pending_, {});
    if (launch.name.empty()) {
      ++unnamed_;
      return;
    }
    const auto dims = [&](std::string_view what, std::string_view total) -> Dim3 {
      const std::string prefix = fmt::format("launch__{}_dim_", what);
      const std::uint32_t x = to_u32(find(launch, prefix + "x").value_or(0));
      if (x == 0) return {std::max(1u, to_u32(find(launch, std::string(total)).value_or(1))), 1, 1};
      return {x, std::max(1u, to_u32(find(launch, prefix + "y").value_or(1))),
              std::max(1u, to_u32(find(launch, prefix + "z").value_or(1)))};
    };
    LaunchIdentity identity;
    identity.name = launch.name;
    identity.launch.grid = launch.grid ? *launch.grid : dims("grid", "launch__grid_size");
    identity.launch.block = launch.block ? *launch.block : dims("block", "launch__block_size");
    if (find(launch, "launch__cluster_dim_x").value_or(0) > 0)
      identity.launch.cluster = dims("cluster", "launch__cluster_size");
    identity.launch.dynamic_shared_bytes =
        to_u32(find(launch, "launch__shared_mem_per_block_dynamic").value_or(0));
    identity.static_shared_bytes =
        to_u32(find(launch, "launch__shared_mem_per_block_static").value_or(0));
    identity.registers = to_u32(find(launch, "launch__registers_per_thread").value_or(0));
    identity.device = device_of(launch);
    if (launch.pid != 0 || !launch.process_name.empty()) {
      const std::uint32_t process =
          assembly_.process(static_cast<std::uint64_t>(launch.pid), launch.pid);
      profile_.processes[process].command = launch.process_name;
      profile_.processes[process].layer = "cuda";
    }
    const std::uint32_t row = assembly_.kernel_row(identity);
    if (const std::optional<double> duration = duration_of(launch)) {
      assembly_.add_untimed(row, *duration, launch.invocations);
    } else {
      ++without_duration_;
    }
    std::size_t at = 0;
    for (const auto& [metric, value] : launch.values)
      if (!starts_with(metric_names_[metric], kDevicePrefix))
        assembly_.add_counter(row, metric_names_[metric], value, launch.invocations, at);
  }

  std::optional<double> duration_of(const Launch& launch) const {
    for (const char* name :
         {"gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max"})
      if (const std::optional<double> value = find(launch, name); value && *value >= 0)
        return value;
    const double cycles = find(launch, "sm__cycles_elapsed.max").value_or(0);
    const double clock = find(launch, "sm__cycles_elapsed.avg.per_second").value_or(0);
    if (cycles > 0 && clock > 0) return cycles / clock * 1e9;
    return std::nullopt;
  }

  Result<Profile> finish() {
    if (profile_.kernels.empty())
      return error(
          Code::kInvalid, "{}: the table has no kernels{}{}", path_,
          messages_.empty() ? "" : "; it says: ", messages_.empty() ? "" : messages_.back());
    profile_.source = "ncu";
    if (!profile_.processes.empty()) profile_.command = profile_.processes.front().command;
    assembly_.note(
        "replayed",
        "Nsight Compute replays and serialises kernels: each launch runs alone, at the clock of "
        "Nsight Compute. No timeline, no copies; counts are of the launches it profiled");
    if (decimal_ == ',')
      assembly_.note("decimal_comma",
                     "the numbers were printed in a locale with decimal commas: '1.024' is 1024");
    if (damaged_ > 0)
      assembly_.note("rows_damaged",
                     fmt::format("{} left out; {}", counted(damaged_, "row"), first_damage_),
                     static_cast<double>(damaged_));
    if (unnamed_ > 0)
      assembly_.note("rows_damaged",
                     fmt::format("{} without a name left out", counted(unnamed_, "launch")),
                     unnamed_);
    if (without_duration_ > 0)
      assembly_.note("durations_unknown",
                     "launches without gpu__time_duration.sum; collect it with --metrics "
                     "gpu__time_duration.sum or the section SpeedOfLight",
                     without_duration_);
    for (const std::string& message : messages_) assembly_.note("recorder_message", message);
    assembly_.finish();
    return std::move(profile_);
  }

  std::string path_;
  const ImportOptions& options_;
  Profile profile_;
  Assembly assembly_;
  std::optional<NcuColumns> columns_;
  Launch pending_;
  char decimal_ = '.';
  std::map<std::string, int> devices_;
  std::unordered_map<std::string, std::uint32_t> metrics_;
  std::vector<std::string> metric_names_;
  std::vector<std::string> messages_;
  std::size_t damaged_ = 0;
  double without_duration_ = 0, unnamed_ = 0;
  std::string first_damage_;
};

}  // namespace

bool looks_like_ncu_csv(const std::string& path) {
  constexpr std::uint64_t kLookThrough = 16 << 20;
  Result<Input> input = Input::open(path);
  if (!input.is_ok()) return false;
  CsvReader reader(std::move(input).value());
  while (reader.next_line().value_or(false) && reader.input().offset() < kLookThrough)
    if (is_header(reader)) return true;
  return false;
}

Result<Profile> import_ncu_csv(Input input, Input again, const std::string& name,
                               const ImportOptions& options) {
  return NcuImporter(name, options).run(std::move(input), std::move(again));
}

Result<Profile> import_ncu_csv(const std::string& path, const ImportOptions& options) {
  PURLIN_ASSIGN(Input input, Input::open(path));
  PURLIN_ASSIGN(Input again, Input::open(path));
  return import_ncu_csv(std::move(input), std::move(again), path, options);
}

}  // namespace purlin::profile
