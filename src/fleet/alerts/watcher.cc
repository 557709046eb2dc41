// SPDX-License-Identifier: Apache-2.0
#include "fleet/alerts/watcher.h"

#include "fleet/analysis/rank.h"
#include "fleet/api/cells.h"
#include "fleet/api/raw_api.h"
#include "fleet/backlog/fleet_tasks.h"
#include "fleet/metrics.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMostKernels = 500, kMostCells = 1'000'000;
// Those with less GPU time are no tasks, however slow they are.
constexpr std::size_t kFactsOfTask = 10;

Verdicts verdicts_of(const analysis::Slower& slower, const analysis::Stragglers& stragglers,
                     std::size_t thin) {
  Verdicts verdicts;
  verdicts.tested = slower.tested;
  verdicts.refused = slower.refused.has_value();
  for (const analysis::SlowerKernel& row : slower.kernels) {
    ++(row.alarm ? verdicts.alarms : verdicts.suspects);
    if (row.alarm) verdicts.lost_gpu_s += row.lost_gpu_s;
  }
  verdicts.stragglers = static_cast<int>(stragglers.devices_slow.size());
  for (const analysis::Straggler& row : stragglers.devices_slow)
    verdicts.lost_gpu_s += row.lost_gpu_s;
  verdicts.thin_nodes = static_cast<int>(thin);
  return verdicts;
}

// What most of the GPU time of the last day ran on.
struct NewestEnvironment {
  std::string runtime, driver;
};
Result<NewestEnvironment> newest_environment(store::Reader& reader, store::Filter filter,
                                             std::int64_t now_ns) {
  filter.begin_ns = std::max(filter.begin_ns, now_ns - analysis::kDayNs);
  PURLIN_ASSIGN(const std::vector<store::Cell> cells,
                reader.cells(filter, {store::Dimension::kRuntime, store::Dimension::kDriver}));
  NewestEnvironment newest;
  double most = 0;
  for (const store::Cell& cell : cells)
    if (cell.duration.total_ns() > most)
      most = cell.duration.total_ns(), newest = {cell.values[0], cell.values[1]};
  return newest;
}

// Kernel by kernel, so that a large fleet needs the memory of one.
// `left_out_share`: of the GPU time.
Result<analysis::Slower> slower_kernels(store::Reader& reader, store::Filter filter,
                                        const store::TopKernels& top, double* left_out_share) {
  using store::Dimension;
  static const std::vector<Dimension> kBy = {
      Dimension::kShape, Dimension::kDtype,  Dimension::kModel,   Dimension::kRole,
      Dimension::kBuild, Dimension::kDriver, Dimension::kRuntime, Dimension::kNode};
  analysis::SlowerSearch search({});
  double seen_share = 0;
  for (const store::KernelTotal& kernel : top.kernels) {
    filter[Dimension::kKernel] = kernel.kernel;
    PURLIN_ASSIGN(std::vector<store::Cell> from, reader.cells(filter, kBy, store::Step::kHour));
    if (from.size() > kMostCells) continue;
    seen_share += kernel.share;
    std::vector<analysis::Cell> cells;
    cells.reserve(from.size());
    for (store::Cell& one : from) {
      analysis::Cell& cell = cells.emplace_back();
      cell.kernel = kernel.kernel;
      cell.shape = one.values[0], cell.dtype = one.values[1], cell.gpu = one.values[2];
      cell.role = one.values[3], cell.build = one.values[4], cell.driver = one.values[5];
      cell.runtime = one.values[6], cell.node = one.values[7];
      cell.begin_ns = one.begin_ns, cell.time = std::move(one.duration);
    }
    std::map<std::string, std::vector<const analysis::Cell*>> models;
    for (const analysis::Cell& cell : cells) models[cell.gpu].push_back(&cell);
    for (const auto& [gpu, own] : models) search.add({kernel.kernel, gpu}, own);
  }
  *left_out_share = top.kernels.empty() ? 0 : std::max(1 - seen_share, 0.0);
  return search.finish();
}

// The GPUs of the last two days, on as many of the hottest kernels as a look
// can hold.
Result<std::vector<analysis::Cell>> hottest_cells(store::Reader& reader, store::Filter filter,
                                                  const store::TopKernels& top,
                                                  std::int64_t now_ns) {
  filter.begin_ns = std::max(filter.begin_ns, now_ns - 2 * analysis::kDayNs);
  std::vector<analysis::Cell> cells;
  for (const store::KernelTotal& kernel : top.kernels) {
    filter[store::Dimension::kKernel] = kernel.kernel;
    Result<std::vector<analysis::Cell>> own = read_cells(reader, filter, store::Step::kHour);
    if (!own.is_ok() && own.status().code() != Code::kInvalid) return own.status();
    if (!own.is_ok() || cells.size() + own->size() > kMostCells) continue;
    cells.insert(cells.end(), std::make_move_iterator(own->begin()),
                 std::make_move_iterator(own->end()));
  }
  return cells;
}

// Over all nodes and times: what tuning could save.
Result<std::vector<analysis::TuneTask>> tune_tasks(store::Reader& reader,
                                                   const store::Filter& filter,
                                                   const std::vector<MeasuredTime>& measured,
                                                   const std::string& driver, std::size_t limit) {
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells, read_totals(reader, filter));
  return analysis::tune_these(
      cells, known_facts(cells, measured, driver, kFactsOfTask * std::max<std::size_t>(limit, 1)),
      limit);
}

// Where the kernels of the alarms ran, a day before and after their changes.
Status add_changes(store::Reader& reader, const analysis::Slower& slower, Look& look) {
  for (const analysis::SlowerKernel& row : slower.kernels) {
    if (!row.alarm) continue;
    store::Filter filter;
    filter.begin_ns = row.at_ns - store::kDayNs;
    filter.end_ns = row.at_ns + store::kDayNs;
    filter[store::Dimension::kKernel] = row.key.kernel;
    filter[store::Dimension::kModel] = row.key.gpu;
    PURLIN_ASSIGN(const std::vector<store::Cell> cells,
                  reader.cells(filter, {store::Dimension::kNode}));
    Look::Change& change = look.changes.emplace_back();
    change.at_ns = row.at_ns;
    for (const store::Cell& cell : cells) change.nodes.insert(cell.values.at(0));
  }
  return Status::ok();
}

store::Filter period_of(const AlertConfig& config, std::int64_t now_ns) {
  store::Filter filter;
  filter.begin_ns = now_ns - static_cast<std::int64_t>(config.period_s * 1e9);
  filter.begin_ns -= filter.begin_ns % store::kHourNs;
  return filter;
}

}  // namespace

Result<std::vector<backlog::Leases::Put>> tasks_of_fleet(store::Reader& reader,
                                                         const AlertConfig& config,
                                                         std::size_t tasks,
                                                         const std::vector<MeasuredTime>& measured,
                                                         std::int64_t now_ns) {
  const store::Filter filter = period_of(config, now_ns);
  PURLIN_ASSIGN(const NewestEnvironment newest, newest_environment(reader, filter, now_ns));
  PURLIN_ASSIGN(const std::vector<analysis::TuneTask> tune,
                tune_tasks(reader, filter, measured, newest.driver, tasks));
  return fleet_tasks(tune, newest.runtime, newest.driver);
}

Result<Look> look_at(store::Reader& reader, const AlertConfig& config, std::size_t tasks,
                     const std::vector<MeasuredTime>& measured, std::int64_t now_ns) {
  const store::Filter filter = period_of(config, now_ns);
  Look look;
  PURLIN_ASSIGN(const std::vector<analysis::CoverageCell> coverage, read_coverage(reader, filter));
  PURLIN_ASSIGN(const store::TopKernels top, reader.top(filter, kMostKernels));
  analysis::Slower slower;
  if (!coverage.empty()) slower.refused = analysis::too_thin(analysis::summarise(coverage), {});
  if (!slower.refused) {
    PURLIN_ASSIGN(slower, slower_kernels(reader, filter, top, &look.left_out_share));
  }
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells,
                hottest_cells(reader, filter, top, now_ns));
  const analysis::Stragglers stragglers = analysis::find_stragglers(cells, {});
  const std::vector<analysis::ThinNode> thin = analysis::thin_nodes(coverage, {});
  look.verdicts = verdicts_of(slower, stragglers, thin.size());
  look.findings = findings_of(slower, stragglers, thin, config.url, now_ns);
  PURLIN_TRY(add_changes(reader, slower, look));
  PURLIN_ASSIGN(look.tasks, tasks_of_fleet(reader, config, tasks, measured, now_ns));
  return look;
}

Watcher::Watcher(StoreGate& gate, WatcherOptions options, std::optional<Courier> courier,
                 Clock& clock, Log& log)
    : gate_(gate),
      options_(std::move(options)),
      courier_(std::move(courier)),
      clock_(clock),
      log_(log),
      known_times_(options_.caches, clock),
      thread_([this] { run(); }) {}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watcher::run() {
  const auto pause = std::chrono::duration<double>(options_.config.every_s);
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    if (const Status status = round(); !status.is_ok())
      log_.warn("the look at the fleet: {}", status.message());
    lock.lock();
  } while (!wake_.wait_for(lock, pause, [this] { return stop_; }));
}

Status Watcher::round() {
  Look look;
  const std::int64_t now_ns = clock_.wall_ns();
  const std::vector<MeasuredTime> measured = known_times_.read(log_);
  PURLIN_TRY(gate_.read([&](store::Reader& reader) -> Status {
    PURLIN_ASSIGN(look, look_at(reader, options_.config, options_.tasks, measured, now_ns));
    return Status::ok();
  }));
  if (look.left_out_share > 0.05)
    log_.warn(
        "the look at the fleet leaves out {:.0f} % of its GPU time: too "
        "many cells",
        look.left_out_share * 100);
  for (const Look::Change& change : look.changes)
    PURLIN_TRY(store::keep_around_change(pointers_of(gate_), change.nodes, change.at_ns, now_ns,
                                         options_.raws));
  if (!options_.backlog_path.empty()) {
    PURLIN_ASSIGN(backlog::Leases leases, backlog::Leases::open(options_.backlog_path));
    PURLIN_TRY(leases.put(look.tasks, now_ns));
  }
  if (courier_) {
    PURLIN_TRY(courier_->deliver(options_.config.webhooks, look.findings));
    if (!options_.config.otlp_url.empty())
      if (const Status sent = courier_->send_metrics(
              options_.config.otlp_url, otlp_metrics(look.verdicts, look.findings, now_ns));
          !sent.is_ok())
        log_.warn("{}", sent.message());
  }
  const std::lock_guard lock(mutex_);
  verdicts_ = look.verdicts;
  if (courier_) sent_ = courier_->counts();
  ended_ns_ = now_ns;
  return Status::ok();
}

std::string Watcher::metrics() const {
  const std::lock_guard lock(mutex_);
  if (ended_ns_ == 0) return "";
  return verdict_metrics(verdicts_) +
         RequestMetrics::single("purlin_alerts_delivered_total", "counter",
                                "Findings that a webhook took.",
                                static_cast<double>(sent_.delivered)) +
         RequestMetrics::single("purlin_alerts_failed_total", "counter",
                                "Deliveries that failed; they are repeated.",
                                static_cast<double>(sent_.failed)) +
         RequestMetrics::single("purlin_analysis_timestamp_seconds", "gauge",
                                "Time of the last look at the fleet that succeeded.",
                                static_cast<double>(ended_ns_) * 1e-9);
}

}  // namespace purlin::fleet
