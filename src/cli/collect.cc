// SPDX-License-Identifier: Apache-2.0
// `purlin collect`: the node's daemon, which reads captures and sends them to a server.
#include "base/byte_size.h"
#include "base/files.h"
#include "base/os/process.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "fleet/collector/counter_lock.h"
#include "fleet/collector/lookup_metrics.h"
#include "fleet/collector/node.h"
#include "fleet/http_server.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr std::int64_t kCollectLookNs = 50'000'000;  // for Ctrl-C
constexpr std::int64_t kBetweenWindowLooksNs = 1'000'000'000;

// Sends in its own thread: reading captures does not wait for a server.
class Sender {
 public:
  explicit Sender(fleet::Shipper& shipper) : shipper_(shipper), thread_([this] { run(); }) {}
  ~Sender() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      lock.unlock();
      const double pause_s = shipper_.step();
      lock.lock();
      stopped_.wait_for(lock, std::chrono::duration<double>(pause_s), [this] { return stop_; });
    }
  }
  fleet::Shipper& shipper_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the members above
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// A capture is a descriptor.
void raise_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

class Collect : public Command {
 public:
  std::string_view name() const override { return "collect"; }
  std::string_view summary() const override {
    return "Read the captures of this node and send them to a server";
  }
  VerbText text() const override {
    return {
        .description =
            "One process per node. In each period it reads what captures have sealed, folds "
            "it to sketches per kernel, shape, device and run, and sends it to a `purlin "
            "serve`. Programs are captured by `purlin profile` or with the variables of "
            "`purlin env`.",
        .more =
            "Batches wait in --state while the server is away, up to --spool-limit. A kill or "
            "a restart loses nothing and doubles nothing. GET /healthz and GET /metrics on "
            "--listen report the state. Run it as root to read the captures of all users.",
        .examples = {{"purlin collect --server https://fleet:8717 --token-file /etc/purlin/token"},
                     {"purlin collect --counters -- purlin profile --counters all -- ./app",
                      "With the hardware counters that dcgm-exporter uses else"},
                     {"purlin collect --once --server http://127.0.0.1:8717",
                      "Reads and sends what there is, and ends"}},
        .exit_codes = {{0, "Stopped"},
                       {2, "Error"},
                       {3, "--once: batches still wait, or were refused"}},
        .see = {"docs/guide/collect.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--server", server_, "URL of `purlin serve`", "URL");
    flags.option("--token-file", token_file_, "File with the token, scope ingest", "FILE");
    flags.list("--spool", spools_, "Folder of captures, or of folders of captures", "DIR");
    flags.list("--temporary", temporary_,
               "Folder of spools of `purlin profile` (default: TMPDIR or /tmp)", "DIR");
    flags.option("--state", state_, "Folder for batches and positions", "DIR");
    flags.option("--node", node_, "Name of this node (default: the host's)");
    flags.option("--period", period_, "Time between two batches", "TIME");
    flags.option("--spool-limit", limit_, "Maximum size of the batches that wait", "SIZE");
    flags.option("--raw-per-hour", raw_per_hour_,
                 {"Raw profiles that are sent in an hour; 0 = none",
                  "One of each run, when its capture has ended. They go after all batches, and are "
                  "the first to go when --spool-limit is reached."},
                 "SIZE");
    flags.option("--window-limit", window_limit_,
                 {"Longest window that a person may request; 0s = none",
                  "Processes of the node then record every launch for so long, beyond their "
                  "overhead budget (purlin capture window --server)."},
                 "TIME");
    flags.option("--listen", listen_, "Port of /healthz and /metrics; 0 = any, - = none", "PORT");
    flags.option("--stop-above", stop_above_, "Overhead at which a capture is stopped; 0% = never",
                 "PERCENT");
    flags.option("--kubelet-logs", kubelet_logs_, "Folder of the kubelet's log links", "DIR");
    flags.option("--kubelet-url", kubelet_url_, "The kubelet's list of pods", "URL");
    flags.option("--kubelet-token-file", kubelet_token_file_, "Token for the kubelet", "FILE");
    flags.option("--job-mapping", job_mapping_,
                 "Folder with a file per GPU that names its job, as dcgm-exporter's", "DIR");
    flags.list("--config-cache", config_caches_,
               {"Config cache whose hit rate is a metric; repeatable",
                "Programs count their launches with and without a tuned config next to it."},
               "DIR");
    flags.flag("--counters", counters_,
               {"Run the command after -- while the hardware counters are free",
                "dcgm-exporter is paused, and one such command runs at a time."});
    flags.command(command_, false);
    flags.flag("--keep", keep_, "Keep captures that have ended and were read");
    flags.flag("--once", once_, "Read and send what there is, then end");
    flags.flag("--json", json_, "Print the addresses as one JSON document");
  }
  Result<int> run(Context& context) override;

 private:
  Result<fleet::CollectorOptions> collector_options() const;
  Result<fleet::BatchSpoolOptions> spool_options() const;
  int once(fleet::Node& node, Context& context) const;
  void send_all(fleet::Node& node) const;
  Result<int> run_with_counters() const;
  void name_missing_folders(const fleet::CollectorOptions& options, Log& log) const;
  Result<std::unique_ptr<fleet::HttpServer>> listen(fleet::CollectStatus& status) const;
  void watch(fleet::Node& node, Log& log) const;

  std::string server_, token_file_, state_, node_, period_ = "10s", limit_ = "256MiB",
                                                   raw_per_hour_ = "16MiB";
  std::string listen_ = "8718", stop_above_ = "5%", window_limit_ = "60s";
  std::string kubelet_logs_ = "/var/log/containers", kubelet_url_, kubelet_token_file_,
              job_mapping_;
  std::vector<std::string> spools_, temporary_, config_caches_;
  std::vector<std::string> command_;
  bool keep_ = false, once_ = false, json_ = false, counters_ = false;
  double period_s_ = 10;
};

Result<fleet::CollectorOptions> Collect::collector_options() const {
  fleet::CollectorOptions options;
  options.node = node_.empty() ? host_name() : node_;
  const bool plain = std::all_of(options.node.begin(), options.node.end(),
                                 [](unsigned char c) { return c > ' ' && c != 0x7f; });
  if (options.node.size() > 200 || !plain)
    return error(Code::kInvalid,
                 "--node: a name has at most 200 bytes, without blanks and control characters");
  options.spools.folders = spools_;
  if (spools_.empty()) options.spools.folders = {"/var/spool/purlin"};
  options.spools.temporary = temporary_;
  if (temporary_.empty()) options.spools.temporary = {environment_variable("TMPDIR", "/tmp")};
  for (auto* folders : {&options.spools.folders, &options.spools.temporary})
    for (std::string& folder : *folders) folder = absolute_path(folder);
  options.remove_read = !keep_;
  const std::string share =
      ends_with(stop_above_, "%") ? stop_above_.substr(0, stop_above_.size() - 1) : stop_above_;
  const std::optional<double> percent = parse_double(share);
  if (!percent || *percent < 0 || *percent > 100)
    return error(Code::kInvalid, "--stop-above '{}' is not a share such as 5%", stop_above_);
  options.budget.limit = *percent / 100;
  return options;
}

Result<fleet::BatchSpoolOptions> Collect::spool_options() const {
  fleet::BatchSpoolOptions options;
  options.directory = state_.empty() ? join_path(user_state_directory(), "collect") : state_;
  const std::optional<std::uint64_t> limit = parse_bytes(limit_);
  if (!limit || *limit == 0)
    return error(Code::kInvalid, "--spool-limit '{}' is not a size such as 256MiB", limit_);
  options.max_bytes = *limit;
  return options;
}

// A capture that is read must not keep the program waiting, so a look that fails is tried again in
// the next period.
void Collect::watch(fleet::Node& node, Log& log) const {
  Clock& clock = system_clock();
  fleet::Collector& collector = node.collector();
  Random random(static_cast<std::uint64_t>(clock.wall_ns()) ^
                static_cast<std::uint64_t>(::getpid()));
  const double period_ns = period_s_ * 1e9;
  std::int64_t next = clock.monotonic_ns(), last = next - kBetweenWindowLooksNs;
  std::string said;
  while (!Interrupt::requested()) {
    // A person waits for a window.
    const bool is_due = node.windows().is_due(clock.wall_ns()) &&
                        clock.monotonic_ns() - last >= kBetweenWindowLooksNs;
    if (clock.monotonic_ns() < next && !is_due) {
      clock.sleep_ns(std::min(kCollectLookNs, next - clock.monotonic_ns()));
      continue;
    }
    (void)fleet::CounterLock::resume_abandoned();
    last = clock.monotonic_ns();
    const Status looked = collector.look();
    if (!looked.is_ok() && looked.message() != said)
      log.warn("batches cannot be stored, and are kept in memory: {}", looked.message());
    said = looked.message();
    // The nodes of a fleet must not send at one moment.
    next = clock.monotonic_ns() + static_cast<std::int64_t>(period_ns * random.uniform(0.9, 1.1));
  }
  (void)collector.look();  // what was sealed until now
}

// Batches, then raw profiles, then the batch with their pointers.
void Collect::send_all(fleet::Node& node) const {
  const auto send_batches = [&node] {
    while (node.spool().totals().waiting > 0 && node.shipper().step() == 0 &&
           !Interrupt::requested()) {
    }
  };
  send_batches();
  if (node.spool().totals().waiting > 0) return;
  for (std::uint64_t before = 0; !Interrupt::requested();) {
    before = node.raws().totals().waiting;
    if (before > 0) (void)node.shipper().step();
    if (node.raws().totals().waiting == before) break;
  }
  if (!node.raws().pointers().empty() && node.collector().look().is_ok()) send_batches();
}

int Collect::once(fleet::Node& node, Context& context) const {
  const Status looked = node.collector().look();
  if (!looked.is_ok()) {
    context.log.error("{}", looked.message());
    return kExitError;
  }
  if (!server_.empty()) send_all(node);
  const fleet::CollectFacts facts = node.facts();
  const std::uint64_t captures = facts.state.captures + facts.state.removed;
  const Json json = document_of("purlin.collect/1", {{"captures", captures},
                                                     {"rows", facts.state.rows},
                                                     {"batches", facts.spool.committed},
                                                     {"sent", facts.spool.sent},
                                                     {"waiting", facts.spool.waiting},
                                                     {"refused", facts.spool.dead},
                                                     {"raws", facts.raws.sent},
                                                     {"waiting_raws", facts.raws.waiting}});
  answer(context, json_, json,
         fmt::format("{} read, {}, {} sent, {} waiting{}\n", counted(captures, "capture"),
                     counted(facts.state.rows, "row"), facts.spool.sent, facts.spool.waiting,
                     facts.spool.dead > 0 ? fmt::format(", {} refused", facts.spool.dead) : ""));
  const bool all_sent = facts.spool.waiting == 0 && facts.spool.dead == 0;
  return all_sent || server_.empty() ? kExitOk : kExitInconclusive;
}

Result<std::unique_ptr<fleet::HttpServer>> Collect::listen(fleet::CollectStatus& status) const {
  if (listen_ == "-") return std::unique_ptr<fleet::HttpServer>();
  const std::optional<std::int64_t> port = parse_int(listen_);
  if (!port || *port < 0 || *port > 65535)
    return error(Code::kInvalid, "--listen '{}' is not a port", listen_);
  fleet::HttpServerOptions options;
  options.port = static_cast<std::uint16_t>(*port);
  options.network_threads = options.handler_threads = 1;
  options.max_connections = 64;
  options.max_buffered_bytes = std::size_t{4} << 20;
  return fleet::HttpServer::start(options, status);
}

// Its exit code is that of the command.
Result<int> Collect::run_with_counters() const {
  if (command_.empty()) return error(Code::kInvalid, "--counters needs a command after --");
  PURLIN_ASSIGN(const fleet::CounterLock lock, fleet::CounterLock::acquire());
  const Interrupt interrupt;  // the command has the terminal's signals; DCGM is resumed after it
  Process::Options options;
  options.argv = command_;
  options.in = Process::Stream::kInherit;
  options.new_group = false;
  PURLIN_ASSIGN(Process process, Process::start(options));
  return process.wait()->shell_code();
}

// They may be made later, so this is no error.
void Collect::name_missing_folders(const fleet::CollectorOptions& options, Log& log) const {
  const auto look = [&log](std::string_view flag, const std::string& folder) {
    if (!is_directory(folder)) log.warn("{} '{}': there is no such folder now", flag, folder);
  };
  for (const std::string& folder : options.spools.folders) look("--spool", folder);
  for (const std::string& folder : config_caches_) look("--config-cache", folder);
  if (!job_mapping_.empty()) look("--job-mapping", job_mapping_);
}

Result<int> Collect::run(Context& context) {
  if (counters_) return run_with_counters();
  const std::optional<double> period = parse_duration_s(period_);
  if (!period || *period < 0.1 || *period > 3600)
    return error(Code::kInvalid, "--period '{}': give a time from 100ms to 1h", period_);
  period_s_ = *period;
  if (server_.empty() && !once_)
    return error(Code::kInvalid, "--server names where batches go, such as https://fleet:8717");
  raise_descriptors();
  fleet::NodeOptions options;
  PURLIN_ASSIGN(options.collector, collector_options());
  name_missing_folders(options.collector, context.log);
  PURLIN_ASSIGN(options.spool, spool_options());
  const std::optional<std::uint64_t> raw = parse_bytes(raw_per_hour_);
  if (!raw)
    return error(Code::kInvalid, "--raw-per-hour '{}' is not a size such as 16MiB", raw_per_hour_);
  options.raw_bytes_per_hour = *raw;
  const std::optional<double> window = parse_duration_s(window_limit_);
  if (!window || *window > 3600)
    return error(Code::kInvalid, "--window-limit '{}': give a time up to 1h, or 0s", window_limit_);
  options.longest_window_ns = static_cast<std::int64_t>(*window * 1e9);
  options.places = {kubelet_logs_, kubelet_url_, kubelet_token_file_, job_mapping_};
  options.server = server_;
  options.token_file = token_file_;
  options.period_s = period_s_;
  const std::string state = options.spool.directory;
  PURLIN_ASSIGN(const std::unique_ptr<fleet::Node> node,
                fleet::Node::open(std::move(options), system_clock(), context.log));
  const Interrupt interrupt;
  if (once_) return once(*node, context);
  fleet::CollectStatus status([&node] { return node->facts(); }, system_clock());
  if (!config_caches_.empty())
    status.add_metrics([this] { return fleet::lookup_metrics(config_caches_); });
  PURLIN_ASSIGN(const std::unique_ptr<fleet::HttpServer> listener, listen(status));
  const std::string url = listener ? listener->url() : "";
  answer(context, json_,
         document_of("purlin.collect/1", {{"server", server_}, {"state", state}, {"url", url}}),
         fmt::format("collecting for {} ({})\n", server_, url.empty() ? state : url));
  std::fflush(context.out);
  {
    const Sender sender(node->shipper());
    watch(*node, context.log);
  }
  (void)node->shipper().step();  // one more attempt: the rest waits for the next start
  if (listener) listener->stop(0);
  return kExitOk;
}

}  // namespace

std::unique_ptr<Command> make_collect_command() { return std::make_unique<Collect>(); }

}  // namespace purlin::cli
