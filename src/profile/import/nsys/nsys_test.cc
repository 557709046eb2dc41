// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "profile/import/import.h"
#include "profile/import/nsys/sqlite_file.h"
#include "profile/ops/range_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sqlite3.h>

namespace purlin::profile {
namespace {

// A database in a separate folder, filled by SQL.
class Database {
 public:
  explicit Database(const std::string& sql) : folder_(*make_temporary_directory("purlin-nsys")) {
    run(sql);
  }
  ~Database() { EXPECT_TRUE(remove_tree(folder_).is_ok()); }
  static std::string script(const char* name) {
    return *read_file(PURLIN_SOURCE_DIR "/tests/data/imports/" + std::string(name));
  }
  void run(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open(path().c_str(), &db), SQLITE_OK);
    const std::string text = "PRAGMA synchronous = OFF; BEGIN;" + sql + "COMMIT;";
    char* message = nullptr;
    EXPECT_EQ(::sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message != nullptr ? message : "");
    ::sqlite3_free(message);
    ::sqlite3_close(db);
  }
  std::string path() const { return join_path(folder_, "a report %20.sqlite"); }
  Profile import(const ImportOptions& options = {}) const {
    Result<Profile> profile = import_nsys_sqlite(path(), options);
    EXPECT_TRUE(profile.is_ok()) << profile.status().message();
    return std::move(profile).value_or({});
  }

 private:
  std::string folder_;
};

const CoverageNote* nsys_note(const Profile& profile, std::string_view cause) {
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == cause) return &note;
  return nullptr;
}

// The same program in each age of the schema.
void expect_the_program(const Profile& profile, std::int64_t epoch) {
  EXPECT_EQ(profile.source, "nsys");
  EXPECT_FALSE(profile.partial);
  ASSERT_GE(profile.kernels.size(), 3u);
  const KernelRow& gemm = profile.kernels[0];
  EXPECT_EQ(gemm.name, "void gemm<float, 128>(float const*, float const*, float*, int)");
  EXPECT_EQ(gemm.launch.grid, (Dim3{4, 2, 1}));
  EXPECT_EQ(gemm.launch.block, (Dim3{128, 2, 1}));
  EXPECT_EQ(gemm.launch.dynamic_shared_bytes, 2048u);
  EXPECT_EQ(gemm.registers, 96u);
  EXPECT_EQ(gemm.static_shared_bytes, 1024u);
  EXPECT_EQ(gemm.local_bytes, 16u);
  EXPECT_EQ(gemm.op, "aten::mm");
  EXPECT_EQ(gemm.shape, "M=64,N=128,K=32");
  EXPECT_EQ(gemm.duration.total_ns(), 2000);
  EXPECT_EQ(gemm.first_ns, epoch + 2700);
  EXPECT_EQ(gemm.last_ns, epoch + 4700);
  EXPECT_EQ(profile.kernels[1].op, "aten::relu");
  EXPECT_EQ(profile.kernels[2].op, "") << "launched outside of any op";
  EXPECT_EQ(profile.kernels[2].duration.total_ns(), 2100);

  ASSERT_EQ(profile.copies.size(), 2u);
  EXPECT_EQ(profile.copies[0].kind, "h2d pinned");
  EXPECT_EQ(profile.copies[0].bytes, 1048576);
  EXPECT_EQ(profile.copies[0].duration.total_ns(), 1000);
  EXPECT_EQ(profile.copies[1].kind, "memset");

  const Timeline& timeline = profile.timeline;
  ASSERT_GE(timeline.calls.size(), 6u);
  EXPECT_EQ(timeline.names[timeline.calls[0].name], "cudaMemcpyAsync");
  EXPECT_EQ(timeline.calls[0].kind, CallKind::kCopy);
  EXPECT_EQ(timeline.calls[0].thread, 4243u);
  EXPECT_EQ(timeline.calls[2].kind, CallKind::kLaunch);
  EXPECT_EQ(timeline.calls[5].kind, CallKind::kSync);
  for (const Activity& activity : timeline.activities)
    if (activity.start_ns < epoch + 10'000 && activity.device == 0) {
      ASSERT_NE(activity.call, kNone);
      EXPECT_LT(timeline.calls[activity.call].start_ns, activity.start_ns);
    }
  ASSERT_EQ(timeline.ops.size(), 2u);
  EXPECT_EQ(timeline.calls[2].op, 0u);
  ASSERT_GE(timeline.ranges.size(), 1u);
  EXPECT_EQ(timeline.ranges[0].kind, RangeKind::kStep);
  EXPECT_EQ(timeline.names[timeline.ranges[0].name], "step 3");
  ASSERT_FALSE(profile.processes.empty());
  EXPECT_EQ(profile.processes[0].pid, 4242);
}

TEST(NsysSqlite, Schema2019) {
  const Profile profile = Database(Database::script("nsys_2019.sql")).import();
  expect_the_program(profile, 0);
  ASSERT_EQ(profile.environment.devices.size(), 1u);
  const DeviceInfo& gpu = profile.environment.devices[0];
  EXPECT_EQ(gpu.name, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(gpu.arch, "sm_70");
  EXPECT_EQ(gpu.clock_mhz, 1530) << "given in kHz";
  EXPECT_EQ(gpu.memory_bytes_per_s, 898'048'000e3);
  EXPECT_EQ(gpu.max_threads_per_unit, 2048);
}

TEST(NsysSqlite, Schema2022) {
  const Profile profile = Database(Database::script("nsys_2022.sql")).import();
  constexpr std::int64_t kEpoch = 1'660'000'000'000'000'000;
  expect_the_program(profile, kEpoch);
  const DeviceInfo& gpu = profile.environment.devices.at(0);
  EXPECT_EQ(gpu.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpu.memory_bytes_per_s, 1'555.2e9);
  EXPECT_EQ(gpu.clock_mhz, 1410);
  EXPECT_EQ(gpu.compute_units, 108);
  EXPECT_EQ(gpu.shared_memory_per_block, 166'912);
  EXPECT_EQ(profile.environment.host_cpus, 64);
  EXPECT_EQ(profile.environment.recorded_at, "2022-08-08T23:06:40Z");
  EXPECT_EQ(profile.wall_ns, 10'000);
  EXPECT_EQ(profile.timeline.begin_ns, kEpoch);
  EXPECT_EQ(profile.timeline.end_ns, kEpoch + 10'000);
  EXPECT_EQ(profile.processes[0].command, "/usr/bin/python3");
  EXPECT_EQ(profile.timeline.ranges.size(), 1u) << "a mark is no range";
}

TEST(NsysSqlite, Schema2025WithTwoProcessesGraphsAndMessages) {
  const Profile profile = Database(Database::script("nsys_2025.sql")).import();
  constexpr std::int64_t kEpoch = 1'763'000'000'000'000'000;
  expect_the_program(profile, kEpoch);
  ASSERT_EQ(profile.environment.devices.size(), 2u);
  EXPECT_EQ(profile.environment.devices[1].uuid, "GPU-1") << "what the worker calls device 0";
  EXPECT_EQ(profile.environment.host_os, "Ubuntu 24.04");

  ASSERT_EQ(profile.kernels.size(), 6u);
  EXPECT_EQ(profile.kernels[3].name, "void wgmma_gemm<bf16>()");
  EXPECT_EQ(profile.kernels[3].launch.cluster, (Dim3{2, 1, 1}));
  EXPECT_EQ(profile.kernels[3].device, 1);
  EXPECT_EQ(profile.kernels[3].op, "") << "another process's op of the same correlation id";
  EXPECT_EQ(profile.kernels[5].name, "(CUDA graph 9)");
  EXPECT_EQ(profile.kernels[5].duration.total_ns(), 3000);
  EXPECT_FALSE(is_known(profile.kernels[5].launch.grid)) << "a graph is no launch of one block";
  ASSERT_NE(nsys_note(profile, "whole_graphs"), nullptr);

  const Timeline& timeline = profile.timeline;
  const auto nccl = std::find_if(timeline.activities.begin(), timeline.activities.end(),
                                 [](const Activity& a) { return a.row == 4; });
  ASSERT_NE(nccl, timeline.activities.end());
  EXPECT_EQ(nccl->graph, 9u);
  ASSERT_NE(nccl->call, kNone);
  EXPECT_EQ(timeline.calls[nccl->call].kind, CallKind::kGraphLaunch);
  EXPECT_EQ(profile.processes[timeline.calls[nccl->call].process].command, "/usr/bin/worker");

  ASSERT_EQ(timeline.ranges.size(), 3u);
  EXPECT_EQ(timeline.ranges[1].kind, RangeKind::kCommunication) << "NCCL's domain";
  EXPECT_EQ(timeline.ranges[2].kind, RangeKind::kProfiler);

  const CoverageNote* message = nsys_note(profile, "recorder_message");
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->text, "Not all NVTX events might have been collected. (2 times)");
  const CoverageNote* damaged = nsys_note(profile, "rows_damaged");
  ASSERT_NE(damaged, nullptr) << "a kernel that ends before it starts";
  EXPECT_EQ(damaged->count, 1);
}

TEST(NsysSqlite, Nvprof) {
  const Profile profile = Database(Database::script("nvprof.sql")).import();
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].name, "_Z4gemmIfLi128EEvPKfS1_Pfi");
  EXPECT_EQ(profile.kernels[0].registers, 96u);
  EXPECT_EQ(profile.environment.devices.at(0).name, "Tesla K80");
  EXPECT_EQ(profile.processes.at(0).pid, 4242);
  EXPECT_EQ(profile.timeline.activities.at(0).call, 0u);
}

TEST(NsysSqlite, NamesInPlaceAndMissingColumns) {
  const Profile profile = Database(
                              "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, "
                              "demangledName TEXT);"
                              "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 'k()');"
                              "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (6, 7, NULL);")
                              .import();
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[0].name, "k()");
  EXPECT_EQ(profile.kernels[1].name, "(unnamed kernel)");
  EXPECT_EQ(profile.environment.devices.at(0).id, "cuda:0");
  for (const char* cause : {"no_device_info", "no_calls", "no_shapes"})
    EXPECT_NE(nsys_note(profile, cause), nullptr) << cause;
}

TEST(NsysSqlite, StringsWithoutAKeyAreReadOnce) {
  const Profile profile =
      Database(
          "CREATE TABLE StringIds (id INTEGER, value TEXT);"
          "INSERT INTO StringIds VALUES (7, 'k');"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 7);")
          .import();
  EXPECT_EQ(profile.kernels.at(0).name, "k");
}

TEST(NsysSqlite, BoundsKeepTheFirstAndCountTheRest) {
  const Database database(Database::script("nsys_2022.sql"));
  ImportOptions options;
  options.max_timeline_events = 6;
  options.max_kernel_rows = 1;
  const Profile profile = database.import(options);
  const Timeline& timeline = profile.timeline;
  EXPECT_EQ(timeline.activities.size() + timeline.calls.size() + timeline.ops.size() +
                timeline.ranges.size(),
            6u);
  EXPECT_EQ(timeline.activities.size() + timeline.left_out, 5u);
  EXPECT_EQ(profile.coverage.launches_seen, 3);
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[1].name, "(other kernels)");
  for (const char* cause : {"timeline_full", "timeline_full", "kernel_rows_full"})
    EXPECT_NE(nsys_note(profile, cause), nullptr) << cause;
}

// Views, virtual tables, generated columns and wrong types are not run and not trusted.
TEST(NsysSqlite, HostileSchema) {
  const Profile profile =
      Database(
          "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS WITH RECURSIVE n(start) AS (SELECT 1 UNION "
          "ALL "
          "SELECT start + 1 FROM n) SELECT start, start AS end, 0 AS deviceId FROM n;"
          "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_MEMSET USING fts5(start, end);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, gridX, "
          "demangledName TEXT AS (hex(zeroblob(1000))));"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('one', X'00', 0, 1);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-9223372036854775807 - 1, "
          "9223372036854775807, 0, 1);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, -5, -1);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (30, 40.0, 1e300, 'x');")
          .import();
  EXPECT_EQ(profile.coverage.launches_seen, 2);
  EXPECT_EQ(profile.kernels.at(0).name, "(unnamed kernel)") << "the generated name was not made";
  EXPECT_TRUE(profile.copies.empty());
  ASSERT_NE(nsys_note(profile, "rows_damaged"), nullptr);
  EXPECT_EQ(nsys_note(profile, "rows_damaged")->count, 2);
}

TEST(NsysSqlite, DamagedPagesArePartial) {
  const Database database(Database::script("nsys_2022.sql"));
  std::string rows;
  for (int i = 0; i < 2000; ++i)
    rows += fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES ({}, {}, 0, 1, 7, 0, 0, 0, 8, NULL, 2);",
        20'000 + i, 20'001 + i);
  database.run(rows);
  std::string bytes = *read_file(database.path());
  std::fill(bytes.end() - 40'000, bytes.end() - 20'000, '\xFF');
  ASSERT_TRUE(write_atomic(database.path(), bytes).is_ok());
  const Profile profile = database.import();
  EXPECT_TRUE(profile.partial);
  EXPECT_EQ(profile.coverage.launches_seen, 3) << "other tables are whole";
  ASSERT_NE(nsys_note(profile, "damaged"), nullptr);
  EXPECT_NE(nsys_note(profile, "damaged")->text.find("CUPTI_ACTIVITY_KIND_MEMSET"),
            std::string::npos);

  const std::string short_file = bytes.substr(0, 5000);
  ASSERT_TRUE(write_atomic(database.path(), short_file).is_ok());
  const Result<Profile> cut = import_nsys_sqlite(database.path(), {});
  EXPECT_TRUE(!cut.is_ok() || cut->partial);
  ASSERT_TRUE(write_atomic(database.path(), "no database at all").is_ok());
  EXPECT_EQ(import_nsys_sqlite(database.path(), {}).status().code(), Code::kInvalid);
  EXPECT_EQ(import_nsys_sqlite(database.path() + "x", {}).status().code(), Code::kNotFound);
}

TEST(SqliteFile, ReadsFromMemory) {
  const Database database("CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x');");
  const std::string bytes = *read_file(database.path());
  const Result<SqliteFile> file = SqliteFile::from_bytes(bytes);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_TRUE(file->has("T", "B"));
  EXPECT_FALSE(file->has("t", "c"));
  EXPECT_EQ(file->row_bound("t"), 1u);
  Result<SqliteFile::Rows> rows = file->select("t", {"a", "missing", "b"});
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  ASSERT_TRUE(*rows->next());
  EXPECT_EQ(rows->integer(0), 1);
  EXPECT_TRUE(rows->is_null(1));
  EXPECT_EQ(rows->text(2), "x");
  EXPECT_FALSE(*rows->next());
}

TEST(NsysRanges, Kinds) {
  for (const char* step : {"ProfilerStep#7", "step 3", "Iteration:12", "iter_9", "train_step 4"})
    EXPECT_EQ(kind_of_range(step, ""), RangeKind::kStep) << step;
  for (const char* user : {"forward", "stepper 3", "layer 3", "12", "step", ""})
    EXPECT_EQ(kind_of_range(user, ""), RangeKind::kUser) << user;
  EXPECT_EQ(kind_of_range("enumerate(DataLoader)#_Next", ""), RangeKind::kDataLoader);
  EXPECT_EQ(kind_of_range("ncclAllReduce", ""), RangeKind::kCommunication);
  EXPECT_EQ(kind_of_range("anything", "NCCL"), RangeKind::kCommunication);
}

TEST(NsysRanges, Ops) {
  const std::optional<RangeOp> unknown =
      op_of_range("MyOp, seq = 3, sizes = [[4, 5], []], input_op_ids = [[1, 0]]");
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->name, "MyOp");
  EXPECT_EQ(unknown->shape, "[[4, 5], []]");
  EXPECT_EQ(op_of_range("aten::relu_")->name, "aten::relu_");
  for (const char* text : {"forward", "my::range with blanks", "std::vector", "a, b", "::", ""})
    EXPECT_FALSE(op_of_range(text).has_value()) << text;
}

constexpr const char* kSmallSchema = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId,
    globalPid, demangledName, gridX, blockX);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId,
    globalPid, bytes, copyKind, srcKind, dstKind);
  INSERT INTO StringIds VALUES (1,'k'), (2,'cudaLaunchKernel_v7000'),
    (3,'cudaStreamBeginCapture_v10000'), (4,'cudaStreamEndCapture_v10000');
)";

TEST(Nsys, MigrationsAreNoMemcpysAndMemoryHasItsKind) {
  const std::string rows = R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
      (10,20,0,7,1,16777216,8,1,0,2), (30,40,0,7,2,16777216,8,2,2,1), (50,60,0,7,3,16777216,8,1,4,2),
      (70,80,0,0,0,16777216,8,11,7,7), (90,95,0,0,0,16777216,8,12,NULL,NULL);)";
  const auto kinds = [](const std::string& sql) {
    std::string text;
    for (const CopyRow& row : Database(sql).import().copies) text += row.kind + "; ";
    return text;
  };
  EXPECT_EQ(kinds(kSmallSchema + rows),
            "h2d pageable; d2h pinned; h2d; migration h2d; migration d2h; ");
  // A file's own lists go first.
  EXPECT_EQ(kinds(kSmallSchema + rows + R"(
      CREATE TABLE ENUM_CUDA_MEM_KIND (id, name, label);
      INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN','Unknown'),
        (1,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE','Pageable'),
        (4,'CUDA_MEMOPR_MEMORY_KIND_PINNED','Pinned');
      CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id, name, label);
      INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES
        (12,'CUDA_MEMCPY_KIND_UVM_DTOD','Unified Device-to-Device');)"),
            "h2d; d2h pageable; h2d pinned; migration h2d; migration d2d; ");
}

TEST(Nsys, CapturedLaunchesAndImpossibleTimes) {
  std::string sql = kSmallSchema;
  sql += R"(INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1,2,16777216,1,2), (3,4,16777216,2,3),
    (5,6,16777216,3,2), (7,8,16777216,4,4);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0,0,0,7,9,16777216,1,1,1);)";
  for (int i = 0; i < 6; ++i)
    sql +=
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({},{},0,7,{},16777216,1,1,1);",
                    100 + 110 * i, 200 + 110 * i + (i == 2 ? 9'000'000 : 0), i == 0 ? 1 : 0);
  const Profile profile = Database(sql).import();
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].duration.count(), 6);
  EXPECT_DOUBLE_EQ(profile.kernels[0].duration.total_ns(), 610);
  EXPECT_NE(nsys_note(profile, "overlong_kernels"), nullptr);
  EXPECT_NE(nsys_note(profile, "rows_damaged"), nullptr);
  ASSERT_NE(nsys_note(profile, "launches_captured"), nullptr);
  EXPECT_EQ(nsys_note(profile, "launches_captured")->count, 1);
  EXPECT_EQ(std::count_if(profile.timeline.calls.begin(), profile.timeline.calls.end(),
                          [](const Call& call) { return call.kind == CallKind::kLaunch; }),
            1);
}

TEST(Nsys, FailedLaunchesNameTheirError) {
  std::string sql = kSmallSchema;
  sql.replace(sql.find("correlationId, nameId);"), 23, "correlationId, nameId, returnValue);");
  sql += R"(INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1,2,16777216,1,2,0),
    (3,4,16777216,2,2,9), (5,6,16777216,3,2,9), (7,8,16777216,4,2,12345);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20,0,7,1,16777216,1,1,1);)";
  const Profile profile = Database(sql).import();
  std::string failures;
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == "launches_failed")
      failures += fmt::format("{:.0f} {}\n", note.count, note.text.substr(0, 60));
  EXPECT_NE(failures.find("2 launches returned cudaErrorInvalidConfiguration (9)"),
            std::string::npos)
      << failures;
  EXPECT_NE(failures.find("1 launches returned CUDA error 12345"), std::string::npos) << failures;
}

}  // namespace
}  // namespace purlin::profile
