// SPDX-License-Identifier: Apache-2.0
// bench_rank_launches [LAUNCHES [FOLDER]]: how long it takes from launch records to the top 20.
//
// Writes LAUNCHES (default 30 M; the budget is for 300000000) synthetic launches of 5,000 kernels
// and launch shapes, with Zipf's skew, on 4 streams of 8 processes, into a spool folder as the
// capture libraries do, but without their sketches: the harder case, in which every record has to
// be decoded. Then ranks with the reader that `purlin report` uses, and checks counts, totals and
// 95th percentiles of the top 20 against the generator's own. Peers, on the first 2 M of the same
// launches as text: awk and SQLite, which give count and total only. Results: one JSON document.
#include "base/files.h"
#include "base/json/json.h"
#include "base/os/process.h"
#include "base/random.h"
#include "base/text.h"
#include "model/document.h"
#include "profile/format/file.h"
#include "profile/format/stream.h"
#include "profile/format/wire.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace purlin;
using namespace purlin::profile;

namespace {

constexpr std::size_t kRows = 5'000, kRowsOfAKernel = 10, kFiles = 8, kTop = 20;
constexpr std::size_t kWatched = 60;  // rows whose every duration is counted, the likely top 20
constexpr std::size_t kPerPeriod = 1 << 16, kPeerLaunches = 2'000'000;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_mib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string name_of_row(std::size_t row) {
  return fmt::format("_ZN5bench6kernelILi{}EEEvPf", row / kRowsOfAKernel);
}

// What the generator knows of a row.
struct Truth {
  std::uint64_t count = 0, total_ns = 0;
  double p95_ns = 0;  // of watched rows
};

// Draws rows by Zipf's law in constant time (Walker's alias method), and durations around each
// row's own: a few per cent of spread, and one launch in 64 up to twice as long.
class Workload {
 public:
  Workload() : rng_(42), threshold_(kRows), alias_(kRows), usual_ns_(kRows), weight_(kRows) {
    for (std::size_t i = 0; i < kRows; ++i) {
      weight_[i] = 1 / std::pow(static_cast<double>(i + 1), 1.05);
      usual_ns_[i] = static_cast<std::uint32_t>(2'000 * std::exp(rng_.uniform() * 4.5));
    }
    const double sum = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    std::vector<double> share(kRows);
    std::vector<std::size_t> small, large;
    for (std::size_t i = 0; i < kRows; ++i) {
      share[i] = weight_[i] / sum * kRows;
      (share[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const std::size_t low = small.back(), high = large.back();
      small.pop_back();
      threshold_[low] = share[low];
      alias_[low] = static_cast<std::uint32_t>(high);
      share[high] -= 1 - share[low];
      if (share[high] >= 1) continue;
      large.pop_back();
      small.push_back(high);
    }
    for (const auto* rest : {&small, &large})
      for (const std::size_t i : *rest) threshold_[i] = 1;
  }

  wire::Launch next() {
    wire::Launch launch;
    const std::uint64_t bits = rng_.next();
    const std::size_t slot = bits % kRows;
    const double toss = static_cast<double>(bits >> 40) * 0x1p-24;
    launch.kernel = toss < threshold_[slot] ? static_cast<std::uint32_t>(slot) : alias_[slot];
    const std::uint64_t more = rng_.next();
    const std::uint64_t usual = usual_ns_[launch.kernel];
    const std::uint64_t spread = usual >> ((more & 63) == 0 ? 0 : 4);
    launch.duration_ns = static_cast<std::int64_t>(usual + ((more >> 32) * spread >> 32));
    launch.stream = (more >> 8 & 15) == 0 ? 7 + (more >> 12 & 3) : 7;
    now_ns_ += 500 + static_cast<std::int64_t>(more >> 16 & 4095);
    launch.start_ns = now_ns_;
    now_ns_ += launch.duration_ns;
    return launch;
  }

  // The rows that most time is expected of.
  std::vector<std::size_t> heaviest(std::size_t count) const {
    std::vector<std::size_t> rows(kRows);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
      return weight_[a] * usual_ns_[a] > weight_[b] * usual_ns_[b];
    });
    rows.resize(count);
    return rows;
  }
  std::uint32_t most_ns(std::size_t row) const { return 2 * usual_ns_[row] + 1; }

 private:
  Random rng_;
  std::vector<double> threshold_;
  std::vector<std::uint32_t> alias_, usual_ns_;
  std::vector<double> weight_;
  std::int64_t now_ns_ = 1'700'000'000'000'000'000;
};

Status write_spool(const std::string& folder, std::uint64_t launches) {
  Workload workload;
  std::vector<Truth> truth(kRows);
  std::vector<std::vector<std::uint32_t>> seen(kRows);  // of watched rows: launches by duration
  for (const std::size_t row : workload.heaviest(kWatched)) seen[row].resize(workload.most_ns(row));
  PURLIN_ASSIGN(AtomicFile csv, AtomicFile::create(join_path(folder, "peer.csv")));
  std::uint64_t text_left = std::min<std::uint64_t>(launches, kPeerLaunches);

  for (std::size_t file = 0; file < kFiles; ++file) {
    PURLIN_ASSIGN(AtomicFile out,
                  AtomicFile::create(join_path(folder, fmt::format("cuda-{}.plprof", file))));
    std::string bytes, text;
    wire::append_header(bytes);
    const Json meta = Json::object(
        {{"schema", "purlin.profile/1"},
         {"processes", Json::array({Json::object({{"pid", file + 100}, {"layer", "cuda"}})})},
         {"environment",
          Json::object({{"devices", Json::array({Json::object(
                                        {{"id", "cuda:0"}, {"name", "synthetic"}})})}})}});
    wire::append_chunk(bytes, wire::ChunkType::kMeta, meta.dump());
    wire::Encoder strings, kernels;
    strings.varint(kRows / kRowsOfAKernel);
    kernels.varint(kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      if (row % kRowsOfAKernel == 0) strings.text(name_of_row(row));
      wire::KernelDefinition definition;
      definition.name = static_cast<std::uint32_t>(row / kRowsOfAKernel);
      definition.grid = {1 + static_cast<std::uint32_t>(row % kRowsOfAKernel), 1, 1};
      definition.block = {256, 1, 1};
      definition.cluster = {1, 1, 1};
      wire::encode(kernels, definition);
    }
    wire::append_chunk(bytes, wire::ChunkType::kStrings, strings.bytes());
    wire::append_chunk(bytes, wire::ChunkType::kKernels, kernels.bytes());

    wire::LaunchEncoder encoder;
    std::uint64_t written = 0, sequence = 0;
    std::uint64_t left = launches / kFiles + (file < launches % kFiles ? 1 : 0);
    while (left > 0) {
      const std::uint64_t now = std::min<std::uint64_t>(left, kPerPeriod);
      left -= now;
      for (std::uint64_t i = 0; i < now; ++i) {
        const wire::Launch launch = workload.next();
        encoder.add(launch.kernel, launch.stream, launch.start_ns, launch.duration_ns);
        Truth& row = truth[launch.kernel];
        ++row.count;
        row.total_ns += static_cast<std::uint64_t>(launch.duration_ns);
        auto& watched = seen[launch.kernel];
        if (!watched.empty()) ++watched[static_cast<std::size_t>(launch.duration_ns)];
        if (text_left == 0) continue;
        --text_left;
        text += fmt::format("{},{}\n", launch.kernel, launch.duration_ns);
      }
      wire::append_chunk(bytes, wire::ChunkType::kLaunches, encoder.finish(0));
      wire::append_chunk(
          bytes, wire::ChunkType::kSeal,
          wire::encode(wire::Seal{++sequence, 0, written + bytes.size(), left == 0}));
      written += bytes.size();
      PURLIN_TRY(out.append(std::exchange(bytes, {})));
      PURLIN_TRY(csv.append(std::exchange(text, {})));
    }
    PURLIN_TRY(out.commit());
  }
  PURLIN_TRY(csv.commit());
  for (std::size_t row = 0; row < kRows; ++row) {
    if (seen[row].empty()) continue;
    const double rank = 0.95 * static_cast<double>(truth[row].count);
    double below = 0;
    for (std::size_t ns = 0; ns < seen[row].size(); ++ns) {
      below += seen[row][ns];
      if (below < rank) continue;
      truth[row].p95_ns = static_cast<double>(ns);
      break;
    }
  }
  return write_atomic(join_path(folder, "truth"),
                      {reinterpret_cast<const char*>(truth.data()), kRows * sizeof(Truth)});
}

// The generator runs in a process of its own, so that its memory is not counted.
bool generate(const std::string& folder, std::uint64_t launches) {
  const pid_t child = fork();
  if (child == 0) {
    const Status status = write_spool(folder, launches);
    if (!status.is_ok()) fmt::print(stderr, "{}\n", status.message());
    _exit(status.is_ok() ? 0 : 1);
  }
  int code = 0;
  return child > 0 && waitpid(child, &code, 0) == child && code == 0;
}

std::size_t row_of(const KernelRow& row) {
  const char* digits = std::strstr(row.name.c_str(), "ILi");
  const auto kernel = static_cast<std::size_t>(std::atoll(digits + 3));
  return kernel * kRowsOfAKernel + row.launch.grid[0] - 1;
}

// A peer's seconds for the text of the same launches; < 0 where it is not installed.
double peer(const std::string& command) {
  const double begin = now_s();
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0 ? now_s() - begin : -1;
}

int run(std::uint64_t launches, const std::string& folder) {
  fmt::print(stderr, "writing {} launches to {}\n", launches, folder);
  if (!generate(folder, launches)) return 2;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < kFiles; ++i)
    bytes += file_size(join_path(folder, fmt::format("cuda-{}.plprof", i))).value_or(0);

  const double before_mib = peak_mib();
  const double begin = now_s();
  ReadOptions options;
  options.max_timeline_events = 0;
  Result<Profile> profile = read_spool(folder, options);
  if (!profile.is_ok()) return fmt::print(stderr, "{}\n", profile.status().message()), 2;
  std::vector<KernelRow>& rows = profile->kernels;
  std::partial_sort(rows.begin(), rows.begin() + kTop, rows.end(),
                    [](const KernelRow& a, const KernelRow& b) {
                      return a.duration.total_ns() > b.duration.total_ns();
                    });
  const double seconds = now_s() - begin;
  const double peak = peak_mib();

  // Every row's count and total, and the top rows' ranking and 95th percentiles.
  const Result<std::string> stored = read_file(join_path(folder, "truth"));
  if (!stored.is_ok()) return 2;
  std::vector<Truth> truth(kRows);
  std::memcpy(truth.data(), stored->data(), kRows * sizeof(Truth));
  std::size_t wrong = 0;
  double worst_p95 = 0;
  for (const KernelRow& row : rows) {
    const Truth& expected = truth[row_of(row)];
    wrong += row.duration.count() != static_cast<double>(expected.count) ||
                     row.duration.total_ns() != static_cast<double>(expected.total_ns)
                 ? 1
                 : 0;
  }
  std::vector<std::uint64_t> totals;
  for (const Truth& row : truth) totals.push_back(row.total_ns);
  std::sort(totals.rbegin(), totals.rend());
  for (std::size_t i = 0; i < kTop; ++i) {
    const Truth& expected = truth[row_of(rows[i])];
    wrong += expected.total_ns != totals[i] || expected.p95_ns == 0 ? 1 : 0;
    const double p95 = rows[i].duration.quantile(0.95);
    worst_p95 = std::max(worst_p95, std::abs(p95 / expected.p95_ns - 1));
  }
  if (worst_p95 > Sketch::kRelativeError * 1.0001) ++wrong;

  const std::string csv = join_path(folder, "peer.csv");
  const double text_launches =
      static_cast<double>(std::min<std::uint64_t>(launches, kPeerLaunches));
  const double awk =
      peer("awk -F, '{n[$1]++; t[$1]+=$2} END {for (k in n) print t[k], n[k], k}' '" + csv +
           "' | sort -rn | head -20");
  const double sqlite =
      peer("python3 -c \"import sqlite3,csv,time;d=sqlite3.connect('" + csv +
           ".db');d.execute('create table l(k int,t int)');"
           "d.executemany('insert into l values(?,?)',csv.reader(open('" +
           csv + "')));d.commit()\"") < 0
          ? -1
          : peer(
                "python3 -c \"import sqlite3;print(sqlite3.connect('" + csv +
                ".db').execute('select k,count(*),sum(t) s from l group by k order by s desc limit "
                "20').fetchall())\"");

  double load[1] = {0};
  (void)getloadavg(load, 1);
  const double rate = static_cast<double>(launches) / seconds;
  Json document = new_document("purlin.bench.rank_launches/1", host_environment());
  document.set("launches", launches);
  document.set("rows", kRows);
  document.set("files", kFiles);
  document.set("bytes_per_launch", static_cast<double>(bytes) / static_cast<double>(launches));
  document.set("workers", default_workers());
  document.set("load_average", load[0]);
  document.set("seconds", seconds);
  document.set("launches_per_s", rate);
  document.set("peak_mib", peak);
  document.set("peak_mib_before", before_mib);
  document.set("rows_wrong", wrong);
  document.set("worst_p95_error", worst_p95);
  document.set("budget", Json::object({{"seconds_for_300M", 30}, {"peak_mib", 1024}}));
  document.set("seconds_for_300M", 3e8 / rate);
  document.set(
      "peers",
      Json::object({{"launches", text_launches},
                    {"awk_launches_per_s", awk > 0 ? text_launches / awk : -1},
                    {"sqlite_group_by_launches_per_s", sqlite > 0 ? text_launches / sqlite : -1},
                    {"ratio_to_awk", awk > 0 ? rate * awk / text_launches : -1},
                    {"ratio_to_sqlite", sqlite > 0 ? rate * sqlite / text_launches : -1}}));
  fmt::print("{}\n", document.dump(2));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t launches =
      argc > 1 ? static_cast<std::uint64_t>(parse_int(argv[1]).value_or(0)) : 30'000'000;
  if (launches == 0) return fmt::print(stderr, "bench_rank_launches [LAUNCHES [FOLDER]]\n"), 2;
  if (argc > 2) return run(launches, argv[2]);
  const Result<std::string> folder = make_temporary_directory("purlin-rank");
  if (!folder.is_ok()) return fmt::print(stderr, "{}\n", folder.status().message()), 2;
  const int code = run(launches, *folder);
  (void)remove_tree(*folder);
  return code;
}
