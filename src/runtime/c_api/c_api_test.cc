// SPDX-License-Identifier: Apache-2.0
// The public interface, against stores written by the C++ side.
#include "base/files.h"
#include "base/json/json.h"
#include "cache/layers/layers.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <purlin/purlin.hpp>
#include <thread>

extern "C" int64_t lookup_bm_from_c(const char* directory, int64_t m, purlin_outcome* outcome);

namespace {

thread_local long allocations = 0;

}  // namespace

// Counts what this thread allocates, the library's part included: it brings its own C++ runtime,
// but no own malloc. The sanitizers have their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsAllocations = false;
#else
constexpr bool kCountsAllocations = true;
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
#endif

namespace purlin {
namespace {

using cache::sample_entry;
using cache::Store;
using cache::TemporaryDirectory;

purlin_device h200() {
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  device.model = "NVIDIA H200";
  device.toolkit = "NVRTC 13.0";
  device.driver = "580.95";
  return device;
}

const std::vector<std::string> kDimensions = {"M", "N", "K"};

TEST(CApi, FromC99) {
  TemporaryDirectory folder;
  purlin_outcome outcome = PURLIN_EXACT;
  EXPECT_EQ(lookup_bm_from_c(folder.path().c_str(), 1024, &outcome), 16);
  EXPECT_EQ(outcome, PURLIN_MISS);
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry(1024, 64)).is_ok());
  EXPECT_EQ(lookup_bm_from_c(folder.path().c_str(), 1024, &outcome), 64);
  EXPECT_EQ(outcome, PURLIN_EXACT);
  EXPECT_EQ(lookup_bm_from_c(folder.path().c_str(), 1000, &outcome), 64);
  EXPECT_EQ(outcome, PURLIN_BUCKET);
  EXPECT_EQ(lookup_bm_from_c(folder.path().c_str(), 1025, &outcome), 16);
  EXPECT_EQ(outcome, PURLIN_MISS);
}

TEST(CApi, ReadsAnEntry) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  const Hit hit = op.find(1024, 1024, 512);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit.integer("BM", 0), 64);
  EXPECT_EQ(hit.integer("UNROLL", 7), 1);
  EXPECT_EQ(hit.real("ALPHA", 0), 0.5);
  EXPECT_EQ(hit.real("BM", 0), 64.0);
  EXPECT_STREQ(hit.text("LAYOUT", "?"), "nt");
  EXPECT_EQ(hit.integer("LAYOUT", -1), -1);
  EXPECT_EQ(hit.integer("ABSENT", -1), -1);
  EXPECT_STREQ(hit.text("BM", "?"), "?");
  EXPECT_STREQ(hit.options(), "-DBM=64 -DUNROLL=1 -DALPHA=0.5 -DLAYOUT=nt");
  EXPECT_EQ(hit.time_ms(), 0.25);
  EXPECT_EQ(hit.default_time_ms(), 0.75);
  EXPECT_TRUE(hit.verified());
  EXPECT_EQ(hit.id(), sample_entry().key.id());
  EXPECT_EQ(purlin_entry_parameter_count(hit.handle()), 4u);
  EXPECT_STREQ(purlin_entry_parameter_name(hit.handle(), 1), "UNROLL");
  EXPECT_EQ(purlin_entry_parameter_name(hit.handle(), 4), nullptr);
  EXPECT_EQ(purlin_entry_extent(hit.handle(), "K", 0), 512);
}

TEST(CApi, DimensionsInAnyOrder) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  Cache cache(folder.path());
  {
    const purlin::Op op = cache.op("gemm", {"K", "M", "N"}, h200());
    EXPECT_TRUE(op.find(512, 1000, 1024));
  }
  {
    const purlin::Op op = cache.op("gemm", {"M", "N"}, h200());
    EXPECT_FALSE(op.find(1024, 1024));
  }
  {
    const purlin::Op op = cache.op("gemm", {"M", "N", "L"}, h200());
    EXPECT_FALSE(op.find(1024, 1024, 512));
  }
}

TEST(CApi, WhatIsStatedMustMatch) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  Cache cache(folder.path());
  const auto found = [&](purlin_device device, const OpOptions& options = {}) {
    const purlin::Op op = cache.op("gemm", kDimensions, device, options);
    return op.find(1024, 1024, 512).outcome();
  };
  purlin_device device = h200();
  EXPECT_EQ(found(device), PURLIN_EXACT);
  device.driver = nullptr;
  EXPECT_EQ(found(device), PURLIN_EXACT);
  device.driver = "590.10";
  EXPECT_EQ(found(device), PURLIN_MISS);
  OpOptions transferred;
  transferred.allow_transferred = true;
  EXPECT_EQ(found(device, transferred), PURLIN_TRANSFERRED);
  device.arch = "sm_80";
  EXPECT_EQ(found(device, transferred), PURLIN_MISS);
  OpOptions other;
  other.source_hash = "else";
  EXPECT_EQ(found(h200(), other), PURLIN_MISS);
  other.source_hash = "0123ab";
  EXPECT_EQ(found(h200(), other), PURLIN_EXACT);
  other.dtype = "f16";
  EXPECT_EQ(found(h200(), other), PURLIN_MISS);
}

// A bucket's config is not valid at each of its shapes.
TEST(CApi, ServesABucketOnlyWhereItsConstraintsHold) {
  TemporaryDirectory folder;
  cache::Entry entry = sample_entry(1024, 64);
  entry.shape_constraints = {"M % (BM // 8) == 0 and ceil_div(M, BM) <= device_units"};
  entry.facts.set("device_units", 132);
  ASSERT_TRUE(Store::open(folder.path())->put(entry).is_ok());
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  EXPECT_EQ(op.find(1024, 1024, 512).outcome(), PURLIN_EXACT);
  EXPECT_EQ(op.find(1000, 1024, 512).outcome(), PURLIN_BUCKET);
  EXPECT_EQ(op.find(1001, 1024, 512).outcome(), PURLIN_MISS);
}

TEST(CApi, ReloadSeesWhatOthersStored) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  EXPECT_FALSE(op.find(1024, 1024, 512));
  ASSERT_TRUE(store.put(sample_entry(1024, 64)).is_ok());
  EXPECT_FALSE(op.find(1024, 1024, 512));
  cache.reload();
  const Hit before = op.find(1024, 1024, 512);
  EXPECT_EQ(before.integer("BM", 0), 64);
  ASSERT_TRUE(store.put(sample_entry(1024, 128)).is_ok());
  cache.reload();
  EXPECT_EQ(op.find(1024, 1024, 512).integer("BM", 0), 128);
  EXPECT_EQ(before.integer("BM", 0), 64);  // what was handed out stays
}

TEST(CApi, TheOpOutlivesItsCache) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  auto cache = std::make_unique<Cache>(folder.path());
  const Op op = cache->op("gemm", kDimensions, h200());
  cache.reset();
  EXPECT_TRUE(op.find(1024, 1024, 512));
}

TEST(CApi, DisabledIsAlwaysAMiss) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  ::setenv("PURLIN_DISABLE", "1", 1);
  Cache cache(folder.path());
  ::unsetenv("PURLIN_DISABLE");
  {
    const purlin::Op op = cache.op("gemm", kDimensions, h200());
    EXPECT_FALSE(op.find(1024, 1024, 512));
  }
  cache.reload();
}

TEST(CApi, TheLayoutIsStatedToo) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  Cache cache(folder.path());
  const auto found = [&](const std::string& layout) {
    OpOptions options;
    options.layout = layout;
    const purlin::Op op = cache.op("gemm", kDimensions, h200(), options);
    return op.find(1024, 1024, 512).outcome();
  };
  EXPECT_EQ(found(""), PURLIN_EXACT);
  EXPECT_EQ(found("A=row,B=row,C=row"), PURLIN_EXACT);
  EXPECT_EQ(found("A=column,B=row,C=row"), PURLIN_MISS);
  // A program built against a header without it.
  const char* names[] = {"M", "N", "K"};
  const purlin_device device = h200();
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.size = offsetof(purlin_op_desc, layout);
  desc.op = "gemm", desc.device = &device, desc.dimensions = names, desc.dimension_count = 3;
  desc.layout = reinterpret_cast<const char*>(1);  // not read
  purlin_op* op = nullptr;
  ASSERT_EQ(purlin_op_open(cache.handle(), &desc, &op), PURLIN_OK);
  purlin_op_close(op);
}

TEST(CApi, ReadsThroughLayersAndReloadsEach) {
  TemporaryDirectory folder;
  const std::string mine = folder.file("mine"), fleet = folder.file("fleet");
  ::setenv("PURLIN_CACHE_LAYERS", fleet.c_str(), 1);
  Cache cache(mine);
  ::unsetenv("PURLIN_CACHE_LAYERS");
  const purlin::Op op = cache.op("gemm", kDimensions, h200());
  EXPECT_FALSE(op.find(1024, 1024, 512));
  const purlin::cache::Put below = *Store::open(fleet)->put(sample_entry(1024, 32));
  cache.reload();
  EXPECT_EQ(op.find(1024, 1024, 512).integer("BM", 0), 32);
  EXPECT_EQ(op.find(1024, 1024, 512).layer(), fleet);
  EXPECT_EQ(cache.layers(), (std::vector<std::string>{mine, fleet}));
  purlin::cache::Entry upper = sample_entry(1024, 64);
  upper.time_ms *= 2;
  ASSERT_TRUE(Store::open(mine)->put(upper).is_ok());
  cache.reload();
  EXPECT_EQ(op.find(1000, 1024, 512).integer("BM", 0), 64);  // of equals the upper layer's
  // Withdrawn above, it is served from no layer.
  Cache only(std::vector<std::string>{folder.file("empty"), fleet});
  const purlin::Op other = only.op("gemm", kDimensions, h200());
  EXPECT_TRUE(other.find(1024, 1024, 512));
  purlin::cache::Layers layers = *purlin::cache::Layers::open(folder.file("empty"), {fleet});
  ASSERT_TRUE(layers
                  .set_status(purlin::cache::new_status(
                      below.record, purlin::cache::EntryState::kQuarantined, "wrong"))
                  .is_ok());
  only.reload();
  EXPECT_FALSE(other.find(1024, 1024, 512));
}

TEST(CApi, WhatNoLayerTakesIsKeptForTheProcess) {
  TemporaryDirectory folder;
  ASSERT_TRUE(write_atomic(folder.file("plain"), "no folder").is_ok());
  std::string own;
  {
    purlin_device bare = PURLIN_DEVICE_INIT;
    bare.backend = "cuda", bare.arch = "sm_90";
    Cache cache(folder.file("plain/below"));
    const purlin::Op op = cache.op("gemm", kDimensions, bare);
    cache.put(R"({"key": {"op": "gemm", "kernel": "gemm", "backend": "cuda", "arch": "sm_90"},
                  "config": {"BM": 8}, "problem": {"M": 7, "N": 7, "K": 7}, "time_ms": 1})");
    EXPECT_EQ(op.find(7, 7, 7).integer("BM", 0), 8);
    ASSERT_EQ(cache.layers().size(), 2u);
    own = cache.layers().front();
    EXPECT_TRUE(purlin::is_directory(own));
  }
  EXPECT_FALSE(purlin::file_exists(own));
}

TEST(CApi, DefaultDirectoryIsPurlinCache) {
  TemporaryDirectory folder;
  ::setenv("PURLIN_CACHE", folder.path().c_str(), 1);
  EXPECT_EQ(Cache().directory(), folder.path());
  ::unsetenv("PURLIN_CACHE");
}

TEST(CApi, WrongCallsSayWhatIsWrong) {
  EXPECT_EQ(purlin_cache_open(nullptr, nullptr), PURLIN_INVALID);
  EXPECT_STRNE(purlin_last_error(), "");
  TemporaryDirectory folder;
  ASSERT_TRUE(write_atomic(folder.file("entries.log"), "no cache at all, but a text").is_ok());
  purlin_cache* none = nullptr;
  EXPECT_EQ(purlin_cache_open(folder.path().c_str(), &none), PURLIN_CORRUPT);
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(std::string(purlin_last_error()).find("entries.log"), std::string::npos);

  TemporaryDirectory empty;
  Cache cache(empty.path());
  purlin_op* op = nullptr;
  purlin_op_desc desc{};
  EXPECT_EQ(purlin_op_open(cache.handle(), &desc, &op), PURLIN_INVALID);
  EXPECT_NE(std::string(purlin_last_error()).find("PURLIN_OP_DESC_INIT"), std::string::npos);
  purlin_device nowhere = PURLIN_DEVICE_INIT;
  EXPECT_THROW(cache.op("gemm", kDimensions, nowhere), Error);
  EXPECT_THROW(cache.op("", kDimensions, h200()), Error);
  EXPECT_THROW(cache.device("cudda:0"), Error);
  EXPECT_THROW(cache.op("gemm", std::vector<std::string>(9, "M"), h200()), Error);
}

TEST(CApi, NullIsAMiss) {
  const std::int64_t extents[] = {1};
  const purlin_entry* entry = nullptr;
  EXPECT_EQ(purlin_lookup(nullptr, extents, 1, &entry), PURLIN_MISS);
  EXPECT_EQ(purlin_entry_int(nullptr, "BM", 5), 5);
  EXPECT_STREQ(purlin_entry_options(nullptr), "");
  EXPECT_EQ(purlin_entry_parameter_name(nullptr, 0), nullptr);
  purlin_op_close(nullptr);
  purlin_cache_close(nullptr);

  TemporaryDirectory folder;
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  EXPECT_EQ(purlin_lookup(op.handle(), extents, 1, &entry), PURLIN_MISS);
  EXPECT_EQ(op.find(0, -1, 5).outcome(), PURLIN_MISS);
  const std::int64_t shape[] = {0, -1, INT64_MAX};
  purlin_prefetch(nullptr, shape, 3);
  purlin_prefetch(op.handle(), nullptr, 3);
  purlin_prefetch(op.handle(), shape, 2);  // an invalid shape is skipped
  op.prefetch(shape, 3);
}

TEST(CApi, LaunchesByKeptAnswersReachTheWorkList) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry(1024)).is_ok());
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  const std::int64_t hit[] = {1024, 1024, 512}, missed[] = {5000, 1024, 512};
  op.count(hit, 3, 1000);
  op.count(hit, 3, 234);
  op.count(missed, 3, 77);
  op.count(missed, 3, 0);
  op.count(missed, 2, 9);  // no shape of the op
  purlin_op_count(op.handle(), nullptr, 3, 9);
  purlin_op_count(nullptr, hit, 3, 9);
  ASSERT_EQ(purlin_cache_flush(cache.handle()), PURLIN_OK);
  const Json list = Json::parse(*read_file(folder.path() + "/worklist.json")).value();
  std::int64_t hits = 0, misses = 0;
  for (const Json& row : list["rows"].items()) {
    hits += row["hits"].as_int();
    misses += row["misses"].as_int();
  }
  EXPECT_EQ(hits, 1234);
  EXPECT_EQ(misses, 77);
}

TEST(CApi, LookupsDoNotAllocate) {
  TemporaryDirectory folder;
  {
    Store store = *Store::open(folder.path());
    for (int m = 1; m <= 4096; m *= 2) ASSERT_TRUE(store.put(sample_entry(m)).is_ok());
  }
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  const long before = allocations;
  std::int64_t sum = 0;
  for (int m = 1; m <= 5000; ++m) {
    const Hit hit = op.find(m, 1024, 512);
    sum += hit.integer("BM", 1) + (hit.options()[0] == '-');
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(sum, 4096 * 65 + 904);
  if (kCountsAllocations) {
    EXPECT_GT(before, 0);
  }
}

// Lookups while another thread reloads: each sees a whole entry, and never a lost one.
TEST(CApi, LookupsGoOnDuringReloads) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(sample_entry(1, 1)).is_ok());
  Cache cache(folder.path());
  const Op op = cache.op("gemm", kDimensions, h200());
  std::atomic<bool> stop{false};
  std::atomic<long> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      std::int64_t newest = 0;
      while (!stop.load()) {
        const std::int64_t bm = op.find(1, 1024, 512).integer("BM", -1);
        if (bm < newest) ++wrong;
        newest = bm;
        for (int shift = 1; shift < 40; ++shift) {
          const Hit hit = op.find(std::int64_t{1} << shift, 1024, 512);
          if (hit && hit.integer("BM", -1) != shift) ++wrong;
        }
      }
    });
  for (int shift = 1; shift < 40; ++shift) {
    ASSERT_TRUE(store.put(sample_entry(std::int64_t{1} << shift, shift)).is_ok());
    cache::Entry faster = sample_entry(1, shift + 1);  // each displaces the one before
    faster.time_ms = 0.2 / shift;
    ASSERT_TRUE(store.put(faster).is_ok());
    cache.reload();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(op.find(1, 1024, 512).integer("BM", -1), 40);
  EXPECT_EQ(op.find(std::int64_t{1} << 39, 1024, 512).integer("BM", -1), 39);
}

}  // namespace
TEST(CApi, ADemotedEntryIsServedNoLonger) {
  const TemporaryDirectory directory;
  purlin::Cache cache(directory.path());
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  const char* dimensions[] = {"N"};
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.op = "scale";
  desc.dimensions = dimensions;
  desc.dimension_count = 1;
  desc.device = &device;
  ASSERT_EQ(purlin_cache_put(cache.handle(),
                             R"({"key": {"op": "scale", "kernel": "scale", "backend": "cuda",
                                 "arch": "sm_90"}, "config": {"BLOCK": 64}, "problem": {"N": 4},
                                 "time_ms": 0.5})"),
            PURLIN_OK);
  purlin_op* op = nullptr;
  ASSERT_EQ(purlin_op_open(cache.handle(), &desc, &op), PURLIN_OK);
  const int64_t known[] = {4}, unknown[] = {5};
  EXPECT_EQ(purlin_op_demote(op, unknown, 1, 1.2, "slow"), PURLIN_NOT_FOUND);
  EXPECT_EQ(purlin_op_demote(op, known, 2, 1.2, "slow"), PURLIN_INVALID);
  EXPECT_EQ(purlin_op_demote(nullptr, known, 1, 1.2, "slow"), PURLIN_INVALID);
  const purlin_entry* entry = nullptr;
  EXPECT_EQ(purlin_lookup(op, known, 1, &entry), PURLIN_EXACT);
  ASSERT_EQ(purlin_op_demote(op, known, 1, 1.2, "slow"), PURLIN_OK) << purlin_last_error();
  ASSERT_EQ(purlin_cache_reload(cache.handle()), PURLIN_OK);
  EXPECT_EQ(purlin_lookup(op, known, 1, &entry), PURLIN_MISS);
  purlin_op_close(op);
}

TEST(CApi, ADuelFindsAWinnerThatNoLongerWins) {
  purlin_duel* duel = nullptr;
  ASSERT_EQ(purlin_duel_open(&duel), PURLIN_OK);
  EXPECT_EQ(purlin_duel_ratio(duel), 1);
  // Noise of 3 % around equal times raises no alarm; a winner 10 % slower is found soon.
  const double noise[] = {1.0, 1.03, 0.97, 1.01, 0.99};
  for (int i = 0; i < 2000; ++i)
    EXPECT_EQ(purlin_duel_add(duel, noise[i % 5], noise[(i * 3 + 1) % 5]), 0);
  EXPECT_EQ(purlin_duel_add(duel, 0, 1), 0) << "no time, no sample";
  EXPECT_EQ(purlin_duel_samples(duel), 2000u);
  int until = 0;
  while (until < 500 && purlin_duel_add(duel, 1.1 * noise[until % 5], noise[(until + 2) % 5]) == 0)
    ++until;
  EXPECT_LT(until, 200);
  purlin_duel_close(duel);
  EXPECT_EQ(purlin_duel_add(nullptr, 1, 1), 0);
  EXPECT_EQ(purlin_duel_open(nullptr), PURLIN_INVALID);
}

}  // namespace purlin
