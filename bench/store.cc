// SPDX-License-Identifier: Apache-2.0
// bench_store TARGET [--launches=MILLIONS] [--queries=SECONDS]: what a store of a fleet takes and
// gives back. TARGET is a folder or an address of ClickHouse, made here.
//
// Part 1 sends so many made-up launches (default 300 million) of 100 nodes in batches of 10 s, over
// 24 hours of 4 days in 2 months. Totals must equal the generator's to the unit. Quantiles must be
// within the sketch's error of the exact ones. Days and months must equal direct sketches bucket by
// bucket. Part 2 asks questions over 100,000 groups of one hour while batches arrive.
//
// Exit code 1 where an answer is wrong.
#include "store/store.h"

#include "base/sha256.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace purlin;
using namespace purlin::store;

namespace {

constexpr int kNodes = 100, kKernels = 25, kShapes = 2, kHours = 24;
constexpr std::int64_t kFirstDayNs = 1'709'078'400'000'000'000;  // 2024-02-28: 29, then March
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kGroup = 50;  // batches that share a commit, as under load

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "bench_store: %s\n", status.message().c_str());
  std::exit(2);
}

// Fast and the same everywhere.
struct Xorshift {
  std::uint64_t state;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

Batch empty_batch(int node, std::uint64_t sequence, std::int64_t begin_ns, int models) {
  Batch batch;
  batch.node = fmt::format("gpu{:03}", node);
  batch.boot = "0b0e7c1e-6d1f-4f6a-9a52-2f1c6d5e4b3a";
  batch.sequence = sequence;
  batch.begin_ns = begin_ns;
  batch.end_ns = begin_ns + 10 * kSecondNs - 1;
  batch.sent_ns = batch.end_ns + kSecondNs / 10;
  batch.tool_version = "0.1.0";
  batch.devices.push_back({fmt::format("GPU-0f3c2a51-{:04}-4b1e-8d3c-9a7b6c5d4e3f", node),
                           node % models == 0 ? "NVIDIA H100" : "NVIDIA H200", "", 0, "580.159.04",
                           "CUDA 13.0"});
  BatchRun run;
  run.build = node % 2 == 0 ? "7e099f8c" : "33ecfc69";
  run.labels.scheduler = "slurm", run.labels.job = fmt::format("{}", 4000 + node / 8);
  batch.runs.push_back(run);
  batch.coverage.push_back(
      {begin_ns - begin_ns % kHourNs, 0, 9.1e9, 9.9e9, 3000, 0, 0, 2e6, 0, ""});
  return batch;
}

BatchRow empty_row(std::int64_t hour_ns, int kernel, int shape) {
  BatchRow row;
  row.hour_ns = hour_ns;
  row.kernel =
      fmt::format("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_{}", kernel);
  row.raw_kernel = fmt::format(
      "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10"
      "collective13CollectiveMmaINS1_34MainloopSm90TmaGmmaWarpSpecializedEEEEEEEEvNT_6ParamsE{}",
      kernel);
  row.role = kernel % 3 == 0 ? "attention" : "mlp";
  row.op = "gemm";
  row.shape = fmt::format("m=4096,n={},k=1024", 64 << shape);
  row.dtype = "bf16";
  return row;
}

// Durations of one kernel and shape, counted by nanosecond.
struct Exact {
  std::int64_t low = 0;
  std::vector<std::uint64_t> counts;
  std::uint64_t n = 0, sum = 0;
  void add(std::int64_t ns) {
    ++counts[static_cast<std::size_t>(ns - low)];
    ++n;
    sum += static_cast<std::uint64_t>(ns);
  }
  double quantile(double q) const {
    const double rank = q * static_cast<double>(n);
    double seen = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      seen += static_cast<double>(counts[i]);
      if (seen >= rank && counts[i] > 0) return static_cast<double>(low) + static_cast<double>(i);
    }
    return 0;
  }
};

struct Bench {
  std::unique_ptr<Store> store;
  std::vector<HashedBatch> waiting;
  std::uint64_t batches = 0, encoded_bytes = 0, rows = 0;
  double ingest_s = 0;
  bool right = true;

  void expect(bool condition, const std::string& what) {
    if (condition) return;
    right = false;
    std::printf("WRONG: %s\n", what.c_str());
  }
  void send(Batch batch) {
    const Result<std::string> bytes = encode(batch);
    if (!bytes.is_ok()) fail(bytes.status());
    ++batches;
    encoded_bytes += bytes->size();
    rows += batch.rows.size();
    waiting.push_back({sha256_hex(*bytes), std::move(batch)});
    if (waiting.size() == kGroup) flush();
  }
  void flush() {
    const double begin = now_s();
    for (const Result<Ingest>& result : store->ingest_many(waiting))
      if (!result.is_ok()) fail(result.status());
    ingest_s += now_s() - begin;
    waiting.clear();
  }
  std::uint64_t bytes() {
    const Result<StoreCheck> check = store->check();
    if (!check.is_ok()) fail(check.status());
    expect(!check->damaged(), "check finds damage");
    return check->bytes;
  }
};

void add_direct(Sketch& sketch, int scale, std::int64_t ns) {
  if (sketch.empty()) sketch.reduce_to(scale);
  sketch.add(static_cast<double>(ns));
}

std::int64_t hour_at(int hour) {
  return kFirstDayNs + (hour / 6) * kDayNs + (hour % 6) * 4 * kHourNs;
}

// Part 1.
void totals(Bench& bench, double launches) {
  const int periods = 15;
  const auto per_row = static_cast<int>(
      std::lround(launches / (1.0 * kNodes * kHours * periods * kKernels * kShapes)));
  std::vector<Exact> exact(kKernels * kShapes);
  // Direct sketches of the first kernel of both shapes: of each day at scale 6, month at scale 5.
  std::map<std::int64_t, Sketch> days, months;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    exact[i].low = static_cast<std::int64_t>(1500 * (i + 1));
    exact[i].counts.resize(static_cast<std::size_t>(exact[i].low));
  }
  Xorshift random{88172645463325252ULL};
  double generate_s = 0;
  std::vector<std::uint64_t> sequence(kNodes);
  for (int hour = 0; hour < kHours; ++hour) {
    for (int period = 0; period < periods; ++period) {
      for (int node = 0; node < kNodes; ++node) {
        const double begin = now_s();
        const std::int64_t hour_ns = hour_at(hour);
        Batch batch = empty_batch(node, ++sequence[static_cast<std::size_t>(node)],
                                  hour_ns + period * 10 * kSecondNs, 3);
        for (int kernel = 0; kernel < kKernels; ++kernel) {
          for (int shape = 0; shape < kShapes; ++shape) {
            Exact& of = exact[static_cast<std::size_t>(kernel * kShapes + shape)];
            BatchRow row = empty_row(hour_ns, kernel, shape);
            // Most within 10 % of a middle, some up to 2.0 of the least.
            for (int i = 0; i < per_row; ++i) {
              const std::uint64_t drawn = random.next();
              const std::int64_t span = drawn % 32 == 0 ? of.low : of.low / 10;
              const std::int64_t ns =
                  of.low +
                  static_cast<std::int64_t>((drawn >> 32) % static_cast<std::uint64_t>(span));
              of.add(ns);
              row.duration.add(static_cast<double>(ns));
              if (kernel != 0) continue;
              add_direct(days[hour_ns / kDayNs], 6, ns);
              add_direct(months[hour >= 12 ? 1 : 0], 5, ns);
            }
            row.recorded = per_row;
            batch.rows.push_back(std::move(row));
          }
        }
        generate_s += now_s() - begin;
        bench.send(std::move(batch));
      }
    }
  }
  bench.flush();
  std::uint64_t n = 0, sum = 0;
  for (const Exact& of : exact) n += of.n, sum += of.sum;
  const TopKernels top = bench.store->top({}, 3).value();
  bench.expect(top.launches == static_cast<double>(n), "the number of launches");
  bench.expect(top.sum_ns == static_cast<double>(sum), "the sum of durations");
  std::printf("%.1f M launches in %llu batches, %llu rows: equal to the unit: %s\n",
              static_cast<double>(n) / 1e6, static_cast<unsigned long long>(bench.batches),
              static_cast<unsigned long long>(bench.rows), bench.right ? "yes" : "NO");
  double worst = 0;
  const std::vector<Cell> kernels =
      bench.store->cells({}, {Dimension::kKernel, Dimension::kShape}).value();
  for (const Cell& cell : kernels) {
    const std::string& name = cell.values[0];
    const int kernel = std::atoi(name.substr(name.rfind('_') + 1).c_str());
    const Exact& of = exact[static_cast<std::size_t>(
        kernel * kShapes + (cell.values[1].find("n=64,") == std::string::npos))];
    bench.expect(cell.duration.count() == static_cast<double>(of.n) &&
                     cell.duration.total_ns() == static_cast<double>(of.sum),
                 "totals of " + name);
    for (const double q : {0.01, 0.5, 0.95, 0.99}) {
      const double truth = of.quantile(q);
      worst = std::max(worst, std::fabs(cell.duration.quantile(q) - truth) / truth);
    }
  }
  // Days answer for a range of more than three days, where they are folded: scale 7 here.
  bench.expect(worst <= Sketch::relative_error(7) * 1.0001, "quantiles");
  std::printf("p1, p50, p95, p99 of each kernel and shape: worst error %.3f %% (sketch: %.3f %%)\n",
              100 * worst, 100 * Sketch::relative_error(7));
  const double begin = now_s();
  if (const Status status = bench.store->compact(); !status.is_ok()) fail(status);
  std::printf("compact: %.1f s\n", now_s() - begin);
  Filter first;
  first[Dimension::kKernel] = empty_row(0, 0, 0).kernel;
  std::size_t compared = 0;
  const auto compare = [&](Step step, const std::map<std::int64_t, Sketch>& direct, int scale) {
    const std::vector<Cell> cells = bench.store->cells(first, {}, step).value();
    bench.expect(cells.size() == direct.size(), "the number of steps");
    auto at = direct.begin();
    for (const Cell& cell : cells) {
      const Sketch& of = (at++)->second;
      bench.expect(cell.duration.scale() == scale && of.scale() == scale &&
                       cell.duration.first_bucket() == of.first_bucket() &&
                       cell.duration.buckets() == of.buckets() &&
                       cell.duration.total_ns() == of.total_ns(),
                   fmt::format("the direct sketch at scale {}", scale));
      compared += of.buckets().size();
    }
  };
  compare(Step::kDay, days, 6);
  compare(Step::kMonth, months, 5);
  std::printf("days and months equal direct sketches: %s (%zu buckets)\n",
              bench.right ? "yes" : "NO", compared);
  const std::uint64_t bytes = bench.bytes();
  const StoreCheck check = bench.store->check().value();
  const auto per = [](double total, std::uint64_t number) {
    return total / static_cast<double>(std::max<std::uint64_t>(number, 1));
  };
  std::printf(
      "a batch of %.0f rows: %.0f bytes sent; generating %.0f s; ingest %.1f s: %.0f batches/s, "
      "%.0f rows/s\n",
      per(static_cast<double>(bench.rows), bench.batches),
      per(static_cast<double>(bench.encoded_bytes), bench.batches), generate_s, bench.ingest_s,
      static_cast<double>(bench.batches) / bench.ingest_s,
      static_cast<double>(bench.rows) / bench.ingest_s);
  std::printf("on disk: %.1f MB; %.1f bytes a row of hours (%llu), %.2f a launch, %.0f a batch\n",
              static_cast<double>(bytes) / 1e6, per(static_cast<double>(bytes), check.hour_rows),
              static_cast<unsigned long long>(check.hour_rows),
              static_cast<double>(bytes) / static_cast<double>(n),
              per(static_cast<double>(bytes), bench.batches));
}

// Of this thread: what others of the machine take is not in it.
double processor_s() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Times {
  std::vector<double> ms, processor_ms;
  static double at(std::vector<double>& times, double q) {
    std::sort(times.begin(), times.end());
    return times.empty()
               ? 0
               : times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))];
  }
};

// Part 2: 100 nodes x 1,000 series in one hour; batches of 200 rows arrive at 50 a second.
void queries(Bench& bench, double seconds) {
  const std::int64_t hour_ns = kFirstDayNs + 10 * kDayNs;
  std::vector<std::uint64_t> sequence(kNodes, 1'000'000);
  Xorshift random{1234567};
  const auto batch_of = [&](int node, int from, int to) {
    Batch batch = empty_batch(node, ++sequence[static_cast<std::size_t>(node)], hour_ns, 3);
    for (int series = from; series < to; ++series) {
      BatchRow row = empty_row(hour_ns, series % 200, series / 200);
      for (int i = 0; i < 20; ++i)
        row.duration.add(std::floor(1000.0 * (1 + series % 200) *
                                    (1 + 0.1 * static_cast<double>(random.next() % 1000) / 1000)));
      row.recorded = 20;
      batch.rows.push_back(std::move(row));
    }
    return batch;
  };
  for (int node = 0; node < kNodes; ++node) bench.send(batch_of(node, 0, 1000));
  bench.flush();
  const std::unique_ptr<Reader> reader = bench.store->reader().value();
  std::atomic<bool> stop{false};
  std::map<std::string, Times> times;
  std::thread asking([&] {
    Filter all;
    all.begin_ns = hour_ns, all.end_ns = hour_ns + kHourNs;
    const auto timed = [&](const char* name, auto ask) {
      const double begin = now_s(), processor = processor_s();
      if (const Status status = ask(); !status.is_ok()) fail(status);
      times[name].ms.push_back((now_s() - begin) * 1e3);
      times[name].processor_ms.push_back((processor_s() - processor) * 1e3);
    };
    timed("(first)", [&] { return reader->top(all, 20).status(); });
    while (!stop) {
      timed("top 20", [&] { return reader->top(all, 20).status(); });
      Filter model = all;
      model[Dimension::kModel] = "NVIDIA H100";
      timed("top 20 of a model", [&] { return reader->top(model, 20).status(); });
      Filter build = all;
      build[Dimension::kBuild] = "7e099f8c";
      build[Dimension::kRole] = "attention";
      timed("top 20 of a build and role", [&] { return reader->top(build, 20).status(); });
      Filter kernel = all;
      kernel[Dimension::kKernel] = empty_row(0, 17, 0).kernel;
      timed("history of a kernel by build", [&] {
        return reader->cells(kernel, {Dimension::kBuild, Dimension::kDriver}, Step::kHour).status();
      });
      timed("a kernel by GPU", [&] { return reader->cells(kernel, {Dimension::kGpu}).status(); });
      timed("coverage", [&] { return reader->coverage(all, Step::kHour).status(); });
    }
  });
  const double begin = now_s();
  std::uint64_t arrived = 0;
  while (now_s() - begin < seconds) {
    for (int i = 0; i < 25; ++i, ++arrived) {
      const int from = static_cast<int>(random.next() % 5) * 200;
      bench.send(batch_of(static_cast<int>(arrived % kNodes), from, from + 200));
    }
    bench.flush();
    const double wait = begin + static_cast<double>(arrived) / 50 - now_s();
    if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
  }
  const double took = now_s() - begin;
  stop = true;
  asking.join();
  std::printf(
      "\n100,000 groups, %.0f batches/s of 200 rows arriving; ms:\n\n"
      "| question | times | p50 | p95 | p99 | processor: p50 | p95 "
      "|\n|---|--:|--:|--:|--:|--:|--:|\n",
      static_cast<double>(arrived) / took);
  for (auto& [name, of] : times)
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name.c_str(), of.ms.size(),
                Times::at(of.ms, 0.5), Times::at(of.ms, 0.95), Times::at(of.ms, 0.99),
                Times::at(of.processor_ms, 0.5), Times::at(of.processor_ms, 0.95));
}

}  // namespace

int main(int argc, char** argv) {
  double launches = 300e6, seconds = 20;
  std::string target;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--launches=", 11) == 0)
      launches = 1e6 * std::atof(argv[i] + 11);
    else if (std::strncmp(argv[i], "--queries=", 10) == 0)
      seconds = std::atof(argv[i] + 10);
    else
      target = argv[i];
  }
  if (target.empty()) {
    std::fprintf(stderr, "usage: bench_store TARGET [--launches=MILLIONS] [--queries=SECONDS]\n");
    return 2;
  }
  if (const Status status = init_store(target); !status.is_ok()) fail(status);
  Bench bench;
  Result<std::unique_ptr<Store>> store = open_store(target);
  if (!store.is_ok()) fail(store.status());
  bench.store = std::move(*store);
  if (launches > 0) totals(bench, launches);
  if (seconds > 0) queries(bench, seconds);
  return bench.right ? 0 : 1;
}
