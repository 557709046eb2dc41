// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/batch_spool.h"

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::string_view kBatchSuffix = ".pbatch", kStateName = "state.json", kDead = "dead";
constexpr std::string_view kStateSchema = "purlin.collect-state/1";
constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20, kDigits = 16, kHashDigits = 64;

std::string file_name(std::uint64_t number, const std::string& hash) {
  return fmt::format("{:016x}-{}{}", number, hash, kBatchSuffix);
}

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The batch that a file is by its name.
std::optional<WaitingBatch> batch_of(const std::string& folder, const std::string& name) {
  if (name.size() != kDigits + 1 + kHashDigits + kBatchSuffix.size() ||
      !ends_with(name, kBatchSuffix) || name[kDigits] != '-')
    return std::nullopt;
  const std::string number = name.substr(0, kDigits), hash = name.substr(kDigits + 1, kHashDigits);
  if (!is_hexadecimal(number) || !is_hexadecimal(hash)) return std::nullopt;
  const std::string path = join_path(folder, name);
  const Result<std::uint64_t> bytes = file_size(path);
  if (!bytes.is_ok()) return std::nullopt;
  return WaitingBatch{std::stoull(number, nullptr, 16), hash, path, *bytes};
}

Json shed_json(const std::vector<store::BatchShed>& shed) {
  Json list = Json::array();
  for (const store::BatchShed& one : shed)
    list.push(Json::object({{"cause", one.cause},
                            {"batches", one.batches},
                            {"rows", one.rows},
                            {"raw_bytes", one.raw_bytes}}));
  return list;
}

std::uint64_t natural(const Json& json) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, json.as_int()));
}

}  // namespace

std::string BatchSpool::state_path() const { return join_path(options_.directory, kStateName); }

Result<std::unique_ptr<BatchSpool>> BatchSpool::open(BatchSpoolOptions options,
                                                     const std::string& machine_boot) {
  std::unique_ptr<BatchSpool> spool(new BatchSpool(std::move(options), machine_boot));
  PURLIN_TRY(make_directories_durably(join_path(spool->options_.directory, kDead)));
  PURLIN_TRY(spool->load_state());
  PURLIN_TRY(spool->load_batches());
  return spool;
}

Status BatchSpool::load_state() {
  if (!file_exists(state_path())) return Status::ok();
  PURLIN_ASSIGN(const std::string text, read_file(state_path(), kMaxStateBytes));
  const Result<Json> state = Json::parse(text);
  if (!state.is_ok() || (*state)["schema"].as_string() != kStateSchema) {
    was_lost_ = true;
    next_ = 0;  // that of the batches that are there decides
    return Status::ok();
  }
  next_ = std::max<std::uint64_t>(1, natural((*state)["next"]));
  for (const Json::Member& file : (*state)["files"].members())
    marks_[file.key] = {natural(file.value)};
  if ((*state)["machine_boot"].as_string() != machine_boot_) return Status::ok();
  boot_ = (*state)["boot"].as_string();
  sequence_ = std::max<std::uint64_t>(1, natural((*state)["sequence"]));
  for (const Json& one : (*state)["shed"].items())
    shed_.push_back({one["cause"].as_string(), natural(one["batches"]), natural(one["rows"]),
                     natural(one["raw_bytes"])});
  return Status::ok();
}

// Without a state, all batches were committed but perhaps the last ones: they are sent, because
// what they hold is not read again.
Status BatchSpool::load_batches() {
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(options_.directory));
  for (const std::string& name : names) {
    const std::optional<WaitingBatch> batch = batch_of(options_.directory, name);
    if (!batch) {
      if (name.find(".tmp.") != name.npos) (void)remove_file(join_path(options_.directory, name));
      continue;
    }
    if (!was_lost_ && batch->number >= next_) {
      PURLIN_TRY(remove_file(batch->path));
      continue;
    }
    waiting_bytes_ += batch->bytes;
    waiting_.push_back(*batch);
  }
  if (was_lost_) {
    next_ = waiting_.empty() ? 1 : waiting_.back().number + 1;
    // Which sequence numbers were given is not known.
    boot_ = fmt::format("{}+{:x}", machine_boot_, system_clock().wall_ns());
    count_shed("state_lost", 0, 0, 0);
  }
  return Status::ok();
}

Status BatchSpool::write_state(const ReadMarks& marks, std::uint64_t next, std::uint64_t sequence,
                               const std::vector<store::BatchShed>& shed) const {
  Json files = Json::object();
  for (const auto& [file, mark] : marks) files.set(file, mark.offset);
  Json state = Json::object({{"schema", kStateSchema}, {"machine_boot", machine_boot_}});
  state.set("boot", boot_);
  state.set("next", next);
  state.set("sequence", sequence);
  state.set("shed", shed_json(shed));
  state.set("files", std::move(files));
  return write_atomic(state_path(), state.dump() + "\n");
}

Result<WaitingBatch> BatchSpool::write(store::Batch& batch, std::uint64_t number) const {
  PURLIN_ASSIGN(const std::string bytes, store::encode(batch));
  WaitingBatch waiting{number, sha256_hex(bytes), "", bytes.size()};
  waiting.path = join_path(options_.directory, file_name(number, waiting.hash));
  PURLIN_TRY(write_atomic(waiting.path, bytes));
  return waiting;
}

Status BatchSpool::commit(std::vector<store::Batch> batches, ReadMarks marks) {
  if (batches.empty() && marks == marks_) return Status::ok();
  std::vector<store::BatchShed> shed = totals().shed;
  std::vector<WaitingBatch> written;
  Status status;
  for (store::Batch& batch : batches) {
    batch.boot = boot_;
    batch.sequence = sequence_ + written.size();
    batch.shed = shed;
    Result<WaitingBatch> one = write(batch, next_ + written.size());
    status = one.status();
    if (!status.is_ok()) break;
    written.push_back(std::move(one).value());
  }
  if (status.is_ok())
    status = write_state(marks, next_ + written.size(), sequence_ + written.size(), shed);
  if (!status.is_ok()) {
    for (const WaitingBatch& one : written) (void)remove_file(one.path);
    return status;
  }
  next_ += written.size();
  sequence_ += written.size();
  marks_ = std::move(marks);
  std::uint64_t bytes = 0;
  for (const WaitingBatch& one : written) bytes += one.bytes;
  const std::lock_guard lock(mutex_);
  waiting_bytes_ += bytes;
  committed_ += written.size();
  waiting_.insert(waiting_.end(), written.begin(), written.end());
  return make_room(0);
}

// Under the mutex. The next commit writes the totals.
Status BatchSpool::make_room(std::uint64_t bytes) {
  while (!waiting_.empty() && waiting_bytes_ + bytes > options_.max_bytes) {
    // That which is being sent may have arrived: as it goes anyway, the next one is shed.
    const auto victim =
        std::find_if(waiting_.begin(), waiting_.end(),
                     [&](const WaitingBatch& batch) { return batch.number != in_transit_; });
    if (victim == waiting_.end()) break;
    const Result<std::string> text = read_file(victim->path);
    const Result<store::Batch> batch =
        text.is_ok() ? store::decode(*text) : Result<store::Batch>(text.status());
    PURLIN_TRY(remove_file(victim->path));
    count_shed("spool_full", 1, batch.is_ok() ? batch->rows.size() : 0, 0);
    waiting_bytes_ -= victim->bytes;
    waiting_.erase(victim);
  }
  return Status::ok();
}

void BatchSpool::count_shed(const std::string& cause, std::uint64_t batches, std::uint64_t rows,
                            std::uint64_t bytes) {
  auto found = std::find_if(shed_.begin(), shed_.end(),
                            [&](const store::BatchShed& one) { return one.cause == cause; });
  if (found == shed_.end()) found = shed_.insert(shed_.end(), {cause, 0, 0, 0});
  found->batches += batches;
  found->rows += rows;
  found->raw_bytes += bytes;
}

std::optional<WaitingBatch> BatchSpool::next_to_send() {
  const std::lock_guard lock(mutex_);
  in_transit_ = waiting_.empty() ? 0 : waiting_.front().number;
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.front());
}

// Only what its name says: bytes that a disk has damaged would be refused for good.
Result<std::string> BatchSpool::read(const WaitingBatch& batch) const {
  PURLIN_ASSIGN(std::string bytes, read_file(batch.path));
  if (sha256_hex(bytes) == batch.hash) return bytes;
  return error(Code::kCorrupt, "'{}' does not have the hash that is its name", batch.path);
}

Status BatchSpool::sent(const WaitingBatch& batch) {
  PURLIN_TRY(remove_file(batch.path));
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const WaitingBatch& one) {
    return one.number == batch.number;
  });
  if (found == waiting_.end()) return Status::ok();
  waiting_bytes_ -= found->bytes;
  waiting_.erase(found);
  ++sent_;
  return Status::ok();
}

Status BatchSpool::bury(const WaitingBatch& batch) {
  const std::string folder = join_path(options_.directory, kDead);
  const std::string to = join_path(folder, base_name(batch.path));
  PURLIN_TRY(move_file(batch.path, to));
  std::vector<WaitingBatch> dead;
  std::uint64_t bytes = 0;
  for (const std::string& name : list_directory(folder).value_or({}))
    if (std::optional<WaitingBatch> one = batch_of(folder, name)) {
      bytes += one->bytes;
      dead.push_back(std::move(*one));
    }
  for (std::size_t i = 0; i + 1 < dead.size() && bytes > options_.max_dead_bytes; ++i) {
    bytes -= dead[i].bytes;
    (void)remove_file(dead[i].path);
  }
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const WaitingBatch& one) {
    return one.number == batch.number;
  });
  if (found == waiting_.end()) return Status::ok();
  waiting_bytes_ -= found->bytes;
  waiting_.erase(found);
  ++dead_;
  count_shed("refused", 1, 0, 0);
  return Status::ok();
}

void BatchSpool::add_shed(const std::string& cause, std::uint64_t raw_bytes) {
  const std::lock_guard lock(mutex_);
  count_shed(cause, 0, 0, raw_bytes);
}

BatchSpool::Totals BatchSpool::totals() const {
  const std::lock_guard lock(mutex_);
  return {waiting_.size(), waiting_bytes_, committed_, sent_, dead_, shed_};
}

}  // namespace purlin::fleet
