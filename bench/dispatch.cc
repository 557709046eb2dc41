// SPDX-License-Identifier: Apache-2.0
// bench_dispatch: what a dispatch costs the CPU beyond the driver's own launch.
//
// The device is a fake whose launch is a counter, so that all that is left is ours; beside it the
// same counter called through the seam alone ("bare"), and on one shape and on many, with shadow
// timing off and on (one in 1,000), from one thread and from two. Budget: 1 us. And a lookup with
// and without its recording. Prints JSON.
#include "base/files.h"
#include "base/random.h"
#include "model/document.h"
#include "runtime/testing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

using namespace purlin;
using namespace purlin::runtime;

namespace {

constexpr int kBatch = 16, kBatches = 40'000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds of one call, by batches: {p50, p99, p99.9}.
template <class Call>
Json time_calls(int threads, Call call) {
  std::vector<std::vector<double>> of_thread(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      auto& ns = of_thread[static_cast<std::size_t>(t)];
      ns.reserve(kBatches);
      for (int i = 0; i < kBatches; ++i) {
        std::uint64_t picks[kBatch];
        for (std::uint64_t& pick : picks) pick = random.next();
        const std::int64_t begin = now_ns();
        for (const std::uint64_t pick : picks) call(pick);
        ns.push_back(static_cast<double>(now_ns() - begin) / kBatch);
      }
    });
  for (std::thread& thread : running) thread.join();
  std::vector<double> all;
  for (const auto& ns : of_thread) all.insert(all.end(), ns.begin(), ns.end());
  std::sort(all.begin(), all.end());
  const auto at = [&](double q) {
    return all[static_cast<std::size_t>(q * static_cast<double>(all.size() - 1))];
  };
  return Json::object({{"p50_ns", at(0.5)}, {"p99_ns", at(0.99)}, {"p99_9_ns", at(0.999)}});
}

}  // namespace

int main() {
  const std::string folder = make_temporary_directory("purlin-bench").value();
  const KernelSpec spec = sample_spec();
  {
    cache::Store store = cache::Store::open(folder).value();
    for (std::int64_t n = 1; n <= 65'536; n *= 2)
      if (!store.put(sample_winner(spec, n, sample_config(64, 1))).is_ok()) return 2;
  }
  int x = 0, out = 0, n = 0;
  void *x_handle = &x, *out_handle = &out;
  void* values[] = {&x_handle, &out_handle, &n};
  const gpu::AppLaunch launch{nullptr, values, 3};

  Json results = Json::array();
  for (const int shadow : {0, 1000}) {
    auto app_context = std::make_unique<gpu::FakeAppContext>();
    gpu::FakeAppContext& device = *app_context;
    DispatcherOptions options;
    options.binaries = folder + "/binaries";
    options.shadow_every = shadow;
    options.seed = 1;
    auto session = CacheSession::open(folder.c_str()).value();
    auto dispatcher =
        Dispatcher::open(session, spec, std::move(app_context), std::move(options)).value();
    const std::int64_t one = 1024;
    if (!dispatcher->prepare(&one).is_ok()) return 2;
    const Choice choice = dispatcher->choice(&one);
    const gpu::AppWork work{choice.variant->kernel.get(), &choice.shape};
    for (const int threads : {1, 2}) {
      for (const std::int64_t shapes : {std::int64_t{1}, std::int64_t{10'000}}) {
        for (std::int64_t i = 1; i <= shapes; ++i)
          if (!dispatcher->prepare(&i).is_ok()) return 2;
        Json result =
            Json::object({{"shadow_one_in", shadow}, {"threads", threads}, {"shapes", shapes}});
        result.set("bare",
                   time_calls(threads, [&](std::uint64_t) { device.launch(work, launch); }));
        result.set("dispatch", time_calls(threads, [&](std::uint64_t pick) {
                     const std::int64_t extent =
                         1 + static_cast<std::int64_t>(pick % static_cast<std::uint64_t>(shapes));
                     if (!dispatcher->dispatch(&extent, launch).is_ok()) std::abort();
                   }));
        result.set("over_bare_p50_ns",
                   result["dispatch"]["p50_ns"].as_double() - result["bare"]["p50_ns"].as_double());
        results.push(std::move(result));
      }
    }
  }
  // purlin_lookup as programs call it: the index with its recording; every shape is a hit.
  auto session = CacheSession::open(folder.c_str()).value();
  OpOptions asked;
  asked.wanted = sample_winner(spec, 1024, sample_config(64, 1)).key;
  asked.dimensions = {"N"};
  Op op(session, asked);
  Json lookups = Json::array();
  for (const int threads : {1, 2}) {
    const auto call = [&](bool recorded) {
      return time_calls(threads, [&op, recorded](std::uint64_t pick) {
        const std::int64_t extent = 1 + static_cast<std::int64_t>(pick % 65'536);
        const auto hit = recorded ? op.find(&extent) : op.peek(&extent);
        if (hit.entry == nullptr) std::abort();
      });
    };
    lookups.push(Json::object(
        {{"threads", threads}, {"index_alone", call(false)}, {"recorded", call(true)}}));
  }
  Json document = new_document("purlin.bench-dispatch/1", host_environment());
  document.set("batch", kBatch);
  document.set("lookups", std::move(lookups));
  document.set("results", std::move(results));
  std::printf("%s\n", document.dump(1).c_str());
  return remove_tree(folder).is_ok() ? 0 : 2;
}
