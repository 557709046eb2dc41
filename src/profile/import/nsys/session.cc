// SPDX-License-Identifier: Apache-2.0
#include "profile/import/nsys/session.h"

#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <limits>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxStrings = 1'000'000;  // cached; then the cache starts again
constexpr std::size_t kMaxName = 16'384;
constexpr std::size_t kMaxGpus = 1024, kMaxProcesses = 100'000, kMaxSessionMessages = 20;
constexpr std::int64_t kMaxTime = std::int64_t{1} << 61, kMaxEpoch = std::int64_t{1} << 62;

int small(std::optional<std::int64_t> value) {
  return value && *value > 0 && *value < (1 << 30) ? static_cast<int>(*value) : 0;
}

std::int64_t positive(std::optional<std::int64_t> value) {
  return std::max<std::int64_t>(0, value.value_or(0));
}

// Clocks come in Hz (nsys) or kHz (CUPTI's own records); no GPU runs below 100 MHz as kHz count.
double to_mhz(double clock) {
  if (clock >= 1e8) return clock / 1e6;
  return clock >= 1e5 ? clock / 1e3 : std::max(clock, 0.0);
}

// Bandwidth comes in B/s (nsys) or kB/s (CUPTI's own records).
double to_bytes_per_s(double bandwidth) {
  return bandwidth >= 1e10 ? bandwidth : std::max(bandwidth, 0.0) * 1e3;
}

std::int64_t pid_of(std::int64_t process_key) { return process_key & 0xFFFFFF; }

}  // namespace

Status NsysSession::read() {
  PURLIN_TRY(read_clock());
  PURLIN_TRY(read_gpus());
  PURLIN_TRY(read_cuda_devices());
  PURLIN_TRY(read_processes());
  PURLIN_TRY(read_host());
  return read_messages();
}

std::string_view NsysSession::name(const SqliteFile::Rows& rows, int column) {
  if (const std::string_view text = rows.text(column); !text.empty())
    return text.substr(0, kMaxName);
  const std::optional<std::int64_t> id = rows.integer(column);
  if (!id) return "";
  if (const auto at = strings_.find(*id); at != strings_.end()) return at->second;
  if (strings_.size() >= kMaxStrings) strings_.clear();
  if (!string_rows_) {
    const bool nsys = file_.has("StringIds", "value");
    const std::string_view table = nsys ? "StringIds" : "StringTable", key = nsys ? "id" : "_id_";
    Result<SqliteFile::Rows> found = file_.find(table, {"value"}, key);
    if (!found.is_ok()) return strings_[*id];
    if (!file_.is_key(table, key)) {  // each look-up would be a search: read them once
      Result<SqliteFile::Rows> all = file_.select(table, {key, "value"});
      while (all.is_ok() && strings_.size() < kMaxStrings && all->next().value_or(false))
        strings_[all->integer(0).value_or(-1)] = all->text(1).substr(0, kMaxName);
      if (const auto at = strings_.find(*id); at != strings_.end()) return at->second;
    }
    string_rows_.emplace(std::move(found).value());
  }
  std::string& value = strings_[*id];
  if (string_rows_->rewind(*id).is_ok() && string_rows_->next().value_or(false))
    value = string_rows_->text(0).substr(0, kMaxName);
  return value;
}

std::optional<Span> NsysSession::span(const SqliteFile::Rows& rows, int start, int end) {
  const std::optional<std::int64_t> first = rows.integer(start), last = rows.integer(end);
  const bool untimed = first == 0 && last == 0;  // the driver gave none
  if (!first || !last || untimed || *last < *first || *first < -kMaxTime || *last > kMaxTime) {
    ++damaged_;
    return std::nullopt;
  }
  return Span{*first + epoch_ns_, *last - *first};
}

std::uint32_t NsysSession::process(std::optional<std::int64_t> global_id) {
  if (!global_id) {
    if (!profile_.processes.empty()) return 0;
    global_id = 0;
  }
  const std::int64_t key = *global_id >> 24;
  const std::uint32_t index = assembly_.process(static_cast<std::uint64_t>(key), pid_of(key));
  if (index >= process_keys_.size()) process_keys_.resize(index + 1, key);
  return index;
}

// Without a table that says what a process sees as device 0: the GPU that says so itself, else the
// one of that number.
std::size_t NsysSession::gpu_without_map(std::int64_t ordinal) const {
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    if (gpus_[i].ordinal == ordinal) return i;
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    if (gpus_[i].id == ordinal) return i;
  return gpus_.size();
}

std::uint16_t NsysSession::device(std::uint32_t process, std::int64_t ordinal) {
  const auto [at, added] = devices_.try_emplace({process, ordinal}, std::uint16_t{0});
  if (!added) return at->second;
  const std::int64_t pid =
      process < profile_.processes.size() ? profile_.processes[process].pid : 0;
  std::size_t gpu = gpu_without_map(ordinal);
  if (const auto mapped = cuda_devices_.find({pid, ordinal}); mapped != cuda_devices_.end())
    gpu = static_cast<std::size_t>(
        std::find_if(gpus_.begin(), gpus_.end(),
                     [&](const Gpu& g) { return g.id == mapped->second; }) -
        gpus_.begin());
  std::vector<DeviceInfo>& devices = profile_.environment.devices;
  if (gpu == gpus_.size()) {  // the file says nothing of it
    if (devices.size() >= kMaxGpus) return 0;
    Gpu unknown;
    unknown.id = ordinal;
    unknown.info.id = fmt::format("cuda:{}", ordinal);
    unknown.info.backend = "cuda";
    unknown.info.kind = "gpu";
    unknown.info.vendor = "NVIDIA";
    gpus_.push_back(unknown);
  }
  if (gpus_[gpu].index < 0) {
    gpus_[gpu].index = static_cast<int>(devices.size());
    devices.push_back(gpus_[gpu].info);
  }
  return at->second = static_cast<std::uint16_t>(gpus_[gpu].index);
}

Status NsysSession::read_clock() {
  if (file_.has("TARGET_INFO_SESSION_START_TIME")) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}));
    PURLIN_ASSIGN(const bool found, rows.next());
    if (found && positive(rows.integer(0)) < kMaxEpoch) epoch_ns_ = positive(rows.integer(0));
    if (epoch_ns_ > 0) profile_.environment.recorded_at = format_rfc3339(epoch_ns_);
  }
  if (file_.has("ANALYSIS_DETAILS")) {
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select("ANALYSIS_DETAILS", {"duration", "startTime", "stopTime"}));
    PURLIN_ASSIGN(const bool found, rows.next());
    const std::int64_t duration = found ? positive(rows.integer(0)) : 0;
    if (duration < kMaxTime) profile_.wall_ns = duration;
    if (found && positive(rows.integer(2)) < kMaxTime) {
      begin_ = positive(rows.integer(1));
      end_ = positive(rows.integer(2));
    }
  }
  return Status::ok();
}

Status NsysSession::read_gpus() {
  for (const std::string_view table :
       {"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU", "CUPTI_ACTIVITY_KIND_DEVICE"}) {
    if (!file_.has(table)) continue;
    // The same fact under the names of two ages.
    const auto column = [&](std::string_view newer, std::string_view older) {
      return file_.has(table, newer) ? newer : older;
    };
    PURLIN_ASSIGN(SqliteFile::Rows rows,
                  file_.select(table, {column("deviceId", "id"),
                                       "cuDevice",
                                       "name",
                                       "uuid",
                                       column("smCount", "numMultiprocessors"),
                                       column("clockRate", "coreClockRate"),
                                       column("memoryBandwidth", "globalMemoryBandwidth"),
                                       column("totalMemory", "globalMemorySize"),
                                       "l2CacheSize",
                                       column("maxShmemPerBlockOptin", "maxShmemPerBlock"),
                                       column("maxShmemPerBlock", "maxSharedMemoryPerBlock"),
                                       column("maxShmemPerSm", "maxSharedMemoryPerMultiprocessor"),
                                       "maxRegistersPerBlock",
                                       column("maxRegistersPerSm", "maxRegistersPerMultiprocessor"),
                                       column("threadsPerWarp", "numThreadsPerWarp"),
                                       column("maxWarpsPerSm", "maxWarpsPerMultiprocessor"),
                                       "maxThreadsPerBlock",
                                       column("computeMajor", "computeCapabilityMajor"),
                                       column("computeMinor", "computeCapabilityMinor"),
                                       "maxBlockDimX",
                                       "maxBlockDimY",
                                       "maxBlockDimZ",
                                       "maxGridDimX",
                                       "maxGridDimY",
                                       "maxGridDimZ"}));
    while (gpus_.size() < kMaxGpus) {
      PURLIN_ASSIGN(const bool more, rows.next());
      if (!more) break;
      Gpu gpu;
      gpu.id = rows.integer(0).value_or(static_cast<std::int64_t>(gpus_.size()));
      gpu.ordinal = rows.integer(1);
      DeviceInfo& info = gpu.info;
      info.id = fmt::format("cuda:{}", gpu.ordinal.value_or(gpu.id));
      info.backend = "cuda";
      info.kind = "gpu";
      info.vendor = "NVIDIA";
      info.name = name(rows, 2);
      info.uuid = name(rows, 3);
      info.compute_units = small(rows.integer(4));
      info.clock_mhz = to_mhz(rows.real(5).value_or(0));
      info.memory_bytes_per_s = to_bytes_per_s(rows.real(6).value_or(0));
      info.memory_bytes = static_cast<std::uint64_t>(positive(rows.integer(7)));
      info.l2_bytes = static_cast<std::uint64_t>(positive(rows.integer(8)));
      info.shared_memory_per_block =
          std::max(positive(rows.integer(9)), positive(rows.integer(10)));
      info.shared_memory_per_unit = positive(rows.integer(11));
      info.registers_per_block = positive(rows.integer(12));
      info.registers_per_unit = positive(rows.integer(13));
      info.warp_size = small(rows.integer(14));
      info.max_threads_per_unit = (small(rows.integer(15)) & 0xFFFF) * (info.warp_size & 0xFFFF);
      info.max_threads_per_block = small(rows.integer(16));
      if (small(rows.integer(17)) > 0)
        info.arch = fmt::format("sm_{}{}", small(rows.integer(17)), small(rows.integer(18)));
      for (std::size_t i = 0; i < 3; ++i) {
        info.max_block[i] = positive(rows.integer(19 + static_cast<int>(i)));
        info.max_grid[i] = positive(rows.integer(22 + static_cast<int>(i)));
      }
      gpus_.push_back(std::move(gpu));
    }
    if (!gpus_.empty()) break;
  }
  if (gpus_.empty())
    assembly_.note("no_device_info",
                   "the file does not say which GPU it was; ceilings are not known");
  return Status::ok();
}

Status NsysSession::read_cuda_devices() {
  if (!file_.has("TARGET_INFO_CUDA_DEVICE")) return Status::ok();
  PURLIN_ASSIGN(SqliteFile::Rows rows,
                file_.select("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid", "uuid"}));
  while (cuda_devices_.size() < kMaxProcesses) {
    PURLIN_ASSIGN(const bool more, rows.next());
    if (!more) break;
    std::optional<std::int64_t> gpu = rows.integer(0);
    for (const Gpu& known : gpus_)
      if (!gpu && !known.info.uuid.empty() && known.info.uuid == rows.text(3)) gpu = known.id;
    if (gpu && rows.integer(1))
      cuda_devices_[{rows.integer(2).value_or(0), *rows.integer(1)}] = *gpu;
  }
  return Status::ok();
}

Status NsysSession::read_processes() {
  if (!file_.has("PROCESSES")) return Status::ok();
  PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select("PROCESSES", {"globalPid", "name"}));
  while (process_names_.size() < kMaxProcesses) {
    PURLIN_ASSIGN(const bool more, rows.next());
    if (!more) break;
    if (rows.integer(0)) process_names_[*rows.integer(0) >> 24] = name(rows, 1);
  }
  return Status::ok();
}

Status NsysSession::read_host() {
  if (!file_.has("TARGET_INFO_SYSTEM_ENV")) return Status::ok();
  PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select("TARGET_INFO_SYSTEM_ENV", {"name", "value"}));
  std::string os, os_version, driver;
  for (std::size_t i = 0; i < kMaxProcesses; ++i) {
    PURLIN_ASSIGN(const bool more, rows.next());
    if (!more) break;
    const std::string_view key = rows.text(0), value = rows.text(1).substr(0, 256);
    Environment& environment = profile_.environment;
    if (key == "OsName" || key == "OS") os = value;
    if (key == "OsVersion") os_version = value;
    if (key == "KernelVersion") environment.host_kernel = value;
    if (key == "CpuModelName" || key == "CpuName") environment.host_cpu = value;
    if (key == "CpuCores") environment.host_cpus = small(parse_int(value));
    if (key == "NvidiaDriverVersion" || key == "DriverVersion" || key == "GpuDriverVersion")
      driver = value;
  }
  profile_.environment.host_os =
      os_version.empty() || os == os_version ? os : std::string(trim(os + " " + os_version));
  for (Gpu& gpu : gpus_) gpu.info.driver = driver;
  return Status::ok();
}

// What the recorder said went wrong: its warnings and errors, each once.
Status NsysSession::read_messages() {
  if (!file_.has("DIAGNOSTIC_EVENT")) return Status::ok();
  constexpr std::int64_t kWarning = 2;  // ENUM_DIAGNOSTIC_SEVERITY_LEVEL: 1 information, 2, 3 error
  PURLIN_ASSIGN(SqliteFile::Rows rows, file_.select("DIAGNOSTIC_EVENT", {"severity", "text"}));
  std::vector<std::pair<std::string, double>> messages;
  while (true) {
    PURLIN_ASSIGN(const bool more, rows.next());
    if (!more) break;
    const std::string text(name(rows, 1).substr(0, 500));
    if (text.empty() || rows.integer(0).value_or(kWarning) < kWarning) continue;
    const auto same = std::find_if(messages.begin(), messages.end(),
                                   [&](const auto& message) { return message.first == text; });
    if (same != messages.end()) {
      ++same->second;
    } else if (messages.size() < kMaxSessionMessages) {
      messages.emplace_back(text, 1);
    }
  }
  for (const auto& [text, count] : messages)
    assembly_.note("recorder_message",
                   count > 1 ? fmt::format("{} ({})", text, counted(count, "time")) : text);
  return Status::ok();
}

void NsysSession::finish() {
  for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
    ProcessInfo& process = profile_.processes[i];
    process.layer = "cuda";
    process.complete = true;
    const auto found =
        i < process_keys_.size() ? process_names_.find(process_keys_[i]) : process_names_.end();
    if (found != process_names_.end()) process.command = found->second;
    if (profile_.command.empty()) profile_.command = process.command;
  }
  // The recording's bounds count where they are on the events' clock.
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  const auto include = [&](const auto& events) {
    for (const auto& event : events) {
      first = std::min(first, event.start_ns);
      last = std::max(last, event.start_ns + event.duration_ns);
    }
  };
  Timeline& timeline = profile_.timeline;
  include(timeline.activities);
  include(timeline.calls);
  include(timeline.ops);
  include(timeline.ranges);
  if (end_ > begin_ && begin_ + epoch_ns_ <= first && end_ + epoch_ns_ >= last) {
    timeline.begin_ns = begin_ + epoch_ns_;
    timeline.end_ns = end_ + epoch_ns_;
  }
}

}  // namespace purlin::profile
