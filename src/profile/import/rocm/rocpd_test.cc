// SPDX-License-Identifier: Apache-2.0
// The two schemas of rocpd, and rocprofv3's JSON: the same run in all three.
#include "profile/import/rocm/rocpd.h"

#include "base/files.h"
#include "profile/import/rocm/rocprof_json.h"

#include <gtest/gtest.h>

#include <sqlite3.h>

namespace purlin::profile {
namespace {

// What both schemas have: two CPUs, two GPUs, one process.
constexpr const char* kFacts = R"x(
  CREATE TABLE rocpd_metadata_7 (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
  CREATE TABLE rocpd_string_7 (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
  INSERT INTO rocpd_string_7 VALUES (1,'','hipLaunchKernel'), (2,'','MEMORY_COPY_HOST_TO_DEVICE'),
    (3,'','step 1'), (4,'','hsa_signal_store');
  CREATE TABLE rocpd_info_process_7 (id INTEGER PRIMARY KEY, nid, pid INTEGER, command TEXT);
  INSERT INTO rocpd_info_process_7 VALUES (1,1,4242,'./run');
  CREATE TABLE rocpd_info_thread_7 (id INTEGER PRIMARY KEY, tid INTEGER);
  INSERT INTO rocpd_info_thread_7 VALUES (5, 4243);
  CREATE TABLE rocpd_info_agent_7 (id INTEGER PRIMARY KEY, type TEXT, absolute_index INTEGER,
    type_index INTEGER, name TEXT, model_name TEXT, product_name TEXT, extdata TEXT);
  INSERT INTO rocpd_info_agent_7 VALUES (1,'CPU',0,0,'EPYC','','EPYC','{}'),
    (2,'GPU',1,0,'gfx950','','AMD Instinct MI350X','{"cu_count":256,"wave_front_size":64}'),
    (3,'GPU',2,1,'gfx950','','AMD Instinct MI350X','{"cu_count":256,"wave_front_size":64}');
  CREATE TABLE rocpd_info_kernel_symbol_7 (id INTEGER PRIMARY KEY, kernel_name TEXT,
    display_name TEXT, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER);
  INSERT INTO rocpd_info_kernel_symbol_7 VALUES (8,'_Z4saxpyPf.kd','saxpy(float*)',20,4);
  CREATE TABLE rocpd_info_pmc_7 (id INTEGER PRIMARY KEY, name TEXT, symbol TEXT);
  INSERT INTO rocpd_info_pmc_7 VALUES (1,'SQ_WAVES','SQ_WAVES');
  CREATE TABLE rocpd_pmc_event_7 (id INTEGER PRIMARY KEY, event_id INTEGER, pmc_id INTEGER,
    value REAL);
  INSERT INTO rocpd_pmc_event_7 VALUES (1,11,1,30), (2,11,1,12);
  CREATE TABLE rocpd_event_7 (id INTEGER PRIMARY KEY, stack_id INTEGER);
  INSERT INTO rocpd_event_7 VALUES (10,77), (11,77), (12,78), (13,0), (14,0);
)x";

constexpr const char* kSchema3 = R"x(
  CREATE TABLE rocpd_kernel_dispatch_7 (id INTEGER PRIMARY KEY, nid, pid INTEGER, tid INTEGER,
    agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER, stream_id INTEGER, start INTEGER,
    end INTEGER, private_segment_size, group_segment_size, workgroup_size_x, workgroup_size_y,
    workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id INTEGER);
  INSERT INTO rocpd_kernel_dispatch_7 VALUES
    (1,1,1,5,3,8,2,0,2000,2500,0,128,256,1,1,1000,4,1,11),
    (2,1,1,5,3,8,2,0,0,0,0,128,256,1,1,1000,4,1,12);
  CREATE TABLE rocpd_memory_copy_7 (id INTEGER PRIMARY KEY, pid INTEGER, start INTEGER, end INTEGER,
    name_id INTEGER, src_agent_id INTEGER, dst_agent_id INTEGER, size INTEGER, stream_id INTEGER,
    event_id INTEGER);
  INSERT INTO rocpd_memory_copy_7 VALUES (1,1,1200,1300,2,1,3,4096,0,13);
  CREATE TABLE rocpd_region_7 (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER,
    end INTEGER, name_id INTEGER, event_id INTEGER);
  INSERT INTO rocpd_region_7 VALUES (1,1,5,1900,1950,1,10), (2,1,5,1000,3000,3,14),
    (3,1,5,1910,1920,4,14);
)x";

constexpr const char* kSchema4 = R"x(
  CREATE TABLE rocpd_track_7 (id INTEGER PRIMARY KEY, nid, pid INTEGER, tid INTEGER,
    agent_id INTEGER, queue_id INTEGER, stream_id INTEGER);
  INSERT INTO rocpd_track_7 VALUES (1,1,1,5,3,2,0), (2,1,1,5,NULL,NULL,NULL);
  CREATE TABLE rocpd_timestamp_7 (id INTEGER PRIMARY KEY, value INTEGER, phase, track_id);
  INSERT INTO rocpd_timestamp_7 VALUES (1,2000,1,1), (2,2500,2,1), (3,1200,1,1), (4,1300,2,1),
    (5,1900,1,2), (6,1950,2,2), (7,1000,1,2), (8,3000,2,2), (9,1910,1,2), (10,1920,2,2);
  CREATE TABLE rocpd_kernel_dispatch_7 (id INTEGER PRIMARY KEY, track_id INTEGER,
    kernel_id INTEGER, start_id INTEGER, end_id INTEGER, group_segment_size, workgroup_size_x,
    workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id INTEGER);
  INSERT INTO rocpd_kernel_dispatch_7 VALUES (1,1,8,1,2,128,256,1,1,1000,4,1,11),
    (2,1,8,NULL,NULL,128,256,1,1,1000,4,1,12);
  CREATE TABLE rocpd_memory_copy_7 (id INTEGER PRIMARY KEY, track_id INTEGER, start_id INTEGER,
    end_id INTEGER, name_id INTEGER, src_agent_id INTEGER, dst_agent_id INTEGER, size INTEGER,
    event_id INTEGER);
  INSERT INTO rocpd_memory_copy_7 VALUES (1,1,3,4,2,1,3,4096,13);
  CREATE TABLE rocpd_region_7 (id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER,
    start_id INTEGER, end_id INTEGER, event_id INTEGER);
  INSERT INTO rocpd_region_7 VALUES (1,2,1,5,6,10), (2,2,3,7,8,14), (3,2,4,9,10,14);
)x";

constexpr std::string_view kJsonRun = R"x({"rocprofiler-sdk-tool": [{
  "metadata": {"pid": 4242, "command": ["./run"]},
  "agents": [
    {"id": {"handle": 90}, "type": 1, "node_id": 0, "name": "EPYC", "product_name": "EPYC"},
    {"id": {"handle": 91}, "type": 2, "node_id": 1, "logical_node_type_id": 0, "name": "gfx950",
     "product_name": "AMD Instinct MI350X", "cu_count": 256, "wave_front_size": 64},
    {"id": {"handle": 92}, "type": 2, "node_id": 2, "logical_node_type_id": 1, "name": "gfx950",
     "product_name": "AMD Instinct MI350X", "cu_count": 256, "wave_front_size": 64}],
  "counters": [{"id": {"handle": 6}, "name": "SQ_WAVES"}],
  "strings": {"buffer_records": [{"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipLaunchKernel"]},
    {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]}]},
  "kernel_symbols": [{"kernel_id": 8, "kernel_name": "_Z4saxpyPf.kd",
    "demangled_kernel_name": "saxpy(float*)", "arch_vgpr_count": 20, "accum_vgpr_count": 4}],
  "callback_records": {"counter_collection": [{"dispatch_data": {"dispatch_info": {
      "dispatch_id": 1}}, "records": [{"counter_id": {"handle": 6}, "value": 30},
      {"counter_id": {"handle": 6}, "value": 12}]}]},
  "buffer_records": {
    "hip_api": [{"kind": 1, "operation": 1, "thread_id": 4243, "start_timestamp": 1900,
      "end_timestamp": 1950, "correlation_id": {"internal": 77}}],
    "marker_api": [{"name": "step 1", "thread_id": 4243, "start_timestamp": 1000,
      "end_timestamp": 3000, "correlation_id": {"internal": 78}}],
    "memory_copy": [{"kind": 2, "operation": 1, "start_timestamp": 1200, "end_timestamp": 1300,
      "src_agent_id": {"handle": 90}, "dst_agent_id": {"handle": 92}, "bytes": 4096}],
    "kernel_dispatch": [
      {"thread_id": 4243, "correlation_id": {"internal": 77}, "start_timestamp": 2000,
       "end_timestamp": 2500, "stream_id": {"handle": 0}, "dispatch_info": {"kernel_id": 8,
       "agent_id": {"handle": 92}, "queue_id": {"handle": 2}, "dispatch_id": 1,
       "group_segment_size": 128, "workgroup_size": {"x": 256, "y": 1, "z": 1},
       "grid_size": {"x": 1000, "y": 4, "z": 1}}},
      {"start_timestamp": 0, "end_timestamp": 0, "dispatch_info": {"kernel_id": 8,
       "agent_id": {"handle": 92}, "dispatch_id": 2}}]}}]})x";

void expect_the_run(const Result<Profile>& read) {
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const Profile& profile = *read;
  EXPECT_EQ(profile.source, "rocprof");
  EXPECT_EQ(profile.command, "./run");
  EXPECT_FALSE(profile.partial);
  ASSERT_EQ(profile.kernels.size(), 1u);
  const KernelRow& row = profile.kernels[0];
  EXPECT_EQ(row.name, "saxpy(float*)");
  EXPECT_EQ(row.launch.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(row.launch.grid, (Dim3{4, 4, 1}));
  EXPECT_EQ(row.registers, 24u);
  EXPECT_EQ(row.static_shared_bytes, 128u);
  EXPECT_EQ(row.duration.count(), 1);  // the second has no times
  EXPECT_DOUBLE_EQ(row.duration.total_ns(), 500);
  ASSERT_EQ(row.counters.size(), 1u);
  EXPECT_EQ(row.counters[0].name, "SQ_WAVES");
  EXPECT_EQ(row.counters[0].value, 42);
  const DeviceInfo& gpu = profile.environment.devices.at(static_cast<std::size_t>(row.device));
  EXPECT_EQ(gpu.id, "hip:1");
  EXPECT_EQ(gpu.name, "AMD Instinct MI350X");
  EXPECT_EQ(gpu.arch, "gfx950");
  EXPECT_EQ(gpu.compute_units, 256);
  ASSERT_EQ(profile.copies.size(), 1u);
  EXPECT_EQ(profile.copies[0].kind, "h2d");
  EXPECT_EQ(profile.copies[0].bytes, 4096);
  ASSERT_EQ(profile.timeline.calls.size(), 1u);
  EXPECT_EQ(profile.timeline.calls[0].kind, CallKind::kLaunch);
  EXPECT_EQ(profile.timeline.calls[0].thread, 4243u);
  EXPECT_EQ(profile.timeline.ranges.size(), 1u);
  const auto kernel =
      std::find_if(profile.timeline.activities.begin(), profile.timeline.activities.end(),
                   [](const Activity& activity) { return activity.kind == ActivityKind::kKernel; });
  ASSERT_NE(kernel, profile.timeline.activities.end());
  EXPECT_EQ(kernel->call, 0u);
  EXPECT_EQ(kernel->stream, 2u);
  EXPECT_EQ(profile.processes.at(0).pid, 4242);
}

class RocpdFile : public ::testing::Test {
 protected:
  RocpdFile() : folder_(*make_temporary_directory("purlin-rocpd")) {}
  ~RocpdFile() override { EXPECT_TRUE(remove_tree(folder_).is_ok()); }
  std::string database(const std::string& sql) {
    const std::string path = join_path(folder_, fmt::format("{}.db", ++number_));
    sqlite3* db = nullptr;
    EXPECT_EQ(::sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message != nullptr ? message : "");
    ::sqlite3_free(message);
    ::sqlite3_close(db);
    return path;
  }
  std::string folder_;
  int number_ = 0;
};

TEST_F(RocpdFile, BothSchemasHoldTheSameRun) {
  for (const char* schema : {kSchema3, kSchema4}) {
    const std::string path = database(std::string(kFacts) + schema);
    EXPECT_EQ(*detect_format(path), Format::kRocpd);
    expect_the_run(open_profile(path));
  }
}

TEST_F(RocpdFile, TablesOfSeveralRunsAreAdded) {
  std::string second = std::string(kFacts) + kSchema4;
  for (std::size_t at = 0; (at = second.find("_7 ", at)) != std::string::npos; ++at)
    second.replace(at, 3, "_9 ");
  const auto read = open_profile(database(std::string(kFacts) + kSchema3 + second));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->processes.size(), 2u);
  EXPECT_EQ(read->coverage.launches_seen, 2);
}

TEST_F(RocpdFile, WithoutRowsOrFactsItSaysSo) {
  EXPECT_EQ(
      open_profile(database("CREATE TABLE rocpd_kernel_dispatch_1 (id INTEGER)")).status().code(),
      Code::kInvalid);
  const auto bare = open_profile(database(kSchema3));
  ASSERT_TRUE(bare.is_ok()) << bare.status().message();
  EXPECT_EQ(bare->kernels.at(0).name, "(unnamed kernel)");
  EXPECT_EQ(bare->environment.devices.at(0).id, "hip:3");
  EXPECT_NE(open_profile(database("CREATE TABLE rocpd_op (id INTEGER)"))
                .status()
                .message()
                .find("rpd_tracer"),
            std::string::npos);
}

TEST(RocprofJson, HoldsTheSameRun) {
  EXPECT_TRUE(looks_like_rocprof_json(kJsonRun));
  expect_the_run(import_rocprof_json(Input::from_bytes(kJsonRun), "r.json", {}));
}

TEST(RocprofJson, DamageIsAnError) {
  for (std::size_t cut = 0; cut < kJsonRun.size(); cut += 61)
    EXPECT_FALSE(
        import_rocprof_json(Input::from_bytes(kJsonRun.substr(0, cut)), "r.json", {}).is_ok());
  EXPECT_NE(import_rocprof_json(Input::from_bytes(R"({"rocprofiler-sdk-tool": []})"), "r.json", {})
                .status()
                .message()
                .find("--kernel-trace"),
            std::string::npos);
}

}  // namespace
}  // namespace purlin::profile
