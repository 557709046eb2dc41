// SPDX-License-Identifier: Apache-2.0
// bench_fleet [AGENTS…] [--seconds S] [--period S] [--rows N] [--store TARGET] [--markdown]: what
// one `purlin serve` takes of a fleet's batches.
//
// AGENTS simulated collectors (10, 100, 1000), each with a connection that stays open and a token,
// send one batch per period (10 s): N rows (400: 8 GPUs with 50 kernels each) with sketches of a
// spread as measured. Batches are encoded before the clock starts. A latency counts from the moment
// when the batch was due, so one that waits for another is not left out. Meanwhile a client asks
// /v1/query/top without a pause longer than a second. Client and server share the machine. At the
// end, the totals of /v1/query/top are compared with those of what was sent: exit 1 where they
// differ, or where a batch was refused. The limit is 1,000 agents on two cores.
#include "base/files.h"
#include "base/json/json.h"
#include "base/os/process.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/time.h"
#include "store/batch.h"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace purlin;

namespace {

constexpr int kPacers = 16, kKernels = 50, kShapes = 3;
constexpr char kToken[] = "bench-token-0123456789";

struct Options {
  std::vector<int> agents;
  double seconds = 60, period_s = 10;
  int rows = 400;
  std::string store;
  bool markdown = false;
};

template <class T>
T must(Result<T> result, const char* what) {
  if (result.is_ok()) return std::move(result).value();
  fmt::print(stderr, "bench_fleet: {}: {}\n", what, result.status().message());
  std::exit(2);
}

double now_s() { return static_cast<double>(system_clock().monotonic_ns()) / 1e9; }

// HTTP/1.1 over one connection that stays open.
class Connection {
 public:
  explicit Connection(int port) : port_(port) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The status; 0 where the connection broke.
  int send(const std::string& request, std::string* body = nullptr) {
    if (fd_ < 0 && !open()) return 0;
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t now = ::send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return close(), 0;
      sent += static_cast<std::size_t>(now);
    }
    std::string answer;
    std::size_t end = std::string::npos, length = 0;
    char bytes[65536];
    while (end == std::string::npos || answer.size() < end + 4 + length) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
      if (got <= 0) return close(), 0;
      answer.append(bytes, static_cast<std::size_t>(got));
      if (end != std::string::npos || (end = answer.find("\r\n\r\n")) == std::string::npos)
        continue;
      const std::size_t at = answer.find("Content-Length: ");
      if (at < end) length = std::strtoul(answer.c_str() + at + 16, nullptr, 10);
    }
    if (body != nullptr) *body = answer.substr(end + 4);
    return std::atoi(answer.c_str() + 9);
  }

 private:
  bool open() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return true;
    close();
    return false;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  const int port_;
  int fd_ = -1;
};

std::string request(const std::string& method, const std::string& target, const std::string& body,
                    const std::string& headers = "") {
  return fmt::format(
             "{} {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{}Content-Length: "
             "{}\r\n\r\n",
             method, target, kToken, headers, body.size()) +
         body;
}

struct Sent {
  std::map<std::string, double> launches;  // by kernel
  std::uint64_t batches = 0, bytes = 0, rows = 0;
};

// 20 launches that spread by 3 %, as those of one kernel do; some for each kernel.
const Sketch& made_sketch(int kernel, int variant) {
  static std::map<std::pair<int, int>, Sketch> known;
  const auto [found, added] = known.try_emplace({kernel, variant});
  if (!added) return found->second;
  Random random(static_cast<std::uint64_t>(kernel * 7 + variant));
  for (int launch = 0; launch < 20; ++launch)
    found->second.add(20'000.0 * (1 + kernel) * std::exp(0.03 * random.normal()));
  return found->second;
}

// One period of a node with 8 GPUs. Kernel names are as long as those of a training run.
store::Batch made_batch(const Options& options, int agent, int period, std::int64_t begin_ns,
                        Random& random) {
  store::Batch batch;
  batch.node = fmt::format("gpu-node-{:05}", agent);
  batch.boot = "bench";
  batch.sequence = static_cast<std::uint64_t>(period) + 1;
  batch.begin_ns = begin_ns + static_cast<std::int64_t>(period * options.period_s * 1e9);
  batch.end_ns = batch.sent_ns = batch.begin_ns + static_cast<std::int64_t>(options.period_s * 1e9);
  batch.tool_version = "bench";
  for (int gpu = 0; gpu < 8; ++gpu)
    batch.devices.push_back({.uuid = fmt::format("GPU-{:05}-{}", agent, gpu),
                             .model = "NVIDIA H200",
                             .ordinal = gpu,
                             .driver = "580.65",
                             .runtime = "CUDA 13.0"});
  store::BatchRun run;
  run.build = agent % 2 == 0 ? "v1.3" : "v1.4";
  run.labels.scheduler = "slurm";
  run.labels.job = fmt::format("{}.0", 4711 + agent / 16);
  batch.runs.push_back(run);
  const std::int64_t hour_ns = batch.end_ns / 3'600'000'000'000 * 3'600'000'000'000;
  for (int i = 0; i < options.rows; ++i) {
    const int kernel = i % kKernels, gpu = (i / kKernels) % 8;
    store::BatchRow row;
    row.hour_ns = hour_ns;
    row.kernel =
        fmt::format("cutlass_sm90_gemm_bf16_{}x128x64_kernel_{}", 64 << (kernel % 3), kernel);
    row.role = "matmul";
    row.op = "aten::linear";
    row.shape = fmt::format("M=4096,N={},K=4096", 1024 << (kernel % kShapes));
    row.dtype = "bf16";
    row.device = static_cast<std::uint32_t>(gpu);
    row.duration = made_sketch(kernel, static_cast<int>(random.below(4)));
    row.recorded = 20;
    batch.rows.push_back(std::move(row));
  }
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu)
    batch.coverage.push_back({.hour_ns = hour_ns,
                              .device = gpu,
                              .busy_ns = 9e9,
                              .seen_ns = 9e9,
                              .launches_seen = 1000,
                              .overhead_ns = 5e7});
  return batch;
}

double cpu_s_of(pid_t pid) {
  const std::string text = must(read_file(fmt::format("/proc/{}/stat", pid)), "stat");
  const std::vector<std::string> words = split(text.substr(text.rfind(')') + 2), ' ');
  const double ticks =
      parse_double(words.at(11)).value_or(0) + parse_double(words.at(12)).value_or(0);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double peak_mib_of(pid_t pid) {
  const std::string text = must(read_file(fmt::format("/proc/{}/status", pid)), "status");
  return std::atof(text.c_str() + text.find("VmHWM:") + 6) / 1024;
}

double bytes_below(const std::string& folder) {
  double bytes = 0;
  for (const std::string& name : list_directory(folder).value_or({})) {
    const std::string path = join_path(folder, name);
    bytes +=
        is_directory(path) ? bytes_below(path) : static_cast<double>(file_size(path).value_or(0));
  }
  return bytes;
}

double percentile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

struct Outcome {
  int agents = 0;
  std::uint64_t batches = 0, refused = 0, duplicates = 0;
  double seconds = 0, bytes_sent = 0;
  double p50_ms = 0, p99_ms = 0, longest_ms = 0, query_p50_ms = 0, query_p95_ms = 0;
  double cpu = 0, peak_mib = 0, disk_bytes = 0, groups = 0;
  std::size_t queries = 0;
  bool equal = false;
};

class Server {
 public:
  Server(const std::string& root, const Options& options) {
    const std::string tokens = join_path(root, "tokens");
    (void)write_atomic(tokens, fmt::format("admin {} bench\n", kToken));
    ::chmod(tokens.c_str(), 0600);
    Process::Options start;
    start.argv = {environment_variable("PURLIN", join_path(executable_directory(), "purlin")),
                  "serve",
                  "--listen",
                  "127.0.0.1:0",
                  "--token-file",
                  tokens,
                  "--data",
                  join_path(root, "data"),
                  "--json"};
    if (!options.store.empty()) start.argv.insert(start.argv.end(), {"--store", options.store});
    start.out = Process::Stream::kPipe;
    process_.emplace(must(Process::start(start), "purlin serve"));
    std::string text;
    char bytes[4096];
    while (text.find("\"tokens\"") == std::string::npos) {
      const ssize_t got = ::read(process_->out_fd(), bytes, sizeof bytes);
      if (got <= 0) std::exit(2);
      text.append(bytes, static_cast<std::size_t>(got));
    }
    const std::size_t at = text.find("http://127.0.0.1:") + 17;
    port_ = std::atoi(text.c_str() + at);
  }
  ~Server() {
    process_->kill(SIGTERM);
    process_->wait(30);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  int port() const { return port_; }
  pid_t pid() const { return process_->pid(); }

 private:
  std::optional<Process> process_;
  int port_ = 0;
};

// The totals that the server knows, against those that were sent.
bool totals_are(const Sent& sent, int port) {
  Connection connection(port);
  std::string body;
  if (connection.send(request("GET", "/v1/query/top?limit=10000&begin=-2d", ""), &body) != 200)
    return false;
  const Result<Json> json = Json::parse(body);
  if (!json.is_ok()) return false;
  std::map<std::string, double> got;
  for (const Json& kernel : (*json)["kernels"].items())
    got[kernel["kernel"].as_string()] = kernel["launches"].as_double();
  return got == sent.launches;
}

Outcome run(const Options& options, int agents) {
  const std::string root = must(make_temporary_directory("bench-fleet"), "folder");
  const int periods = std::max(1, static_cast<int>(options.seconds / options.period_s));
  const std::int64_t begin_ns =
      system_clock().wall_ns() - static_cast<std::int64_t>(options.seconds * 1e9);
  Random random(1);
  Sent sent;
  std::vector<std::vector<std::string>> requests(static_cast<std::size_t>(agents));
  for (int agent = 0; agent < agents; ++agent)
    for (int period = 0; period < periods; ++period) {
      const store::Batch batch = made_batch(options, agent, period, begin_ns, random);
      for (const store::BatchRow& row : batch.rows)
        sent.launches[row.kernel] += row.duration.count();
      sent.rows += batch.rows.size();
      const std::string bytes = must(store::encode(batch), "encode");
      sent.bytes += bytes.size();
      ++sent.batches;
      requests[static_cast<std::size_t>(agent)].push_back(request(
          "POST", "/v1/batches", bytes, fmt::format("X-Purlin-Batch: {}\r\n", sha256_hex(bytes))));
    }
  const Server server(root, options);
  Outcome outcome;
  outcome.agents = agents;
  std::mutex mutex;
  std::vector<double> latencies, queries;
  std::atomic<bool> stop{false};
  std::thread asker([&] {
    Connection connection(server.port());
    while (!stop.load()) {
      const double began = now_s();
      std::string body;
      const int status =
          connection.send(request("GET", "/v1/query/top?limit=50&begin=-1d", ""), &body);
      const double took = now_s() - began;
      if (status == 200) queries.push_back(took * 1e3);
      std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, 0.5 - took)));
    }
  });
  const double cpu_before = cpu_s_of(server.pid()), began = now_s() + 0.5;
  std::vector<std::thread> pacers;
  for (int pacer = 0; pacer < std::min(kPacers, agents); ++pacer)
    pacers.emplace_back([&, pacer] {
      std::vector<double> mine;
      std::uint64_t refused = 0;
      std::map<int, Connection> connections;
      for (int period = 0; period < periods; ++period)
        for (int agent = pacer; agent < agents; agent += kPacers) {
          const double due =
              began + options.period_s * (period + static_cast<double>(agent) / agents);
          if (const double early = due - now_s(); early > 0)
            std::this_thread::sleep_for(std::chrono::duration<double>(early));
          Connection& connection = connections.try_emplace(agent, server.port()).first->second;
          const auto& text =
              requests[static_cast<std::size_t>(agent)][static_cast<std::size_t>(period)];
          int status = connection.send(text);
          for (int attempt = 0; attempt < 5 && status != 204; ++attempt) {
            if (attempt == 0) ++refused;
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            status = connection.send(text);
          }
          mine.push_back((now_s() - due) * 1e3);
        }
      const std::lock_guard lock(mutex);
      latencies.insert(latencies.end(), mine.begin(), mine.end());
      outcome.refused += refused;
    });
  for (std::thread& pacer : pacers) pacer.join();
  outcome.seconds = now_s() - began;
  outcome.cpu = (cpu_s_of(server.pid()) - cpu_before) / outcome.seconds;
  stop.store(true);
  asker.join();
  outcome.equal = totals_are(sent, server.port());
  outcome.peak_mib = peak_mib_of(server.pid());
  outcome.batches = sent.batches;
  outcome.bytes_sent = static_cast<double>(sent.bytes);
  outcome.groups = static_cast<double>(agents) * options.rows;
  outcome.p50_ms = percentile(latencies, 0.5);
  outcome.p99_ms = percentile(latencies, 0.99);
  outcome.longest_ms = percentile(latencies, 1);
  outcome.query_p50_ms = percentile(queries, 0.5);
  outcome.query_p95_ms = percentile(queries, 0.95);
  outcome.queries = queries.size();
  outcome.disk_bytes = bytes_below(join_path(root, "data/store"));
  (void)remove_tree(root);
  return outcome;
}

double load_of_machine() {
  double loads[1] = {};
  return ::getloadavg(loads, 1) == 1 ? loads[0] : 0;
}

void print(const Options& options, const std::vector<Outcome>& outcomes) {
  const char* row = options.markdown
                        ? "| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} % | {:.0f} | {:.1f} "
                          "| {:.1f} | {:.1f} | {:.0f} | {:.0f} | {} |\n"
                        : "{:>6} {:>8} {:>7} {:>8.1f} {:>8.1f} {:>8.1f} {:>5.0f} % {:>6.0f} "
                          "{:>9.1f} {:>9.1f} {:>8.1f} {:>8.0f} {:>7.0f} {}\n";
  if (options.markdown)
    fmt::print(
        "| agents | batches | refused | p50 ms | p99 ms | longest ms | CPU of a core | peak MiB | "
        "query p50 ms | p95 ms | KiB sent a batch | disk B a batch | disk B a group | totals |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
  else
    fmt::print(
        "agents  batches refused  p50 ms   p99 ms  longest    CPU    MiB  query p50 query p95 "
        "KiB/batch disk/batch disk/group\n");
  for (const Outcome& one : outcomes)
    fmt::print(fmt::runtime(row), one.agents, one.batches, one.refused, one.p50_ms, one.p99_ms,
               one.longest_ms, one.cpu * 100, one.peak_mib, one.query_p50_ms, one.query_p95_ms,
               one.bytes_sent / static_cast<double>(one.batches) / 1024,
               one.disk_bytes / static_cast<double>(one.batches), one.disk_bytes / one.groups,
               one.equal ? "equal" : "NOT EQUAL");
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto next = [&]() -> std::string { return i + 1 < count ? arguments[++i] : ""; };
    if (word == "--seconds")
      options.seconds = std::atof(next().c_str());
    else if (word == "--period")
      options.period_s = std::atof(next().c_str());
    else if (word == "--rows")
      options.rows = std::atoi(next().c_str());
    else if (word == "--store")
      options.store = next();
    else if (word == "--markdown")
      options.markdown = true;
    else if (const int agents = std::atoi(word.c_str()); agents > 0)
      options.agents.push_back(agents);
    else {
      fmt::print(stderr, "bench_fleet: '{}' is no option\n", word);
      std::exit(2);
    }
  }
  if (options.agents.empty()) options.agents = {10, 100, 1000};
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const Options options = parse(count, arguments);
  fmt::print(
      "{} rows a batch, a period of {:g} s for {:g} s; load of the machine {:.1f} at the start\n",
      options.rows, options.period_s, options.seconds, load_of_machine());
  std::vector<Outcome> outcomes;
  for (const int agents : options.agents) outcomes.push_back(run(options, agents));
  print(options, outcomes);
  fmt::print("load of the machine {:.1f} at the end\n", load_of_machine());
  const bool good = std::all_of(outcomes.begin(), outcomes.end(),
                                [](const Outcome& one) { return one.equal && one.refused == 0; });
  return good ? 0 : 1;
}
