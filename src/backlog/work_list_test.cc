// SPDX-License-Identifier: Apache-2.0
#include "backlog/work_list.h"

#include "backlog/work_tasks.h"
#include "base/files.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::backlog {
namespace {

using cache::TemporaryDirectory;

WorkRow missed(std::string_view kernel, std::uint64_t misses) {
  WorkRow row;
  row.key.op = row.key.kernel = kernel;
  row.key.backend = "cuda";
  row.key.arch = "sm_90";
  row.key.bucket = row.shape = "N=64";
  row.misses = misses;
  row.last_seen = "2026-11-20T12:00:00Z";
  return row;
}

TEST(WorkList, MergesIntoTheFile) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WorkList::merge_into(folder.path(), {missed("a", 3), missed("b", 1)}).is_ok());
  ASSERT_TRUE(WorkList::merge_into(folder.path(), {missed("a", 4)}).is_ok());
  const WorkList list = *WorkList::read(folder.path());
  ASSERT_EQ(list.rows().size(), 2u);
  EXPECT_EQ(list.rows()[0].key.kernel, "a");
  EXPECT_EQ(list.rows()[0].misses, 7u);
}

TEST(WorkList, KeepsTheLatestShapeAndAnyKnownSpec) {
  WorkList list;
  WorkRow first = missed("a", 1), second = missed("a", 1);
  first.spec = "/kernels/a.toml";
  second.shape = "N=63";
  second.last_seen = "2026-11-21T12:00:00Z";
  list.add(first);
  list.add(second);
  ASSERT_EQ(list.rows().size(), 1u);
  EXPECT_EQ(list.rows()[0].shape, "N=63");
  EXPECT_EQ(list.rows()[0].spec, "/kernels/a.toml");
}

TEST(WorkList, IsBoundedAndKeepsTheHeavy) {
  WorkList list;
  list.add(missed("heavy", 1'000'000));
  for (int i = 0; i < 3000; ++i) list.add(missed("light" + std::to_string(i), 1));
  EXPECT_EQ(list.rows().size(), WorkList::kMaxRows);
  EXPECT_EQ(list.rows()[0].key.kernel, "heavy");
  EXPECT_EQ(list.rows()[0].error, 0u);
  std::uint64_t total = 0;
  for (const WorkRow& held : list.rows()) {
    EXPECT_LE(held.launches(), held.weight());
    total += held.weight();
  }
  EXPECT_EQ(total, 1'003'000u);  // nothing is lost, only attributed with a known error
}

TEST(WorkList, ADamagedFileIsAnErrorAndIsKept) {
  TemporaryDirectory folder;
  ASSERT_TRUE(write_atomic(WorkList::path(folder.path()), "{\"schema\": \"purlin.work").is_ok());
  EXPECT_EQ(WorkList::merge_into(folder.path(), {missed("a", 1)}).code(), Code::kCorrupt);
  EXPECT_EQ(*read_file(WorkList::path(folder.path())), "{\"schema\": \"purlin.work");
  ASSERT_TRUE(write_atomic(WorkList::path(folder.path()),
                           "{\"schema\": \"purlin.worklist/2\", \"rows\": []}")
                  .is_ok());
  EXPECT_EQ(WorkList::read(folder.path()).status().code(), Code::kCorrupt);
  const std::string rows = "{\"schema\": \"purlin.worklist/1\", \"rows\": 7}";
  ASSERT_TRUE(write_atomic(WorkList::path(folder.path()), rows).is_ok());
  EXPECT_EQ(WorkList::merge_into(folder.path(), {missed("a", 1)}).code(), Code::kCorrupt);
  EXPECT_EQ(*read_file(WorkList::path(folder.path())), rows);
}

// A wrong row of one program must not cost the rows of the others.
TEST(WorkList, ARowWithoutAUsableKeyIsLeftOutAndTheOthersStay) {
  TemporaryDirectory folder;
  WorkRow nameless = missed("", 5);
  ASSERT_TRUE(WorkList::merge_into(folder.path(), {missed("a", 3), nameless}).is_ok());
  ASSERT_TRUE(WorkList::merge_into(folder.path(), {missed("a", 4)}).is_ok());
  const Result<WorkList> list = WorkList::read(folder.path());
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  ASSERT_EQ(list->rows().size(), 1u);
  EXPECT_EQ(list->rows()[0].misses, 7u);
}

TEST(WorkList, CountsFromAFileAreBounded) {
  const Json document =
      Json::object({{"schema", "purlin.worklist/1"},
                    {"rows", Json::array({Json::object({{"key", cache::to_json(missed("a", 1).key)},
                                                        {"misses", -5},
                                                        {"hits", INT64_MAX},
                                                        {"stale", "x"}})})}});
  const WorkList list = *WorkList::from_document(document);
  ASSERT_EQ(list.rows().size(), 1u);
  EXPECT_EQ(list.rows()[0].misses, 0u);
  EXPECT_EQ(list.rows()[0].hits, std::uint64_t{1} << 56);
}

TEST(WorkList, AskedThroughTheCInterface) {
  // A lookup that states few fields still finds an entry that was tuned later.
  TemporaryDirectory folder;
  cache::Store store = *cache::Store::open(folder.path());
  const cache::Entry entry = cache::sample_entry(1024, 64);
  WorkList list;
  WorkRow asked;
  asked.key.op = entry.key.op;
  asked.key.kernel = entry.key.kernel;
  asked.key.backend = entry.key.backend;
  asked.key.arch = entry.key.arch;
  asked.shape = asked.key.bucket = "M=1000,N=1024,K=512";
  asked.misses = 9;
  list.add(asked);
  // Of a kernel that was tuned at another shape, there is a spec somewhere.
  ASSERT_TRUE(store.put(cache::sample_entry(64, 64)).is_ok());
  ASSERT_EQ(work_tasks(list, store).tasks.size(), 1u);
  EXPECT_EQ(work_tasks(list, store).tasks[0].key.kind, "tune");
  ASSERT_TRUE(store.put(entry).is_ok());
  EXPECT_TRUE(work_tasks(list, store).tasks.empty());
}

// Another kernel of the op, other names of the dimensions, an op that was never tuned: no spec that
// is known computes them, and a list of them would hide what can be tuned.
TEST(WorkTasks, QuestionsThatNoSpecAnswersAreNoTasks) {
  TemporaryDirectory folder;
  cache::Store store = *cache::Store::open(folder.path());
  ASSERT_TRUE(store.put(cache::sample_entry(1024, 64)).is_ok());
  WorkList list;
  const auto ask = [&](const char* op, const char* kernel, const char* shape, const char* spec) {
    WorkRow row;
    row.key = cache::sample_entry().key;
    row.key.op = op;
    row.key.kernel = kernel;
    row.shape = row.key.bucket = shape;
    row.spec = spec;
    row.misses = 1;
    list.add(row);
  };
  ask("gemm", "gemm", "M=9,N=1024,K=512", "");
  ask("gemm", "fused", "M=9,N=1024,K=512", "");
  ask("gemm", "fused", "M=10,N=1024,K=512", "");
  ask("gemm", "gemm", "M=9,N=1024,Q=512", "");
  ask("moe", "moe", "E=8", "");
  ask("moe", "other", "E=8", "/kernels/moe.toml");
  const WorkTasks made = work_tasks(list, store);
  ASSERT_EQ(made.tasks.size(), 2u);
  EXPECT_EQ(made.tasks[0].key.shape, "M=9,N=1024,K=512");
  EXPECT_EQ(made.tasks[1].key.kernel, "other") << "the program stated its spec";
  ASSERT_EQ(made.left_out.size(), 3u) << "one line for each kernel and reason";
  EXPECT_NE(made.left_out[0].find("none of 'fused'"), std::string::npos) << made.left_out[0];
  EXPECT_NE(made.left_out[1].find("M,N,K, not M,N,Q"), std::string::npos) << made.left_out[1];
}

}  // namespace
}  // namespace purlin::backlog
