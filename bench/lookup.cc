// SPDX-License-Identifier: Apache-2.0
// bench_lookup [ENTRIES] [--hot | --load] [--shapes=N] [--markdown]: what a program pays to find
// its config before a launch.
//
// purlin_lookup, as programs call it, beside std::unordered_map under a mutex and SQLite (in
// memory, one prepared statement), on the same keys in the same run; 1, 2 and 8 threads; shapes
// drawn from all entries, or from the 1,000 (N) that a program would be launching. "Each": every
// lookup is timed by itself, by the processor's counter between fences, less what an empty span
// takes: of these the tail is read, as a budget for a hit means it. A virtual machine is delayed by
// 100 ns and more now and then, whatever it does, at times more often than once in a thousand; so
// after each lookup arithmetic that takes about as long and reads no memory is timed in the same
// way, the "machine". In brackets is the lookup's own p99.9, beyond which at most one in a thousand
// lookups more lie than pieces of arithmetic that are as much longer than their median, and the
// machine's p99.9. Of three runs the one whose own p99.9 is the middle one.
//
// Otherwise batches of 16 are timed, whose lookups overlap and spread the clock's own cost
// (printed); their extents lie ready, as a program's do before a launch. What interrupts the
// processor for a microsecond falls on one lookup, or on the mean of sixteen. Of three runs the one
// with the middle median. --hot leaves out shapes drawn from all entries. "One after another": each
// lookup waits for the one before, so that no processor can overlap them. "Floor": the same for
// plain reads of one cache line at random places of an array of the size of the lookup's table, on
// huge pages: what memory itself takes, and no structure larger than the caches can stay below.
// --load ends once the entries are loaded. One JSON document, or a table in Markdown.
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "cache/hot/op_index.h"
#include "cache/store/store.h"
#include "model/document.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <optional>
#include <purlin/purlin.h>
#include <span>
#include <sqlite3.h>
#include <sys/mman.h>
#include <thread>
#include <unordered_map>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

using namespace purlin;
using namespace purlin::cache;

namespace {

constexpr int kBatch = 16, kBatches = 100'000, kEach = 1'000'000;
std::size_t hot_shapes = 1000;  // that a program goes on launching
constexpr std::size_t kLine = 64;
std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Counts what lookups must not do, in this program and in the libraries it loads.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* malloc(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
}

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

enum class Order { kIndependent, kOneAfterAnother };
constexpr auto kNothingAhead = [](const std::int64_t*) {};

// Each shape for the first time in a thread, in batches of neighbours: nanoseconds a lookup.
template <class Lookup>
Quantiles first_time(std::span<const Extents> shapes, Lookup lookup) {
  std::vector<double> ns;
  std::thread([&] {
    for (; shapes.size() >= kBatch; shapes = shapes.subspan(kBatch)) {
      std::size_t found = 0;
      const std::int64_t begin = now_ns();
      for (const Extents& shape : shapes.first(kBatch)) found += lookup(shape.data()) != nullptr;
      ns.push_back(static_cast<double>(now_ns() - begin) / kBatch);
      if (found != kBatch) std::abort();
    }
  }).join();
  return quantiles(std::move(ns));
}

// `lookup(extents)` from `threads` threads at once; nanoseconds for each lookup, by batches. A
// lookup returns an address, nullptr for a miss. Of hot shapes each thread asks for all of them
// once before it is timed, as its program has: they are in its processor's caches, as far as they
// fit.
template <class Lookup, class Ahead>
Quantiles measure_once(int threads, std::span<const Extents> shapes, Lookup lookup, Order order,
                       int batches, Ahead ahead) {
  std::vector<std::vector<double>> of_thread(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      auto& ns = of_thread[static_cast<std::size_t>(t)];
      ns.reserve(static_cast<std::size_t>(batches));
      std::size_t found = 0;
      Extents batch[kBatch];
      std::size_t seen = 0;
      if (shapes.size() <= hot_shapes)
        for (const Extents& shape : shapes) seen += lookup(shape.data()) != nullptr ? 1 : 0;
      if (seen != (shapes.size() <= hot_shapes ? shapes.size() : 0)) std::abort();
      for (int i = 0; i < batches; ++i) {
        for (Extents& shape : batch) shape = shapes[random.below(shapes.size())];
        const std::int64_t begin = now_ns();
        for (const Extents& shape : batch) ahead(shape.data());
        std::uintptr_t wait = 0;
        for (const Extents& shape : batch) {
          // The top bit of an address is 0: the next lookup reads what it would, but only once this
          // one is done.
          const void* hit = lookup(&shape[wait]);
          found += hit != nullptr ? 1 : 0;
          if (order == Order::kOneAfterAnother) wait = reinterpret_cast<std::uintptr_t>(hit) >> 63;
        }
        ns.push_back(static_cast<double>(now_ns() - begin) / kBatch);
      }
      if (found != static_cast<std::size_t>(batches) * kBatch) std::abort();  // each is a hit
    });
  for (std::thread& thread : running) thread.join();
  std::vector<double> all;
  for (const auto& ns : of_thread) all.insert(all.end(), ns.begin(), ns.end());
  return quantiles(std::move(all));
}

// The run of three with the middle median: a processor that is shared may be half as fast for a
// while, and the luckiest of runs says nothing, either.
template <class Run>
Quantiles middle_of_three(Run run) {
  std::array<Quantiles, 3> runs;
  for (Quantiles& each : runs) each = run();
  std::sort(runs.begin(), runs.end(),
            [](const Quantiles& a, const Quantiles& b) { return a.p50 < b.p50; });
  return runs[1];
}

template <class Lookup, class Ahead = decltype(kNothingAhead)>
Quantiles measure(int threads, std::span<const Extents> shapes, Lookup lookup,
                  Order order = Order::kIndependent, int batches = kBatches,
                  Ahead ahead = kNothingAhead) {
  return middle_of_three(
      [&] { return measure_once(threads, shapes, lookup, order, batches, ahead); });
}

// The processor's counter, read once all before it is done and before anything after it starts.
std::uint64_t fenced_ticks() {
#if defined(__x86_64__)
  unsigned processor = 0;
  const std::uint64_t ticks = __rdtscp(&processor);
  _mm_lfence();
  return ticks;
#else
  return static_cast<std::uint64_t>(now_ns());
#endif
}

double ns_per_tick() {
  const std::int64_t begin = now_ns();
  const std::uint64_t ticks = fenced_ticks();
  while (now_ns() - begin < 50'000'000) {
  }
  return static_cast<double>(now_ns() - begin) / static_cast<double>(fenced_ticks() - ticks);
}

// What two readings of the counter with nothing between them are apart: the middle.
double empty_span_ns(double ns_a_tick) {
  std::vector<double> spans(100'000);
  for (double& span : spans) {
    const std::uint64_t begin = fenced_ticks();
    span = static_cast<double>(fenced_ticks() - begin) * ns_a_tick;
  }
  return quantiles(std::move(spans)).p50;
}

// Spans, counted by their ticks, so that keeping them takes few lines of the caches.
class Spans {
 public:
  void add(std::uint64_t ticks) { ++counts_[std::min<std::uint64_t>(ticks, counts_.size() - 1)]; }
  void add(const Spans& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  std::uint64_t count() const { return std::accumulate(counts_.begin(), counts_.end(), 0ull); }
  Quantiles quantiles(double ns_a_tick, double less_ns) const {
    const std::uint64_t total = count();
    const auto at = [&](double q) {
      std::uint64_t rank = static_cast<std::uint64_t>(q * static_cast<double>(total - 1));
      std::size_t ticks = 0;
      while (rank >= counts_[ticks]) rank -= counts_[ticks++];
      return static_cast<double>(ticks) * ns_a_tick - less_ns;
    };
    return {at(0.5), at(0.99), at(0.999)};
  }
  std::size_t median() const {
    std::size_t ticks = 0;
    for (std::uint64_t below = counts_[0]; below <= count() / 2;) below += counts_[++ticks];
    return ticks;
  }
  // The ticks, at least the median, beyond which a share of at most `tail` more of these lie than
  // of `others` that are as much longer than their own median.
  std::size_t beyond(double tail, const Spans& others) const {
    const double each = 1 / static_cast<double>(count()),
                 each_other = 1 / static_cast<double>(others.count());
    const std::size_t middle = median(), middle_of_others = others.median();
    double more = 0;
    std::size_t ticks = counts_.size();
    while (ticks > middle && more <= tail) {
      --ticks;
      more += static_cast<double>(counts_[ticks]) * each;
      if (const std::size_t other = ticks - middle + middle_of_others; other < counts_.size())
        more -= static_cast<double>(others.counts_[other]) * each_other;
    }
    return ticks;
  }

 private:
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(1 << 20);  // up to 0.4 ms
};

// Sums and products that wait for each other and read no memory, for about as long as a lookup of a
// hot shape takes: 10 to 20 ns.
inline void reckon() {
  std::uint64_t sum = 1;
  for (int i = 0; i < 12; ++i) {
    sum = sum * 0x9E3779B97F4A7C15u + 1;
    asm volatile("" : "+r"(sum));  // else it is reckoned by the compiler
  }
}

struct Each {
  Quantiles lookup, machine;
  double own_p999 = 0;
};

// Every lookup timed by itself, from `threads` threads at once, less an empty span. Nothing
// overlaps; each thread has asked for all the shapes once before. After each lookup a piece of
// arithmetic is timed in the same way: what delays that is the machine. Of three runs the one whose
// own tail is the middle one.
template <class Lookup>
Each measure_each(int threads, std::span<const Extents> shapes, Lookup lookup) {
  static const double ns_a_tick = ns_per_tick();
  static const double empty = empty_span_ns(ns_a_tick);
  std::array<Each, 3> runs;
  for (Each& run : runs) {
    std::vector<Spans> lookups(static_cast<std::size_t>(threads)), machine(lookups.size());
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < lookups.size(); ++t)
      running.emplace_back([&, t] {
        Random random(t + 1);
        Spans &of_lookups = lookups[t], &of_machine = machine[t];
        std::size_t found = 0;
        for (const Extents& shape : shapes) found += lookup(shape.data()) != nullptr ? 1 : 0;
        for (int i = 0; i < kEach; ++i) {
          const Extents shape = shapes[random.below(shapes.size())];
          std::uint64_t begin = fenced_ticks();
          const void* hit = lookup(shape.data());
          std::uint64_t ticks = fenced_ticks() - begin;
          of_lookups.add(ticks);
          found += hit != nullptr ? 1 : 0;
          begin = fenced_ticks();
          reckon();
          ticks = fenced_ticks() - begin;
          of_machine.add(ticks);
        }
        if (found != shapes.size() + kEach) std::abort();
      });
    for (std::thread& thread : running) thread.join();
    for (std::size_t t = 1; t < lookups.size(); ++t) {
      lookups[0].add(lookups[t]);
      machine[0].add(machine[t]);
    }
    run = {lookups[0].quantiles(ns_a_tick, empty), machine[0].quantiles(ns_a_tick, empty),
           static_cast<double>(lookups[0].beyond(0.001, machine[0])) * ns_a_tick - empty};
  }
  std::sort(runs.begin(), runs.end(),
            [](const Each& a, const Each& b) { return a.own_p999 < b.own_p999; });
  return runs[1];
}

// Lines of memory on huge pages, as the table of a large op lies.
class Lines {
 public:
  explicit Lines(std::size_t count)
      : count_(count), bytes_((count * kLine + kPage - 1) / kPage * kPage) {
    memory_ = static_cast<char*>(std::aligned_alloc(kPage, bytes_));
    if (memory_ == nullptr) std::abort();
    ::madvise(memory_, bytes_, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < count; ++i)
      *reinterpret_cast<const void**>(memory_ + i * kLine) = this;
  }
  ~Lines() { std::free(memory_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  const void* read(const std::int64_t* line) const {
    return *reinterpret_cast<const void* const volatile*>(memory_ +
                                                          static_cast<std::size_t>(*line) * kLine);
  }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  std::size_t count_, bytes_;
  char* memory_ = nullptr;
};

Json to_json(const Quantiles& q) {
  return Json::object({{"p50_ns", q.p50}, {"p99_ns", q.p99}, {"p99_9_ns", q.p999}});
}

Json to_json(const Each& each) {
  Json document = to_json(each.lookup);
  document.set("own_p99_9_ns", each.own_p999);
  document.set("machine", to_json(each.machine));
  return document;
}

// A table of shapes as a program would keep it in SQLite.
class Database {
 public:
  explicit Database(std::span<const Extents> shapes) {
    run("PRAGMA synchronous=OFF; CREATE TABLE e (m, n, k, bm, PRIMARY KEY (m, n, k)) WITHOUT "
        "ROWID; "
        "BEGIN");
    sqlite3_stmt* insert = prepare("INSERT OR IGNORE INTO e VALUES (?, ?, ?, 64)");
    for (const Extents& shape : shapes) step(insert, shape.data());
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
  bool find(const std::int64_t* shape) { return step(select_, shape) == SQLITE_ROW; }

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
  static int step(sqlite3_stmt* statement, const std::int64_t* shape) {
    for (int i = 0; i < 3; ++i) sqlite3_bind_int64(statement, i + 1, shape[i]);
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

struct Options {
  std::int64_t entries = 10'000;
  bool markdown = false;
  bool only_hot = false, only_load = false;
};

std::optional<Options> options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const auto number = parse_int(argv[i]);
    if (std::string_view(argv[i]) == "--markdown")
      options.markdown = true;
    else if (std::string_view(argv[i]) == "--hot")
      options.only_hot = true;
    else if (std::string_view(argv[i]) == "--load")
      options.only_load = true;
    else if (const std::string_view word = argv[i]; word.starts_with("--shapes="))
      hot_shapes = static_cast<std::size_t>(parse_int(word.substr(9)).value_or(1000));
    else if (number && *number >= 1 && *number <= 1'000'000)
      options.entries = *number;
    else
      return std::nullopt;
  }
  return options;
}

// Straight into a log file: a put syncs, and a million of them is not what is measured here.
void write_entries(const std::string& directory, std::span<const Extents> shapes) {
  std::FILE* file = std::fopen((directory + "/entries.log").c_str(), "wb");
  const auto put = [&](const std::string& bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), file);
  };
  put(encode_log_header());
  for (const Extents& shape : shapes)
    put(encode_record(1, cache::to_json(entry_of(shape[0], shape[1])).dump()));
  std::fclose(file);
}

purlin_op* open_op(purlin_cache* cache) {
  const char* dimensions[] = {"M", "N", "K"};
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda", device.arch = "sm_90";
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.op = desc.kernel = "gemm", desc.device = &device;
  desc.dimensions = dimensions, desc.dimension_count = 3;
  purlin_op* op = nullptr;
  if (purlin_op_open(cache, &desc, &op) != PURLIN_OK) std::abort();
  return op;
}

std::string cell(const Json& row, const char* name) {
  const Json* q = row.find(name);
  if (q == nullptr) return "";
  const Json* own = q->find("own_p99_9_ns");
  return fmt::format("{:.0f} / {:.0f} / {:.0f}{}", (*q)["p50_ns"].as_double(),
                     (*q)["p99_ns"].as_double(), (*q)["p99_9_ns"].as_double(),
                     own == nullptr ? ""
                                    : fmt::format(" ({:.0f}; {:.0f})", own->as_double(),
                                                  (*q)["machine"]["p99_9_ns"].as_double()));
}

constexpr std::pair<const char*, const char*> kColumns[] = {
    {"purlin_exact_each", "exact, each"},
    {"purlin_bucket_each", "bucket, each"},
    {"mutex_unordered_map_each", "`unordered_map`, mutex, each"},
    {"floor_each", "floor, each"},
    {"purlin_exact_first_time", "exact, the first time"},
    {"purlin_exact", "exact, batch"},
    {"purlin_bucket", "bucket, batch"},
    {"purlin_exact_one_after_another", "exact, one after another"},
    {"purlin_exact_prefetched", "exact, batch prefetched"},
    {"floor", "floor"},
    {"floor_one_after_another", "floor, one after another"},
    {"mutex_unordered_map_exact", "`unordered_map`, mutex"},
    {"sqlite_memory_exact", "SQLite in memory"}};

std::string markdown(const Json& document) {
  std::string text = fmt::format(
      "{} entries; opened in {:.1f} ms with its index ({:.0f} ms without), loaded in {:.0f} ms; "
      "allocations in lookups: {}; the clock: {:.0f} ns a batch of {}.\np50 / p99 / p99.9 (own "
      "p99.9), ns "
      "per lookup:\n\n| shapes asked for | threads |",
      document["entries"].as_int(), document["open_with_index_ms"].as_double(),
      document["open_without_index_ms"].as_double(), document["load_op_ms"].as_double(),
      document["allocations_in_lookups"].as_int(), document["clock_p50_ns"].as_double(), kBatch);
  std::string rule = "\n|--:|--:|";
  for (const auto& [name, title] : kColumns) text += fmt::format(" {} |", title), rule += "--:|";
  text += rule;
  for (const Json& row : document["results"].items()) {
    text += fmt::format("\n| {} | {} |", row["shapes"].as_int(), row["threads"].as_int());
    for (const auto& [name, title] : kColumns) text += fmt::format(" {} |", cell(row, name));
  }
  return text + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = options_of(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: bench_lookup [ENTRIES] [--hot | --load] [--shapes=N] [--markdown]   (1 to "
                 "1000000 entries)\n");
    return 2;
  }
  const std::string directory = make_temporary_directory("purlin-bench").value();
  std::vector<Extents> exact, bucket;
  for (std::int64_t i = 0; i < options->entries; ++i) {
    const std::int64_t m = std::int64_t{1} << (4 + i % 12), n = 64 * (1 + i / 12);
    exact.push_back({m, n, 1024});
    bucket.push_back({m - m / 4, n, 1024});
  }
  write_entries(directory, exact);
  const auto timed = [](auto&& body) {
    const std::int64_t begin = now_ns();
    body();
    return static_cast<double>(now_ns() - begin) * 1e-6;
  };
  const double scan_ms = timed([&] {
    auto store = Store::open(directory);
    if (!store.is_ok() || !store->write_index().is_ok()) std::abort();
  });
  purlin_cache* cache = nullptr;
  const double open_ms = timed([&] {
    if (purlin_cache_open(directory.c_str(), &cache) != PURLIN_OK) std::abort();
  });
  purlin_op* op = nullptr;
  const double load_ms = timed([&] { op = open_op(cache); });
  const auto find = [op](const std::int64_t* extents) -> const void* {
    const purlin_entry* entry = nullptr;
    purlin_lookup(op, extents, 3, &entry);
    return entry;
  };

  std::mutex mutex;
  std::unordered_map<Extents, Config, ExtentsHash>
      map;  // exact shapes only, as a simple program has
  for (const Extents& shape : exact) map[shape].set("BM", 64);
  const auto find_in_map = [&](const std::int64_t* extents) -> const void* {
    Extents shape{};
    std::copy_n(extents, 3, shape.begin());
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = map.find(shape);
    return found == map.end() ? nullptr : &*found;
  };

  // The op's table: slots of a line each, at most half of them taken.
  std::size_t slots = 16;
  while (slots < 2 * exact.size()) slots *= 2;
  const Lines lines(slots);
  const auto read_line = [&](const std::int64_t* line) { return lines.read(line); };

  const std::size_t hot = std::min(hot_shapes, exact.size());
  Json results = Json::array();
  std::uint64_t allocated = 0;
  for (const std::size_t count : {hot, exact.size()}) {
    if (options->only_load) break;
    const auto exact_shapes = std::span<const Extents>(exact).first(count);
    const auto bucket_shapes = std::span<const Extents>(bucket).first(count);
    std::vector<Extents> places(count);
    Random random(7);
    for (Extents& place : places) place[0] = static_cast<std::int64_t>(random.below(slots));
    for (const int threads : {1, 2, 8}) {
      Json row = Json::object({{"threads", threads}, {"shapes", count}});
      const auto set = [&](const char* name, const Quantiles& q) { row.set(name, to_json(q)); };
      const auto set_each = [&](const char* name, const Each& each) {
        row.set(name, to_json(each));
      };
      if (threads == 1 && count >= kBatch && count <= hot_shapes)
        set("purlin_exact_first_time", first_time(exact_shapes, find));
      measure(threads, exact_shapes, find, Order::kIndependent, 1000);  // warm
      const std::uint64_t before = allocations.load();
      std::size_t found = 0;
      for (std::size_t i = 0; i < 100'000; ++i)
        found += find(bucket_shapes[i % count].data()) != nullptr ? 1 : 0;
      allocated += allocations.load() - before;
      if (found != 100'000) std::abort();
      const Quantiles exact_hit = measure(threads, exact_shapes, find),
                      peer = measure(threads, exact_shapes, find_in_map);
      if (count <= hot_shapes) {
        set_each("purlin_exact_each", measure_each(threads, exact_shapes, find));
        set_each("purlin_bucket_each", measure_each(threads, bucket_shapes, find));
        set_each("mutex_unordered_map_each", measure_each(threads, exact_shapes, find_in_map));
        set_each("floor_each", measure_each(threads, places, read_line));
      }
      set("purlin_exact", exact_hit);
      set("purlin_bucket", measure(threads, bucket_shapes, find));
      set("purlin_exact_one_after_another",
          measure(threads, exact_shapes, find, Order::kOneAfterAnother));
      set("purlin_exact_prefetched",
          measure(threads, exact_shapes, find, Order::kIndependent, kBatches,
                  [op](const std::int64_t* extents) { purlin_prefetch(op, extents, 3); }));
      set("floor", measure(threads, places, read_line));
      set("floor_one_after_another", measure(threads, places, read_line, Order::kOneAfterAnother));
      set("mutex_unordered_map_exact", peer);
      row.set("ratio_p50", peer.p50 / exact_hit.p50);
      if (threads == 1) {
        // So much slower that fewer lookups tell it.
        Database database(exact_shapes);
        set("sqlite_memory_exact", measure(
                                       1, exact_shapes,
                                       [&](const std::int64_t* shape) -> const void* {
                                         return database.find(shape) ? &database : nullptr;
                                       },
                                       Order::kIndependent, kBatches / 50));
      }
      results.push(std::move(row));
    }
    if (options->only_hot || count == exact.size()) break;
  }
  std::vector<double> clock;
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t begin = now_ns();
    clock.push_back(static_cast<double>(now_ns() - begin));
  }
  purlin_op_close(op);
  purlin_cache_close(cache);
  Json document = new_document("purlin.bench-lookup/4", host_environment());
  document.set("entries", options->entries);
  document.set("batch", kBatch);
  document.set("open_without_index_ms", scan_ms);
  document.set("open_with_index_ms", open_ms);
  document.set("load_op_ms", load_ms);
  document.set("allocations_in_lookups", allocated);
  document.set("clock_p50_ns", quantiles(clock).p50);
  document.set("results", std::move(results));
  std::printf("%s\n", options->markdown ? markdown(document).c_str() : document.dump(2).c_str());
  return remove_tree(directory).is_ok() ? 0 : 2;
}
