// SPDX-License-Identifier: Apache-2.0
// `purlin serve`: serves shared caches over HTTP.
#include "base/byte_size.h"
#include "base/file_stamp.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/frame/events.h"
#include "cli/frame/interrupt.h"
#include "fleet/alerts/watcher.h"
#include "fleet/api/backlog_api.h"
#include "fleet/api/fleet_api.h"
#include "fleet/api/ingest_api.h"
#include "fleet/api/query_api.h"
#include "fleet/api/raw_kernel_api.h"
#include "fleet/api/window_api.h"
#include "fleet/backlog/fleet_tasks.h"
#include "fleet/cache_api.h"
#include "fleet/demo/made_backlog.h"
#include "fleet/demo/made_raws.h"
#include "fleet/demo/made_week.h"
#include "fleet/service.h"
#include "fleet/token_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace purlin::cli {
namespace {

constexpr std::int64_t kLookNs = 100'000'000;  // for Ctrl-C
constexpr int kLooksBetweenTokens = 20;
constexpr std::chrono::minutes kBetweenTending{10};
// Descriptors that are not connections: files, and others of the program.
constexpr rlim_t kNoConnections = 128;

struct Listen {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
};

// "8717", "0.0.0.0:8717", "[::1]:8717"
Result<Listen> parse_listen(const std::string& text) {
  Listen listen;
  const std::size_t colon = text.rfind(':');
  std::string address = colon == std::string::npos ? "" : text.substr(0, colon);
  const auto port = parse_int(colon == std::string::npos ? text : text.substr(colon + 1));
  if (starts_with(address, "[") && ends_with(address, "]"))
    address = address.substr(1, address.size() - 2);
  else if (address.find(':') != std::string::npos)
    address = "?";  // the colon before the port is ambiguous
  if (!port || *port < 0 || *port > 65535 || (colon == 0) || address == "?")
    return error(Code::kInvalid,
                 "--listen '{}' is not ADDRESS:PORT; give one like 127.0.0.1:8717, 0.0.0.0:8717 or "
                 "[::1]:8717 (port 0: any free port)",
                 text);
  if (!address.empty()) listen.address = address;
  listen.port = static_cast<std::uint16_t>(*port);
  return listen;
}

// A connection is a descriptor, and the usual limit of 1024 is low. Returns the possible number of
// connections, at most `wanted`.
std::size_t raise_descriptor_limit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return std::min<rlim_t>(wanted, std::max(limit.rlim_cur, 2 * kNoConnections) - kNoConnections);
}

// Whether a file was replaced or written since the last look.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_(std::move(path)) { (void)changed(); }
  bool changed() {
    const FileStamp now = path_.empty() ? FileStamp{} : file_stamp(path_);
    return now != FileStamp{} && std::exchange(seen_, now) != now;
  }

 private:
  const std::string path_;
  FileStamp seen_{};
};

void load_certificate(fleet::HttpServer& server, Log& log) {
  if (const Status loaded = server.load_certificate(); !loaded.is_ok())
    log.warn("the earlier certificate stays: {}", loaded.message());
  else
    log.info("the certificate was read again");
}

// Unusable tokens are logged, and the earlier tokens stay.
void look_at_tokens(fleet::TokenFile& file, const std::string& path, fleet::Service& service,
                    Log& log) {
  std::optional<Result<fleet::Tokens>> tokens = file.look();
  if (!tokens) return;
  if (!tokens->is_ok()) return log.warn("the earlier tokens stay: {}", tokens->status().message());
  service.replace_tokens(std::move(*tokens).value());
  log.info("'{}' was read again", path);
}

// Tends in a separate thread: tokens and signals are checked even while a disk hangs.
class Tender {
 public:
  // `gate` is nullptr where the server has no store.
  Tender(fleet::CacheApi& api, fleet::StoreGate* gate, fleet::RawShelf* raws,
         const fleet::Retention& retention, Log& log)
      : api_(api), gate_(gate), raws_(raws), retention_(retention), log_(log), thread_([this] {
          run();
        }) {}
  ~Tender() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    api_.stop_tending();
    stopped_.notify_all();
    thread_.join();
  }
  Tender(const Tender&) = delete;
  Tender& operator=(const Tender&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, kBetweenTending, [this] { return stop_; })) {
      lock.unlock();
      if (const Status tended = api_.tend(); !tended.is_ok()) log_.warn("{}", tended.message());
      if (gate_ != nullptr) tend_store();
      lock.lock();
    }
  }

  void tend_store() {
    const Status tended = fleet::tend_store(*gate_, *raws_, retention_, system_clock());
    if (!tended.is_ok()) log_.warn("the store: {}", tended.message());
  }

  fleet::CacheApi& api_;
  fleet::StoreGate* const gate_;
  fleet::RawShelf* const raws_;
  const fleet::Retention retention_;
  Log& log_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the members above
};

// What a server has of a fleet: its store, raw profiles and backlog. All or, without a gate, none.
struct FleetParts {
  std::unique_ptr<fleet::StoreGate> gate;
  std::optional<backlog::Leases> leases;
  std::unique_ptr<fleet::RawShelf> raws;
  std::unique_ptr<fleet::WindowRequests> windows;
};

Result<FleetParts> open_fleet(const std::string& data, const std::string& target,
                              const std::string& raws) {
  FleetParts parts;
  const std::string place = target.empty() ? join_path(data, "store") : target;
  PURLIN_TRY(store::init_store(place));
  PURLIN_ASSIGN(std::unique_ptr<store::Store> store, store::open_store(place));
  parts.gate = std::make_unique<fleet::StoreGate>(std::move(store));
  PURLIN_ASSIGN(backlog::Leases leases, backlog::Leases::open(join_path(data, "backlog.sqlite")));
  parts.leases.emplace(std::move(leases));
  parts.raws = std::make_unique<fleet::RawShelf>(raws.empty() ? data : raws);
  PURLIN_ASSIGN(parts.windows, fleet::WindowRequests::open(join_path(data, "windows.json")));
  return parts;
}

// A store that cannot be opened, as on a full disk, does not stop the shared caches. One that the
// user named must open.
Result<FleetParts> open_fleet_or_caches(const std::string& data, const std::string& target,
                                        const std::string& raws, Log& log) {
  Result<FleetParts> parts = open_fleet(data, target, raws);
  if (parts.is_ok() || !target.empty() || parts.status().code() != Code::kIo) return parts;
  log.warn("serving caches only, no fleet: {}; restart when this is mended",
           parts.status().message());
  return FleetParts{};
}

std::vector<fleet::Endpoint> all_endpoints(fleet::CacheApi& caches, FleetParts& parts) {
  if (parts.gate == nullptr) return fleet::cache_endpoints(caches);
  Clock& clock = system_clock();
  const auto raw_arrived = [&windows = *parts.windows, &clock](const std::string& sha256) {
    return windows.arrived(sha256, clock.wall_ns());
  };
  std::vector<fleet::Endpoint> all;
  for (std::vector<fleet::Endpoint> some :
       {fleet::ingest_endpoints(*parts.gate, clock, parts.windows.get()),
        fleet::query_endpoints(*parts.gate, clock), fleet::node_endpoints(*parts.gate),
        fleet::raw_endpoints(*parts.raws, *parts.gate, clock, raw_arrived),
        fleet::raw_kernel_endpoints(*parts.raws, *parts.gate, clock),
        fleet::window_endpoints(*parts.windows, *parts.raws, clock),
        fleet::guard_endpoints(*parts.gate, clock), fleet::backlog_endpoints(*parts.leases, clock),
        fleet::store_endpoints(*parts.gate, clock), fleet::cache_endpoints(caches)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::string backlog_text(const std::string& path) {
  Result<backlog::Leases> leases = backlog::Leases::open(path);
  return leases.is_ok() ? fleet::backlog_metrics(*leases, system_clock().wall_ns()) : "";
}

// The folder of a demo, removed at its end.
class DemoFolder {
 public:
  static Result<DemoFolder> make(bool wanted) {
    DemoFolder folder;
    if (wanted) {
      PURLIN_ASSIGN(folder.path_, make_temporary_directory("purlin-demo"));
    }
    return folder;
  }
  DemoFolder(DemoFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  DemoFolder& operator=(DemoFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~DemoFolder() {
    if (!path_.empty()) static_cast<void>(remove_tree(path_));
  }
  const std::string& path() const { return path_; }

 private:
  DemoFolder() = default;
  std::string path_;
};

Status fill_demo(const FleetParts& parts, const std::string& backlog_path) {
  const std::int64_t now_ns = system_clock().wall_ns();
  std::vector<store::Batch> week = fleet::made_week({now_ns});
  const std::vector<fleet::MadeRaw> raws = fleet::add_made_raws(week);
  std::vector<store::HashedBatch> batches;
  for (store::Batch& batch : week) {
    PURLIN_ASSIGN(const std::string bytes, store::encode(batch));
    batches.push_back({sha256_hex(bytes), std::move(batch)});
  }
  bool earlier = false;  // an earlier demo, which --data kept
  const Status filled = parts.gate->write([&](store::Store& store) -> Status {
    PURLIN_ASSIGN(const std::vector<store::NodeState> nodes, store.nodes());
    earlier = !nodes.empty();
    if (earlier) return Status::ok();
    for (const Result<store::Ingest>& stored : store.ingest_many(batches))
      PURLIN_TRY(stored.status());
    return store.compact();
  });
  if (!filled.is_ok() || earlier) return filled;
  for (const fleet::MadeRaw& raw : raws)
    PURLIN_TRY(parts.raws->use([&](blobs::BlobStore& blobs) {
      return store::put_raw(blobs, raw.sha256, raw.bytes).status();
    }));
  PURLIN_ASSIGN(backlog::Leases leases, backlog::Leases::open(backlog_path));
  return parts.gate->read(
      [&](store::Reader& reader) { return fleet::fill_made_backlog(reader, leases, now_ns); });
}

std::string demo_text(const std::string& url) {
  return fmt::format(
      "a week of a made-up fleet; try\n"
      "  {0}/                            the page of the fleet\n"
      "  {0}/v1/query/top                the kernels with the most GPU time\n"
      "  {0}/v1/query/slower             two regressions: a build, a driver\n"
      "  {0}/v1/query/stragglers         a GPU that is slower than its peers\n"
      "  {0}/v1/query/coverage           a node that is hardly seen\n"
      "  {0}/v1/nodes                    the nodes and their collectors\n"
      "  {0}/v1/backlog                  what is worth tuning, and what the pool did\n"
      "  {0}/metrics                     the same as counts, for Prometheus\n",
      url);
}

class Serve : public Command {
 public:
  std::string_view name() const override { return "serve"; }
  std::string_view summary() const override {
    return "Serve a fleet's profiles and shared config caches over HTTP";
  }
  VerbText text() const override {
    return {
        .description =
            "Collectors send their batches to it (`purlin collect`), and it answers questions "
            "about the fleet under /v1/query.\n\n"
            "Machines push to http://HOST:PORT/NAME and pull from it. The first push creates the "
            "cache NAME. SIGTERM and Ctrl-C let running requests end.\n\nThe server listens on "
            "this machine only, unless --listen names another address. It then needs --token-file.",
        .more =
            "Objects are written once and the index is replaced by compare-and-swap. All data is "
            "on disk before a push is acknowledged. Parallel pushes and a kill of the server lose "
            "nothing. `purlin cache pull` can also read DIR/caches/NAME directly, as a shared "
            "cache.\n\nClients set PURLIN_SERVER_TOKEN or PURLIN_SERVER_TOKEN_FILE. They set "
            "PURLIN_SERVER to the only server that may receive the token. Give --tls-cert and "
            "--tls-key where others can listen. GET /healthz and GET /metrics (Prometheus) report "
            "its state.",
        .examples = {{"purlin serve --listen 0.0.0.0:8717 --token-file /etc/purlin/tokens"},
                     {"purlin cache push http://build7:8717/team"}},
        .exit_codes = {{0, "Stopped"}, {2, "Error"}},
        .see = {"docs/guide/serve.md", "docs/formats/server.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("--listen", listen_, "Address and port, port 0 for a free one", "ADDRESS:PORT");
    flags.option("--data", data_, "Folder of the caches (default: the state folder of purlin)",
                 "DIR");
    flags.option(
        "--token-file", token_file_,
        {"Clients that may read or write",
         "Required for every address but this machine's own. A line is `SCOPE[,SCOPE] TOKEN NAME "
         "[CACHE...] [LIMIT...]`, without CACHE for all caches. SCOPE is ingest, read, write or "
         "admin. The file must not be readable by everyone. The server reads it again when it "
         "changes."},
        "FILE");
    flags.option("--store", store_,
                 {"Store of the fleet's profiles (default: the folder `store` of --data)",
                  "A folder for SQLite, or http://HOST:PORT/DATABASE of a ClickHouse."},
                 "TARGET");
    flags.option("--keep", keep_,
                 {"How long hours are kept", "Days and months stay. 0s keeps everything."}, "TIME");
    flags.option("--raws", raws_,
                 {"Object store of raw profiles (default: --data)",
                  "A folder, s3://BUCKET/PREFIX, or http://HOST:PORT/NAME of a Purlin server."},
                 "TARGET");
    flags.option("--keep-raws", keep_raws_,
                 {"How long raw profiles are kept",
                  "One of each hour, and those next to a change, stay for 180 days."},
                 "TIME");
    flags.option("--raws-limit", raws_limit_, "Size of all raw profiles; the oldest go first",
                 "SIZE");
    flags.flag("--hash-tokens", hash_tokens_,
               {"Replace the secrets in the token file by their hashes, and end",
                "The tokens stay valid. A copy of the file then opens nothing."});
    flags.option("--tls-cert", tls_certificate_,
                 {"Certificate chain for TLS, as PEM",
                  "With --tls-key. Both files are read again when the certificate changes."},
                 "FILE");
    flags.option("--tls-key", tls_key_, "Private key of the certificate, as PEM", "FILE");
    flags.option("--quota", quota_, "Maximum size of all caches together, such as 20GiB", "SIZE");
    flags.option("--grace", grace_, "Time for running requests when the server stops", "TIME");
    flags.option("--alerts", alerts_,
                 {"Webhooks for what became slower, and how often to look",
                  "A file of docs/formats/alerts.md. Without it, nothing is sent, and the server "
                  "looks every 15 minutes."},
                 "FILE");
    flags.flag("--demo", demo_,
               {"Serve a week of a made-up fleet, and remove it at the end",
                "It has about 40 kernels, two regressions, a straggler and a node that is hardly "
                "seen. --data keeps it."});
    flags.flag("--log-requests", log_requests_, "Print a line for each request on stderr");
    flags.flag("--json", json_,
               {"Print the address as one JSON document", "The schema is purlin.serve/1."});
    events_.declare(flags);
  }

  Result<int> run(Context& context) override {
    if (hash_tokens_) return hash_tokens(context);
    if (tls_certificate_.empty() != tls_key_.empty())
      return error(Code::kInvalid, "--tls-cert and --tls-key are given together");
    PURLIN_ASSIGN(const Listen listen, parse_listen(listen_));
    const std::optional<double> grace = parse_duration_s(grace_);
    if (!grace || *grace > 3600)
      return error(Code::kInvalid, "--grace '{}' is not a time of at most 1h, such as 10s", grace_);
    PURLIN_ASSIGN(const fleet::Retention kept, retention());
    fleet::CacheApiOptions caches;
    if (!quota_.empty()) {
      const std::optional<std::uint64_t> quota = parse_bytes(quota_);
      if (!quota || *quota == 0)
        return error(Code::kInvalid, "--quota '{}' is not a size such as 20GiB", quota_);
      caches.quota_bytes = *quota;
    }
    fleet::ServiceOptions options;
    options.log_requests = log_requests_;
    PURLIN_TRY(events_.begin(context, name(), json_));
    if (events_.on())
      options.on_request = [this](const Json& request) {
        events_.write("request", {{"request", request}});
      };
    fleet::TokenFile token_file(token_file_);
    if (!token_file_.empty()) {
      PURLIN_ASSIGN(options.tokens, fleet::Tokens::load(token_file_));
    }
    PURLIN_ASSIGN(const bool loopback, fleet::is_loopback(listen.address));
    const bool open = options.tokens.empty();
    if (!loopback && open)
      return error(Code::kInvalid,
                   "others can reach {}: give --token-file, so that not everyone may write what "
                   "your machines will run (docs/guide/cache.md)",
                   listen.address);
    fleet::AlertConfig alerts;
    if (!alerts_.empty()) {
      PURLIN_ASSIGN(alerts, fleet::load_alerts(alerts_));
    }
    PURLIN_ASSIGN(const DemoFolder demo_folder, DemoFolder::make(demo_ && data_.empty()));
    const std::string data = !demo_folder.path().empty() ? demo_folder.path()
                             : data_.empty() ? join_path(user_state_directory(), "server")
                                             : data_;
    caches.directory = join_path(data, "caches");
    PURLIN_TRY(make_directories_durably(data));
    const Result<FileLock> alone = FileLock::acquire(join_path(data, ".serve.lock"), 0);
    if (alone.status().code() == Code::kUnavailable)
      return error(Code::kUnavailable, "another server keeps '{}'; give this one its own --data",
                   data);
    if (!alone.is_ok()) return alone.status();
    PURLIN_ASSIGN(const std::unique_ptr<fleet::CacheApi> api,
                  fleet::CacheApi::open(std::move(caches), system_clock()));
    PURLIN_ASSIGN(const std::unique_ptr<fleet::AuditLog> audit,
                  fleet::AuditLog::open(join_path(data, "audit.log")));
    PURLIN_ASSIGN(FleetParts parts, open_fleet_or_caches(data, store_, raws_, context.log));
    if (demo_ && parts.gate == nullptr)
      return error(Code::kIo, "--demo needs a store; see the warning above");
    const std::string backlog_path = join_path(data, "backlog.sqlite");
    if (demo_) PURLIN_TRY(fill_demo(parts, backlog_path));
    fleet::Service service(std::move(options), all_endpoints(*api, parts), context.log,
                           audit.get());
    service.add_metrics([&api] { return fleet::cache_metrics(*api); });
    if (parts.gate != nullptr)
      service.add_metrics([&parts] { return fleet::store_metrics(*parts.gate); });
    service.add_metrics([&backlog_path] { return backlog_text(backlog_path); });
    std::atomic<const fleet::Watcher*> watching{nullptr};
    service.add_metrics([&watching] {
      const fleet::Watcher* const watcher = watching.load();
      return watcher == nullptr ? std::string() : watcher->metrics();
    });
    const Interrupt interrupt;
    fleet::HttpServerOptions http;
    http.address = listen.address;
    http.port = listen.port;
    http.tls_certificate = tls_certificate_;
    http.tls_key = tls_key_;
    http.max_connections = raise_descriptor_limit(http.max_connections);
    // Metrics query the server, so they are ready before it starts.
    std::atomic<fleet::HttpServer*> started{nullptr};
    service.watch([&started] {
      const fleet::HttpServer* server = started.load();
      return server == nullptr ? fleet::HttpServerCounts{} : server->counts();
    });
    PURLIN_ASSIGN(const std::unique_ptr<fleet::HttpServer> server,
                  fleet::HttpServer::start(http, service));
    started.store(server.get());
    const Json address = document_of("purlin.serve/1", {{"url", server->url()},
                                                        {"directory", data},
                                                        {"stored_bytes", api->stored_bytes()},
                                                        {"quota_bytes", api->options().quota_bytes},
                                                        {"tokens", !open}});
    events_.write("listening", {{"document", address}});
    if (!events_.on())
      answer(context, json_, address,
             fmt::format("serving {} from {} ({})\n", server->url(), data,
                         open ? "no tokens: every user of this machine may write" : "with tokens"));
    if (demo_ && !json_ && !events_.on()) context.print(demo_text(server->url()));
    std::fflush(context.out);
    if (alerts.url.empty()) alerts.url = server->url();
    std::optional<fleet::Courier> courier;
    if (!alerts_.empty()) {
      PURLIN_ASSIGN(courier, fleet::open_courier(join_path(data, "alerts.json"), system_clock(),
                                                 context.log));
    }
    std::optional<fleet::Watcher> watcher;
    if (parts.gate != nullptr) {
      watcher.emplace(*parts.gate,
                      fleet::WatcherOptions{std::move(alerts), backlog_path, 200,
                                            api->options().directory, kept.raws},
                      std::move(courier), system_clock(), context.log);
      watching.store(&*watcher);
    }
    const Tender tender(*api, parts.gate.get(), parts.raws.get(), kept, context.log);
    FileWatch certificate(tls_certificate_);
    for (int looks = 1; !Interrupt::requested(); ++looks) {
      system_clock().sleep_ns(kLookNs);
      if (looks % kLooksBetweenTokens != 0) continue;
      look_at_tokens(token_file, token_file_, service, context.log);
      if (certificate.changed()) load_certificate(*server, context.log);
      looks = 0;
    }
    api->stop_tending();  // a request may do so, too
    server->stop(*grace);
    watching.store(nullptr);
    events_.result(Json(), kExitOk);
    return kExitOk;
  }

 private:
  Result<fleet::Retention> retention() const {
    fleet::Retention kept;
    const std::optional<double> hours = parse_duration_s(keep_),
                                raws = parse_duration_s(keep_raws_);
    if (!hours)
      return error(Code::kInvalid, "--keep '{}' is not a time such as 90d; 0s keeps everything",
                   keep_);
    if (!raws)
      return error(Code::kInvalid, "--keep-raws '{}' is not a time such as 14d", keep_raws_);
    const std::optional<std::uint64_t> limit = parse_bytes(raws_limit_);
    if (!limit)
      return error(Code::kInvalid, "--raws-limit '{}' is not a size such as 100GiB", raws_limit_);
    kept.hours_ns = static_cast<std::int64_t>(*hours * 1e9);
    kept.raws.age_ns = static_cast<std::int64_t>(*raws * 1e9);
    kept.raws.bytes = *limit;
    return kept;
  }
  Result<int> hash_tokens(Context& context) {
    if (token_file_.empty()) return error(Code::kInvalid, "--hash-tokens needs --token-file");
    PURLIN_ASSIGN(const std::string text, read_file(token_file_, std::size_t{1} << 20));
    PURLIN_ASSIGN(const std::string hashed, fleet::Tokens::hashed(text, token_file_));
    PURLIN_TRY(replace_privately(hashed));
    context.print(fmt::format("'{}' holds hashes only\n", token_file_));
    return kExitOk;
  }
  // With the file's mode: a new file could be read by others.
  Status replace_privately(const std::string& text) {
    struct stat before {};
    if (::stat(token_file_.c_str(), &before) != 0)
      return error(Code::kIo, "cannot read the mode of '{}'", token_file_);
    const mode_t mask = ::umask(0077);
    Status written = write_atomic(token_file_, text);
    ::umask(mask);
    if (written.is_ok() && ::chmod(token_file_.c_str(), before.st_mode & 07777) != 0)
      return error(Code::kIo, "cannot set the mode of '{}'", token_file_);
    return written;
  }

  std::string listen_ = "127.0.0.1:8717", data_, tls_certificate_, tls_key_, token_file_, quota_,
              grace_ = "10s", store_, keep_ = "90d";
  std::string alerts_, raws_, keep_raws_ = "14d", raws_limit_ = "100GiB";
  bool log_requests_ = false, hash_tokens_ = false, json_ = false, demo_ = false;
  Events events_;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() { return std::make_unique<Serve>(); }

}  // namespace purlin::cli
