// SPDX-License-Identifier: Apache-2.0
#include "guard/matrix/matrix.h"

#include "base/csv.h"
#include "base/json/json_lines.h"
#include "base/text.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>

namespace purlin::guard {
namespace {

// The value of a round in which the process of the cell was unfit or failed.
constexpr double kNoValue = 0;
constexpr int kMaxAttempts = 3;  // at a launch on an unfit device

class MatrixRunner {
 public:
  explicit MatrixRunner(const MatrixRun& run) : run_(run), matrix_(run.matrix) {}

  Result<MatrixResult> go() {
    if (run_.watch != nullptr && run_.watch->neighbours())
      result_.measurement.neighbours = static_cast<int>(run_.watch->neighbours()->size());
    result_.measurement.locked_mhz = run_.locked_mhz;
    PURLIN_TRY(open_cells());
    if (!run_.journal.empty()) PURLIN_TRY(open_journal());
    PURLIN_TRY(rounds());
    PURLIN_TRY(recordings());
    attribute_items();
    return std::move(result_);
  }

 private:
  struct Open {
    std::size_t cell;  // index into result_.cells
    Contender contender;
    std::vector<Item> items;  // that passed the rehearsal
  };

  void progress(const std::string& doing, int done) const {
    if (run_.progress) run_.progress(doing, done, matrix_.rounds * static_cast<int>(open_.size()));
  }

  Status open_cells() {
    for (const Cell& cell : matrix_.cells_here()) {
      MatrixCell kept;
      kept.cell = cell;
      // A cell that is both runnable and recorded is run.
      progress("preparing " + matrix_.text(cell), 0);
      PURLIN_ASSIGN(const CellVariant variant, variant_of(matrix_, cell));
      Result<Contender> contender = run_.open(cell, variant);
      Status ready = contender.is_ok() ? contender->arm->prepare() : contender.status();
      std::vector<Item> items;
      if (ready.is_ok()) ready = rehearse(*contender->arm, &kept, &items);
      if (!ready.is_ok() && ready.code() != Code::kFailed)
        return ready.with_context(matrix_.text(cell));
      kept.problem = ready.is_ok() ? "" : ready.message();
      result_.cells.push_back(std::move(kept));
      if (ready.is_ok())
        open_.push_back({result_.cells.size() - 1, std::move(*contender), std::move(items)});
    }
    note_skipped();
    return Status::ok();
  }

  // What skips itself in one cell and runs in another has failed in the first. What skips itself in
  // every cell is no item.
  void note_skipped() {
    for (const Open& skipping : open_)
      for (const SkippedItem& one : skipping.contender.arm->skipped()) {
        const auto runs_it = [&](const Open& open) {
          return std::find(open.items.begin(), open.items.end(), one.item) != open.items.end();
        };
        if (std::any_of(open_.begin(), open_.end(), runs_it))
          result_.cells[skipping.cell].failures[one.item] = one.reason;
      }
  }

  // Compiles and, where there is a reference, verifies, unmeasured. An item that fails here has no
  // time in this cell: the speed of a wrong kernel means nothing.
  static Status rehearse(Arm& arm, MatrixCell* cell, std::vector<Item>* passed) {
    for (const std::vector<Item>& batch : batches(arm, arm.items())) {
      const Result<Readings> readings = arm.rehearse(batch);
      PURLIN_TRY(readings.status());
      for (const Item& item : batch) {
        const auto said =
            std::find_if(readings->begin(), readings->end(),
                         [&](const ItemReading& reading) { return reading.item == item; });
        if (said != readings->end() && said->status.is_ok())
          passed->push_back(item);
        else
          cell->failures[item] =
              said == readings->end() ? "its process did not report it" : said->status.message();
      }
    }
    return Status::ok();
  }

  // In processes of as many items as the arm takes.
  static std::vector<std::vector<Item>> batches(const Arm& arm, const std::vector<Item>& items) {
    const std::size_t most = std::max<std::size_t>(arm.most_per_launch(), 1);
    std::vector<std::vector<Item>> batches;
    for (const Item& item : items) {
      if (batches.empty() || batches.back().size() == most) batches.emplace_back();
      batches.back().push_back(item);
    }
    return batches;
  }

  Status open_journal() {
    PURLIN_ASSIGN(JsonLines file, JsonLines::open(run_.journal));
    Json fingerprints = Json::object();
    for (const Open& open : open_)
      fingerprints.set(matrix_.text(result_.cells[open.cell].cell),
                       open.contender.arm->fingerprint());
    const Json head = Json::object({{"schema", "purlin.matrix-rounds/1"},
                                    {"identity", run_.identity},
                                    {"cells", std::move(fingerprints)}});
    const std::vector<Json> lines = file.take_lines();
    if (lines.empty()) {
      PURLIN_TRY(file.append(head));
    } else if (!(lines.front() == head)) {
      return error(Code::kInvalid,
                   "'{}' is the journal of another matrix, or its cells have changed since; remove "
                   "it or name another --journal",
                   run_.journal);
    }
    // A round counts when its line is complete. A torn one is run again.
    for (std::size_t i = 1; i < lines.size() && round_ < matrix_.rounds; ++i, ++round_) {
      ++result_.measurement.replayed;
      for (const Open& open : open_) replay(lines[i], open.cell);
    }
    journal_.emplace(std::move(file));
    return Status::ok();
  }

  void replay(const Json& line, std::size_t cell) {
    MatrixCell& kept = result_.cells[cell];
    for (const Json& entry : line[matrix_.text(kept.cell)].items()) {
      ProcessReading reading;
      for (const Json& time : entry["times_ns"].items())
        reading.times_ns.push_back(time.as_double());
      for (const Json& clock : entry["clocks_mhz"].items())
        reading.clocks_mhz.push_back(clock.as_double());
      if (reading.times_ns.empty()) continue;
      reading.reading = reading_of(reading.times_ns, reading.clocks_mhz);
      add(kept,
          {entry["kernel"].as_string(), entry["shape"].as_string(), entry["variant"].as_string()},
          std::move(reading));
    }
  }

  void add(MatrixCell& cell, const Item& item, ProcessReading reading) const {
    std::vector<double>& times = cell.times_ns[item];
    times.resize(static_cast<std::size_t>(round_), kNoValue);
    times.push_back(reading.reading.time_ns);
    cell.readings[item].push_back(std::move(reading));
  }

  Status rounds() {
    std::vector<std::size_t> order(open_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (; round_ < matrix_.rounds; ++round_) {
      run_.random.shuffle(order);
      Json line = Json::object();
      int done = round_ * static_cast<int>(open_.size());
      for (const std::size_t i : order) {
        Open& open = open_[i];
        MatrixCell& cell = result_.cells[open.cell];
        progress(matrix_.text(cell.cell), done++);
        std::vector<Item> items = open.items;
        run_.random.shuffle(items);
        PURLIN_ASSIGN(Readings readings, launch(*open.contender.arm, items));
        Json entries = Json::array();
        for (ItemReading& reading : readings) {
          // A command reports all its benchmarks, also those that failed the rehearsal.
          if (cell.failures.count(reading.item) != 0) continue;
          if (!reading.process.unfit.empty()) result_.measurement.reject(reading.process.unfit);
          if (!reading.status.is_ok() || !reading.process.unfit.empty()) continue;
          entries.push(Json::object({{"kernel", reading.item.kernel},
                                     {"shape", reading.item.shape},
                                     {"variant", reading.item.variant},
                                     {"times_ns", Json::array_of(reading.process.times_ns)},
                                     {"clocks_mhz", Json::array_of(reading.process.clocks_mhz)}}));
          add(cell, reading.item, std::move(reading.process));
        }
        line.set(matrix_.text(cell.cell), std::move(entries));
      }
      if (journal_) PURLIN_TRY(journal_->append(line));
    }
    return Status::ok();
  }

  // As many processes as the items need. An arm's own failure is no reading.
  Result<Readings> launch(Arm& arm, const std::vector<Item>& items) {
    Readings all;
    for (const std::vector<Item>& batch : batches(arm, items)) {
      Result<Readings> some = launch_fit(arm, batch);
      if (!some.is_ok() && some.status().code() == Code::kFailed) continue;
      PURLIN_TRY(some.status());
      std::move(some->begin(), some->end(), std::back_inserter(all));
    }
    return all;
  }

  // One process. On an unfit device its readings are dropped, and another one runs.
  Result<Readings> launch_fit(Arm& arm, const std::vector<Item>& items) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      if (run_.watch != nullptr) run_.watch->begin();
      Result<Readings> readings = arm.launch(items);
      Conditions conditions;
      if (run_.watch != nullptr) conditions = run_.watch->end();
      ++result_.measurement.launches;
      result_.measurement.conditions.merge(conditions);
      if (!readings.is_ok() || conditions.unfit.empty()) return readings;
      result_.measurement.reject(conditions.unfit);
    }
    return Readings{};
  }

  Status recordings() {
    for (const MatrixRecording& recording : matrix_.recordings) {
      const bool here =
          std::any_of(result_.cells.begin(), result_.cells.end(), [&](const MatrixCell& cell) {
            return cell.cell == recording.cell && cell.problem.empty();
          });
      if (here) continue;
      MatrixCell cell;
      cell.cell = recording.cell;
      cell.elsewhere = true;
      cell.source = recording.path;
      PURLIN_ASSIGN(const std::vector<KernelSamples> samples, load_samples(recording.path));
      for (const KernelSamples& kernel : samples)
        for (const KernelSamples::Process& process : kernel.processes)
          cell.times_ns[item_named(kernel.kernel)].push_back(
              reading_of(process.times_ns, process.clocks_mhz).time_ns);
      result_.cells.push_back(std::move(cell));
    }
    return Status::ok();
  }

  // Recordings name an item by its text.
  Item item_named(const std::string& text) const {
    for (const Open& open : open_)
      for (const Item& item : open.contender.arm->items())
        if (item.text() == text) return item;
    return {text, "", ""};
  }

  void attribute_items() {
    std::vector<Item> items;
    for (const MatrixCell& cell : result_.cells)
      for (const auto& [item, times] : cell.times_ns)
        if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
    for (const Item& item : items) {
      std::vector<CellTimes> cells;
      std::vector<bool> whole(static_cast<std::size_t>(matrix_.rounds), true);
      for (MatrixCell& cell : result_.cells) {
        const auto times = cell.times_ns.find(item);
        if (times == cell.times_ns.end()) continue;
        if (!cell.elsewhere) times->second.resize(whole.size(), kNoValue);
        for (std::size_t i = 0; i < whole.size() && !cell.elsewhere; ++i)
          whole[i] = whole[i] && times->second[i] > 0;
        cells.push_back({cell.cell, times->second, cell.elsewhere});
      }
      // Only rounds that every cell run here finished are paired.
      for (CellTimes& cell : cells) {
        if (cell.elsewhere) continue;
        std::vector<double> kept;
        for (std::size_t i = 0; i < whole.size(); ++i)
          if (whole[i]) kept.push_back(cell.times_ns[i]);
        cell.times_ns = std::move(kept);
      }
      result_.items.push_back({item, attribute(matrix_.plain_factors(), cells, matrix_.floor)});
    }
    std::stable_sort(result_.items.begin(), result_.items.end(),
                     [](const MatrixResult::ItemResult& a, const MatrixResult::ItemResult& b) {
                       return a.attribution.ratio > b.attribution.ratio;
                     });
  }

  const MatrixRun& run_;
  const Matrix& matrix_;
  MatrixResult result_;
  std::vector<Open> open_;
  std::optional<JsonLines> journal_;
  int round_ = 0;
};

}  // namespace

Result<MatrixResult> run_matrix(const MatrixRun& run) { return MatrixRunner(run).go(); }

std::string samples_csv(const MatrixCell& cell) {
  std::string csv = "process,kernel,iteration,time_us,sm_clock_mhz\n";
  for (const auto& [item, readings] : cell.readings) {
    const std::string name = csv_cell(item.text());
    for (std::size_t process = 0; process < readings.size(); ++process)
      for (std::size_t i = 0; i < readings[process].times_ns.size(); ++i)
        csv += fmt::format(
            "{},{},{},{:.6f},{:.0f}\n", process + 1, name, i, readings[process].times_ns[i] / 1e3,
            i < readings[process].clocks_mhz.size() ? readings[process].clocks_mhz[i] : 0);
  }
  return csv;
}

}  // namespace purlin::guard
