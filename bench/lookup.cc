// SPDX-License-Identifier: Apache-2.0
// bench_lookup [ENTRIES]: what a program pays to find its config before a launch.
//
// The public call (purlin_lookup's index) beside std::unordered_map under a mutex and SQLite (in
// memory, one prepared statement for each thread), on the same keys in the same run; 1, 2 and 4
// threads; shapes drawn from all entries, or from the 1,000 that a program would be launching.
// Batches of 16 lookups are timed, so that the clock's
// own cost (printed) is spread over them. Results: one JSON document.
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "cache/op_index.h"
#include "model/document.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <sqlite3.h>
#include <thread>
#include <unordered_map>

using namespace purlin;
using namespace purlin::cache;

namespace {

constexpr int kBatch = 16, kBatches = 20'000;
std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Counts what lookups must not do.
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

struct Quantiles {
  double p50 = 0, p99 = 0, p999 = 0;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Quantiles quantiles(std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double q) {
    return ns[static_cast<std::size_t>(q * static_cast<double>(ns.size() - 1))];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

// `lookup(extents)` from `threads` threads at once; nanoseconds for each lookup, by batches.
template <class Lookup>
Quantiles measure(int threads, std::span<const Extents> shapes, Lookup lookup,
                  int batches = kBatches) {
  std::vector<std::vector<double>> of_thread(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      auto& ns = of_thread[static_cast<std::size_t>(t)];
      ns.reserve(static_cast<std::size_t>(batches));
      std::size_t found = 0;
      for (int i = 0; i < batches; ++i) {
        const Extents* batch[kBatch];
        for (auto& shape : batch) shape = &shapes[random.below(shapes.size())];
        const std::int64_t begin = now_ns();
        for (const auto* shape : batch) found += lookup(*shape) ? 1 : 0;
        ns.push_back(static_cast<double>(now_ns() - begin) / kBatch);
      }
      if (found != static_cast<std::size_t>(batches) * kBatch) std::abort();  // each is a hit
    });
  for (std::thread& thread : running) thread.join();
  std::vector<double> all;
  for (const auto& ns : of_thread) all.insert(all.end(), ns.begin(), ns.end());
  return quantiles(std::move(all));
}

Json to_json(const Quantiles& q) {
  return Json::object({{"p50_ns", q.p50}, {"p99_ns", q.p99}, {"p99_9_ns", q.p999}});
}

// A table of shapes as a program would keep it in SQLite.
class Database {
 public:
  explicit Database(std::span<const Extents> shapes) {
    run("PRAGMA synchronous=OFF; CREATE TABLE e (m, n, k, bm, PRIMARY KEY (m, n, k)) WITHOUT "
        "ROWID; "
        "BEGIN");
    sqlite3_stmt* insert = prepare("INSERT OR IGNORE INTO e VALUES (?, ?, ?, 64)");
    for (const Extents& shape : shapes) step(insert, shape);
    sqlite3_finalize(insert);
    run("COMMIT");
    select_ = prepare("SELECT bm FROM e WHERE m = ? AND n = ? AND k = ?");
  }
  ~Database() {
    sqlite3_finalize(select_);
    sqlite3_close(database_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  bool find(const Extents& shape) { return step(select_, shape) == SQLITE_ROW; }

 private:
  sqlite3* open() {
    sqlite3* database = nullptr;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK) std::abort();
    return database;
  }
  void run(const char* text) {
    if (sqlite3_exec(database_, text, nullptr, nullptr, nullptr) != SQLITE_OK) std::abort();
  }
  sqlite3_stmt* prepare(const char* text) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, text, -1, &statement, nullptr) != SQLITE_OK) std::abort();
    return statement;
  }
  static int step(sqlite3_stmt* statement, const Extents& shape) {
    for (int i = 0; i < 3; ++i)
      sqlite3_bind_int64(statement, i + 1, shape[static_cast<std::size_t>(i)]);
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result;
  }
  sqlite3* database_ = open();
  sqlite3_stmt* select_ = nullptr;
};

struct ExtentsHash {
  std::size_t operator()(const Extents& e) const {
    std::size_t h = 0;
    for (const std::int64_t x : e) h = h * 1099511628211u ^ static_cast<std::size_t>(x);
    return h;
  }
};

Entry entry_of(std::int64_t m, std::int64_t n) {
  Entry entry;
  entry.key.op = entry.key.kernel = "gemm";
  entry.key.backend = "cuda";
  entry.key.arch = "sm_90";
  entry.key.bucket = fmt::format("M={},N={},K=1024", m, n);
  entry.config.set("BM", 64);
  entry.config.set("BN", 128);
  entry.problem.set("M", m);
  entry.problem.set("N", n);
  entry.problem.set("K", 1024);
  entry.bucket_rules = {{"M", *BucketRule::parse("pow2")},
                        {"N", *BucketRule::parse("multiple:64")},
                        {"K", *BucketRule::parse("exact")}};
  entry.shape_constraints = {"N % BN == 0 or N % 64 == 0", "K % 16 == 0"};
  return entry;
}

}  // namespace

int main(int argc, char** argv) {
  const auto entries = parse_int(argc > 1 ? argv[1] : "10000");
  if (!entries || *entries < 1 || *entries > 1'000'000) {
    std::fprintf(stderr, "usage: bench_lookup [ENTRIES]   (1 to 1000000)\n");
    return 2;
  }
  // Straight into a log file: a put syncs, and a million of them is not what is measured here.
  const std::string directory = make_temporary_directory("purlin-bench").value();
  std::vector<Extents> exact, bucket;
  {
    std::FILE* file = std::fopen((directory + "/entries.log").c_str(), "wb");
    const auto put = [&](const std::string& bytes) {
      std::fwrite(bytes.data(), 1, bytes.size(), file);
    };
    put(encode_log_header());
    for (std::int64_t i = 0; i < *entries; ++i) {
      const std::int64_t m = std::int64_t{1} << (4 + i % 12), n = 64 * (1 + i / 12);
      put(encode_record(1, cache::to_json(entry_of(m, n)).dump()));
      exact.push_back({m, n, 1024});
      bucket.push_back({m - m / 4, n, 1024});
    }
    std::fclose(file);
  }
  const auto timed = [](auto&& body) {
    const std::int64_t begin = now_ns();
    body();
    return static_cast<double>(now_ns() - begin) * 1e-6;
  };
  std::optional<Store> opened;
  const double scan_ms = timed([&] { opened = *Store::open(directory); });
  if (!opened->write_index().is_ok()) return 2;
  const double open_ms = timed([&] { opened = *Store::open(directory); });
  const Store& store = *opened;
  CacheKey wanted;
  wanted.op = wanted.kernel = "gemm";
  wanted.backend = "cuda";
  wanted.arch = "sm_90";
  OpIndex index(wanted, {"M", "N", "K"}, false);
  const double load_ms = timed([&] { index.update(store); });
  const auto find = [&](const Extents& shape) { return index.find(shape.data()).entry != nullptr; };

  std::mutex mutex;
  std::unordered_map<Extents, Config, ExtentsHash>
      map;  // exact shapes only, as a simple program has
  for (const Extents& shape : exact) map[shape].set("BM", 64);
  const auto find_in_map = [&](const Extents& shape) {
    const std::lock_guard<std::mutex> lock(mutex);
    return map.find(shape) != map.end();
  };

  // SQLite is slower by so much that fewer lookups tell it.
  const std::size_t hot = std::min<std::size_t>(1000, exact.size());
  Json results = Json::array();
  std::uint64_t allocated = 0;
  for (const std::size_t count : {hot, exact.size()}) {
    const auto exact_shapes = std::span<const Extents>(exact).first(count);
    const auto bucket_shapes = std::span<const Extents>(bucket).first(count);
    for (const int threads : {1, 2, 4}) {
      measure(threads, exact_shapes, find, 1000);  // warm
      const std::uint64_t before = allocations.load();
      std::size_t found = 0;
      for (std::size_t i = 0; i < 100'000; ++i) found += find(bucket_shapes[i % count]) ? 1 : 0;
      allocated += allocations.load() - before;
      if (found != 100'000) std::abort();
      const Quantiles exact_hit = measure(threads, exact_shapes, find),
                      bucket_hit = measure(threads, bucket_shapes, find),
                      peer = measure(threads, exact_shapes, find_in_map);
      Json row = Json::object({{"threads", threads},
                               {"shapes", count},
                               {"purlin_exact", to_json(exact_hit)},
                               {"purlin_bucket", to_json(bucket_hit)},
                               {"mutex_unordered_map_exact", to_json(peer)},
                               {"ratio_p50", peer.p50 / exact_hit.p50}});
      if (threads == 1) {
        Database database(exact_shapes);
        row.set("sqlite_memory_exact",
                to_json(measure(
                    1, exact_shapes, [&](const Extents& shape) { return database.find(shape); },
                    kBatches / 10)));
      }
      results.push(std::move(row));
    }
    if (count == exact.size() && hot == count) break;
  }
  std::vector<double> clock;
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t begin = now_ns();
    clock.push_back(static_cast<double>(now_ns() - begin));
  }
  Json document = new_document("purlin.bench-lookup/1", host_environment());
  document.set("entries", *entries);
  document.set("batch", kBatch);
  document.set("open_without_index_ms", scan_ms);
  document.set("open_with_index_ms", open_ms);
  document.set("load_op_ms", load_ms);
  document.set("allocations_in_lookups", allocated);
  document.set("clock_p50_ns", quantiles(clock).p50);
  document.set("results", std::move(results));
  std::printf("%s\n", document.dump(2).c_str());
  return remove_tree(directory).is_ok() ? 0 : 2;
}
