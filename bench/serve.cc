// SPDX-License-Identifier: Apache-2.0
// bench_serve [AGENTS] [SECONDS] [--markdown]: what one `purlin serve` carries, beside a folder on
// the same disk.
//
// Paced: AGENTS clients (1,000), each with a connection that stays open and a token, look every
// 10 s whether there is anything new (the shared cache's index), and one look in 100 pushes a
// record that it found; for SECONDS (20). A latency counts from the moment when the look was due,
// so that one that waits for another is not left out. At once: 8 clients without a pause, for 3 s,
// the middle of three: looks over connections that stay, looks of a new connection each (as
// processes that come and go), pushes of a record each to one cache and to eight; the same of
// clients that share a folder. Clients and server share this machine's processors. What was pushed
// is then pulled and counted: exit 1 where a record is missing. The budget is DESIGN.md's: 1,000
// agents of a 10 s period on two cores, 100 requests/s.
#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "blobs/curl_http.h"
#include "blobs/directory_blobs.h"
#include "blobs/server_blobs.h"
#include "cache/share/share.h"
#include "cache/testing.h"
#include "model/document.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace purlin;

namespace {

constexpr double kPeriodS = 10, kAtOnceS = 3, kBudgetPerS = 100;
constexpr int kPacers = 16, kAtOnce = 8, kRepeats = 3, kPushEvery = 100, kSeedSegments = 100;
constexpr char kToken[] = "bench-token-0123456789";

template <class T>
T must(Result<T> result, const char* what) {
  if (result.is_ok()) return std::move(result).value();
  fmt::print(stderr, "bench_serve: {}: {}\n", what, result.status().message());
  std::exit(2);
}
void must(const Status& status, const char* what) {
  if (status.is_ok()) return;
  fmt::print(stderr, "bench_serve: {}: {}\n", what, status.message());
  std::exit(2);
}

double seconds_now() { return static_cast<double>(system_clock().monotonic_ns()) / 1e9; }

// Each of another shape, so that no two are one.
cache::CacheRecord new_record() {
  static std::atomic<std::int64_t> next{1};
  return cache::make_record(cache::sample_entry(next.fetch_add(1)));
}

using Blobs = std::unique_ptr<blobs::BlobStore>;
using Open = std::function<Blobs(const std::string& cache)>;

// The program itself, in a process of its own, so that its processor time is its own.
class Server {
 public:
  explicit Server(const std::string& folder) {
    const std::string tokens = join_path(folder, "tokens");
    must(write_atomic(tokens, fmt::format("write {} bench\n", kToken)), "tokens");
    if (::chmod(tokens.c_str(), 0600) != 0) must(error(Code::kIo, "chmod"), "tokens");
    Process::Options options;
    options.argv = {join_path(executable_directory(), "../bin/purlin"),
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--token-file",
                    tokens,
                    "--data",
                    join_path(folder, "server"),
                    "--json"};
    options.out = Process::Stream::kPipe;
    process_.emplace(must(Process::start(options), "purlin serve"));
    std::string said;
    char buffer[4096];
    while (true) {
      const ssize_t bytes = ::read(process_->out_fd(), buffer, sizeof buffer);
      if (bytes <= 0) must(error(Code::kUnavailable, "it does not start"), "purlin serve");
      said.append(buffer, static_cast<std::size_t>(bytes));
      if (const Result<Json> json = Json::parse(said); json.is_ok()) {
        url_ = (*json)["url"].as_string();
        return;
      }
    }
  }

  Blobs open(const std::string& cache) const {
    return blobs::make_server_blobs({url_, cache, kToken},
                                    must(blobs::make_curl_http(), "a client"), system_clock(), 1);
  }
  double cpu_s() const {
    const std::string stat = must(read_file(fmt::format("/proc/{}/stat", process_->pid())), "stat");
    const auto fields = split(stat.substr(stat.rfind(')') + 2), ' ');
    return static_cast<double>(parse_int(fields.at(11)).value_or(0) +
                               parse_int(fields.at(12)).value_or(0)) /
           static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  double resident_mib() const {
    for (const std::string& line :
         split(must(read_file(fmt::format("/proc/{}/status", process_->pid())), "status"), '\n'))
      if (starts_with(line, "VmHWM:"))
        return static_cast<double>(parse_int(trim(line.substr(6, line.size() - 9))).value_or(0)) /
               1024;
    return 0;
  }
  std::int64_t connections() const {
    const auto http = must(blobs::make_curl_http(), "a client");
    blobs::HttpRequest request;
    request.method = "GET";
    request.url = url_ + "/metrics";
    request.headers = {{"Authorization", std::string("Bearer ") + kToken}};
    request.max_bytes = 1 << 20;
    for (const std::string& line : split(must(http->send(request), "metrics").body, '\n'))
      if (starts_with(line, "purlin_http_connections "))
        return parse_int(trim(line.substr(24))).value_or(0);
    return 0;
  }

 private:
  std::optional<Process> process_;
  std::string url_;
};

void look(blobs::BlobStore& store) {
  if (must(store.get("index.json", cache::kMaxIndexBytes), "a look").bytes.empty()) std::abort();
}

// What a client remembers of segments is shared by all of them here, as by one machine's.
int push(blobs::BlobStore& store, const std::string& memo, std::uint64_t seed) {
  cache::ShareOptions options;
  options.memo_directory = memo;
  cache::Share share(store, system_clock(), seed, std::move(options));
  return must(share.push({new_record()}), "a push").conflicts;
}

std::size_t records_in(blobs::BlobStore& store) {
  cache::Share share(store, system_clock(), 1);
  std::set<std::string> ids;
  const cache::PullReport report =
      must(share.pull([&](const std::string& id) { return ids.count(id) > 0; },
                      [&](const std::vector<cache::CacheRecord>& records) {
                        for (const cache::CacheRecord& record : records) ids.insert(record.id);
                        return Status::ok();
                      }),
           "a pull");
  if (!report.problems.empty()) must(error(Code::kCorrupt, "{}", report.problems[0]), "a pull");
  return ids.size();
}

void expect_records(std::size_t found, std::size_t pushed, const std::string& where) {
  if (found == pushed) return;
  fmt::print(stderr, "bench_serve: {} of {} records are in {}\n", found, pushed, where);
  std::exit(1);
}

struct Paced {
  std::size_t looks = 0, pushes = 0;
  double per_s = 0, p50_ms = 0, p99_ms = 0, longest_ms = 0, push_p50_ms = 0, push_p99_ms = 0;
  double server_cpu = 0;  // of one processor
  double resident_mib = 0;
  std::int64_t connections = 0;
};

double at(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

Paced paced(const Server& server, int agents, double seconds, const std::string& memo) {
  {
    const Blobs store = server.open("fleet");
    for (int i = 0; i < kSeedSegments; ++i) push(*store, memo, 1);
  }
  std::vector<std::vector<Blobs>> mine(kPacers);
  for (int i = 0; i < agents; ++i)
    mine[static_cast<std::size_t>(i % kPacers)].push_back(server.open("fleet"));
  for (auto& stores : mine)
    for (const Blobs& store : stores) look(*store);
  std::vector<std::vector<double>> looks(kPacers), pushes(kPacers);
  const double begin = seconds_now() + 0.1, cpu = server.cpu_s();
  std::vector<std::thread> threads;
  for (int t = 0; t < kPacers; ++t)
    threads.emplace_back([&, t] {
      const auto& stores = mine[static_cast<std::size_t>(t)];
      for (int round = 0;; ++round)
        for (std::size_t i = 0; i < stores.size(); ++i) {
          const std::size_t agent = i * kPacers + static_cast<std::size_t>(t);
          const double due =
              begin + kPeriodS * (round + static_cast<double>(agent) / static_cast<double>(agents));
          if (due > begin + seconds) return;
          if (const double wait = due - seconds_now(); wait > 0)
            system_clock().sleep_ns(static_cast<std::int64_t>(wait * 1e9));
          const bool pushing =
              (agent + static_cast<std::size_t>(round)) % kPushEvery == kPushEvery - 1;
          if (pushing)
            push(*stores[i], memo, agent);
          else
            look(*stores[i]);
          (pushing ? pushes : looks)[static_cast<std::size_t>(t)].push_back((seconds_now() - due) *
                                                                            1e3);
        }
    });
  for (std::thread& thread : threads) thread.join();
  const double took = seconds_now() - begin;
  Paced result;
  std::vector<double> look_ms, push_ms;
  for (const auto& part : looks) look_ms.insert(look_ms.end(), part.begin(), part.end());
  for (const auto& part : pushes) push_ms.insert(push_ms.end(), part.begin(), part.end());
  result.looks = look_ms.size();
  result.pushes = push_ms.size();
  result.per_s = static_cast<double>(look_ms.size() + push_ms.size()) / took;
  result.p50_ms = at(look_ms, 0.5);
  result.p99_ms = at(look_ms, 0.99);
  result.longest_ms = at(look_ms, 1);
  result.push_p50_ms = at(push_ms, 0.5);
  result.push_p99_ms = at(push_ms, 0.99);
  result.server_cpu = (server.cpu_s() - cpu) / took;
  result.resident_mib = server.resident_mib();
  result.connections = server.connections();
  expect_records(records_in(*server.open("fleet")),
                 static_cast<std::size_t>(kSeedSegments) + result.pushes, "the paced cache");
  return result;
}

struct Rate {
  double per_s = 0, server_us = 0, conflicts = 0;  // processor time of the server, each
};

// `work(client)` from eight threads for kAtOnceS; the middle of three by rate.
Rate at_once(const std::function<void(int repeat, int client)>& begin_client,
             const std::function<int(int client)>& work, const Server* server) {
  std::vector<Rate> rates;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (int client = 0; client < kAtOnce; ++client) begin_client(repeat, client);
    std::atomic<std::uint64_t> done{0}, conflicts{0};
    const double begin = seconds_now(), cpu = server == nullptr ? 0 : server->cpu_s();
    std::vector<std::thread> threads;
    for (int client = 0; client < kAtOnce; ++client)
      threads.emplace_back([&, client] {
        while (seconds_now() - begin < kAtOnceS) {
          conflicts.fetch_add(static_cast<std::uint64_t>(work(client)));
          done.fetch_add(1);
        }
      });
    for (std::thread& thread : threads) thread.join();
    const double took = seconds_now() - begin, count = static_cast<double>(done.load());
    rates.push_back({count / took, server == nullptr ? 0 : (server->cpu_s() - cpu) / count * 1e6,
                     static_cast<double>(conflicts.load()) / count});
  }
  std::sort(rates.begin(), rates.end(),
            [](const Rate& a, const Rate& b) { return a.per_s < b.per_s; });
  return rates[kRepeats / 2];
}

struct Rates {
  Rate kept, fresh, push_one, push_eight;
};

// `where` tells one place's caches from another's.
Rates rates_of(const Open& open, const Server* server, const std::string& where,
               const std::string& memo) {
  Rates rates;
  std::vector<Blobs> clients(kAtOnce);
  const std::string looked = where + "-looked";
  {
    const Blobs store = open(looked);
    for (int i = 0; i < kSeedSegments; ++i) push(*store, memo, 1);
  }
  const auto client_of = [&](int client) -> Blobs& {
    return clients[static_cast<std::size_t>(client)];
  };
  rates.kept = at_once([&](int, int client) { client_of(client) = open(looked); },
                       [&](int client) { return look(*client_of(client)), 0; }, server);
  rates.fresh = at_once([](int, int) {}, [&](int) { return look(*open(looked)), 0; }, server);
  for (const int caches : {1, kAtOnce}) {
    std::vector<std::atomic<std::size_t>> pushed(kRepeats * kAtOnce);
    int repeat_now = 0;
    const auto cache_of = [&](int repeat, int client) {
      return fmt::format("{}-{}-{}-{}", where, caches, repeat, client % caches);
    };
    (caches == 1 ? rates.push_one : rates.push_eight) = at_once(
        [&](int repeat, int client) {
          repeat_now = repeat;
          client_of(client) = open(cache_of(repeat, client));
        },
        [&](int client) {
          const int conflicts =
              push(*client_of(client), memo, static_cast<std::uint64_t>(client) + 1);
          pushed[static_cast<std::size_t>(repeat_now * kAtOnce + client % caches)].fetch_add(1);
          return conflicts;
        },
        server);
    for (int repeat = 0; repeat < kRepeats; ++repeat)
      for (int cache = 0; cache < caches; ++cache)
        expect_records(records_in(*open(cache_of(repeat, cache))),
                       pushed[static_cast<std::size_t>(repeat * kAtOnce + cache)].load(),
                       cache_of(repeat, cache));
  }
  return rates;
}

Json to_json(const Rate& rate) {
  return Json::object({{"per_s", rate.per_s},
                       {"server_us", rate.server_us},
                       {"conflicts_per_push", rate.conflicts}});
}
Json to_json(const Rates& rates) {
  return Json::object({{"looks_kept", to_json(rates.kept)},
                       {"looks_new_connection", to_json(rates.fresh)},
                       {"pushes_to_one", to_json(rates.push_one)},
                       {"pushes_to_eight", to_json(rates.push_eight)}});
}

void print_markdown(int agents, double seconds, const Paced& paced, const Rates& server,
                    const Rates& folder) {
  fmt::print(
      "{} agents of a period of {} s for {} s: {} looks and {} pushes, {:.1f} /s; {} connections "
      "open; a look p50 {:.2f} ms, p99 {:.2f}, longest {:.1f}; a push p50 {:.1f}, p99 {:.1f}; the "
      "server has {:.1f} % of one processor and {:.0f} MiB\n\n",
      agents, kPeriodS, seconds, paced.looks, paced.pushes, paced.per_s, paced.connections,
      paced.p50_ms, paced.p99_ms, paced.longest_ms, paced.push_p50_ms, paced.push_p99_ms,
      100 * paced.server_cpu, paced.resident_mib);
  fmt::print(
      "| {} clients at once | server, per s | of the budget's {} per s | its processor time "
      "each, us | refused by compare-and-swap, per push | folder, per s | refused | server "
      "over folder |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
      kAtOnce, kBudgetPerS);
  const auto row = [](const char* name, const Rate& a, const Rate& b) {
    fmt::print("| {} | {:.0f} | {:.1f} | {:.0f} | {:.2f} | {:.0f} | {:.2f} | {:.2f} |\n", name,
               a.per_s, a.per_s / kBudgetPerS, a.server_us, a.conflicts, b.per_s, b.conflicts,
               a.per_s / b.per_s);
  };
  row("looks, connections stay", server.kept, folder.kept);
  row("looks, a new connection each", server.fresh, folder.fresh);
  row("pushes to one cache", server.push_one, folder.push_one);
  row("pushes to eight caches", server.push_eight, folder.push_eight);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool markdown = std::erase(words, "--markdown") > 0;
  const auto number = [&](std::size_t i, std::int64_t fallback) {
    return words.size() <= i ? fallback : parse_int(words[i]).value_or(0);
  };
  const std::int64_t agents = number(0, 1000), seconds = number(1, 20);
  if (words.size() > 2 || agents < 1 || agents > 4000 || seconds < 1 || seconds > 3600) {
    std::fputs("usage: bench_serve [AGENTS up to 4000] [SECONDS] [--markdown]\n", stderr);
    return 2;
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {  // a connection each
    files.rlim_cur = files.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
  }
  cache::TemporaryDirectory folder;
  const std::string memo = folder.file("memo");
  const Server server(folder.path());
  const Paced load = paced(server, static_cast<int>(agents), static_cast<double>(seconds), memo);
  const Rates served =
      rates_of([&](const std::string& name) { return server.open(name); }, &server, "server", memo);
  const Rates shared = rates_of(
      [&](const std::string& name) { return blobs::make_directory_blobs(folder.file(name)); },
      nullptr, "folder", memo);
  if (markdown) {
    print_markdown(static_cast<int>(agents), static_cast<double>(seconds), load, served, shared);
    return 0;
  }
  Json json = Json::object({{"agents", agents}, {"seconds", seconds}});
  json.set("paced", Json::object({{"looks", load.looks},
                                  {"pushes", load.pushes},
                                  {"per_s", load.per_s},
                                  {"connections", load.connections},
                                  {"look_p50_ms", load.p50_ms},
                                  {"look_p99_ms", load.p99_ms},
                                  {"look_longest_ms", load.longest_ms},
                                  {"push_p50_ms", load.push_p50_ms},
                                  {"push_p99_ms", load.push_p99_ms},
                                  {"server_cpu", load.server_cpu},
                                  {"server_resident_mib", load.resident_mib}}));
  json.set("server", to_json(served));
  json.set("folder", to_json(shared));
  json.set("budget_per_s", kBudgetPerS);
  fmt::print("{}\n", json.dump());
  return 0;
}
