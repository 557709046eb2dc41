// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/rocprof_csv.h"

#include "base/files.h"
#include "profile/import/rocm/tables.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;  // name, contents

Result<Profile> import_texts(const Texts& texts, const ImportOptions& options = {}) {
  std::vector<RocprofFile> files;
  for (const auto& [name, text] : texts)
    files.push_back(
        {name, [&contents = text] { return Result<Input>(Input::from_bytes(contents)); }});
  return import_rocprof_csv(files, options);
}

Profile import_ok(const Texts& texts, const ImportOptions& options = {}) {
  Result<Profile> profile = import_texts(texts, options);
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return std::move(profile).value_or({});
}

const CoverageNote* find_note(const Profile& profile, std::string_view cause) {
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == cause) return &note;
  return nullptr;
}

double counter(const KernelRow& row, std::string_view name) {
  for (const Counter& c : row.counters)
    if (c.name == name) return c.value;
  return -1;
}

// Headers and lines as rocprof writes them; see the guides of rocprofiler and rocprofiler-sdk.
constexpr const char* kResults =
    "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"queue-index\",\"pid\",\"tid\",\"grd\","
    "\"wgr\","
    "\"lds\",\"scr\",\"arch_vgpr\",\"accum_vgpr\",\"sgpr\",\"wave_size\",\"sig\",\"obj\","
    "\"DispatchNs\",\"BeginNs\",\"EndNs\",\"CompleteNs\",\"DurationNs\"\n"
    "0,\"bodyForce(Body*, float, int) [clone .kd]\",0,0,0,3670615,3670615,65537,256,512,8,20,4,16,"
    "64,\"0x0\",\"0x7f7b27c04500\",1591372809346673,1591372809872935,1591372836189584,"
    "1591372836215944,26316649\n"
    "1,\"bodyForce(Body*, float, int) [clone .kd]\",0,0,2,3670615,3670615,65537,256,512,8,20,4,16,"
    "64,\"0x0\",\"0x7f7b27c04500\",1591372836774261,1591372837000949,1591372863116796,"
    "1591372863132315,26115847\n";

constexpr const char* kKernelTrace =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\","
    "\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\","
    "\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
    "\"KERNEL_DISPATCH\",\"Agent 1\",1,3,7777,1,17,\"gemm(double*, "
    "int)\",102,1000,2000,1024,0,64,4,"
    "32,256,1,1,16384,64,1\n"
    "\"KERNEL_DISPATCH\",\"Agent 1\",1,3,7777,2,17,\"gemm(double*, "
    "int)\",104,5000,6500,1024,0,64,4,"
    "32,256,1,1,16384,64,1\n";

constexpr const char* kAgents =
    "\"Node_Id\",\"Logical_Node_Id\",\"Agent_Type\",\"Cpu_Cores_Count\",\"Simd_Count\","
    "\"Lds_Size_In_Kb\",\"Wave_Front_Size\",\"Num_Xcc\",\"Cu_Count\",\"Max_Engine_Clk_Fcompute\","
    "\"Name\",\"Product_Name\"\n"
    "0,0,\"CPU\",192,0,0,0,0,0,3700,\"AMD EPYC 9654\",\"AMD EPYC 9654\"\n"
    "4,1,\"GPU\",0,1216,64,64,8,304,2100,\"gfx942\",\"AMD Instinct MI300X\"\n";

constexpr const char* kHipCalls =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\","
    "\"End_Timestamp\"\n"
    "\"HIP_RUNTIME_API\",\"hipMalloc\",238,7777,100,100,200\n"
    "\"HIP_RUNTIME_API\",\"hipLaunchKernel\",238,7777,102,900,950\n"
    "\"HIP_RUNTIME_API\",\"hipLaunchKernel\",238,7777,104,3000,3050\n"
    "\"HIP_RUNTIME_API\",\"hipDeviceSynchronize\",238,7777,105,3100,6600\n";

constexpr const char* kHsaCalls =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\","
    "\"End_Timestamp\"\n"
    "\"HSA_CORE_API\",\"hsa_signal_wait_scacquire\",238,7777,1,3110,6590\n";

constexpr const char* kMarkers =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\","
    "\"End_Timestamp\"\n"
    "\"MARKER_CORE_API\",\"a mark\",238,7777,1,850,850\n"
    "\"MARKER_CORE_API\",\"aten::mm, seq = 1, sizes = [[8, 2], [2, 4]]\",238,7777,2,860,980\n"
    "\"MARKER_CORE_API\",\"step 1\",238,7777,3,800,7000\n";

constexpr const char* kCopies =
    "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\","
    "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"Agent 0\",\"Agent 1\",7,300,700\n"
    "\"MEMORY_COPY\",\"DEVICE_TO_HOST\",0,\"Agent 1\",\"Agent 0\",8,6600,6700\n";

constexpr const char* kCounters =
    "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\","
    "\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\","
    "\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    "102,1,\"Agent 1\",1,238,7777,1048576,17,\"gemm(double*, "
    "int)\",256,1024,0,64,4,32,\"SQ_WAVES\","
    "16384.000000,1000,2000\n"
    "102,1,\"Agent 1\",1,238,7777,1048576,17,\"gemm(double*, int)\",256,1024,0,64,4,32,\"TCC_HIT\","
    "10,1000,2000\n"
    "102,1,\"Agent 1\",1,238,7777,1048576,17,\"gemm(double*, int)\",256,1024,0,64,4,32,\"TCC_HIT\","
    "5,1000,2000\n"
    "104,2,\"Agent 1\",1,238,7777,1048576,17,\"gemm(double*, "
    "int)\",256,1024,0,64,4,32,\"SQ_WAVES\","
    "16386,5000,6500\n";

TEST(RocprofCsv, ResultsOfRocprof) {
  const Profile profile = import_ok({{"results.csv", kResults}});
  EXPECT_EQ(profile.source, "rocprof");
  ASSERT_EQ(profile.kernels.size(), 1u);
  const KernelRow& row = profile.kernels[0];
  EXPECT_EQ(row.name, "bodyForce(Body*, float, int)");
  EXPECT_EQ(row.launch.grid, (Dim3{257, 1, 1})) << "AMD counts a grid in work-items";
  EXPECT_EQ(row.launch.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(row.registers, 24u);
  EXPECT_EQ(row.static_shared_bytes, 512u);
  EXPECT_EQ(row.local_bytes, 8u);
  EXPECT_EQ(row.duration.count(), 2);
  EXPECT_EQ(row.duration.total_ns(), 26316649 + 26115847);
  EXPECT_EQ(row.first_ns, 1591372809872935);
  EXPECT_EQ(profile.timeline.activities.size(), 2u);
  EXPECT_EQ(profile.processes.at(0).pid, 3670615);
  EXPECT_EQ(profile.environment.devices.at(0).warp_size, 64);
  EXPECT_NE(find_note(profile, "no_device_info"), nullptr);
  EXPECT_NE(find_note(profile, "no_calls"), nullptr);
}

TEST(RocprofCsv, FilesOfOneRunBelongTogether) {
  const Profile profile = import_ok({{"/r/238_agent_info.csv", kAgents},
                                     {"/r/238_hip_api_trace.csv", kHipCalls},
                                     {"/r/238_hsa_api_trace.csv", kHsaCalls},
                                     {"/r/238_kernel_trace.csv", kKernelTrace},
                                     {"/r/238_marker_api_trace.csv", kMarkers},
                                     {"/r/238_memory_copy_trace.csv", kCopies}});
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[0].op, "aten::mm");
  EXPECT_EQ(profile.kernels[0].shape, "M=8,N=4,K=2");
  EXPECT_EQ(profile.kernels[0].launch.grid, (Dim3{64, 64, 1}));
  EXPECT_EQ(profile.kernels[0].registers, 68u);
  EXPECT_EQ(profile.kernels[1].op, "");
  const DeviceInfo& device = profile.environment.devices.at(0);
  EXPECT_EQ(device.name, "AMD Instinct MI300X");
  EXPECT_EQ(device.arch, "gfx942");
  EXPECT_EQ(device.compute_units, 304);
  EXPECT_EQ(device.clock_mhz, 2100);
  EXPECT_EQ(device.shared_memory_per_unit, 65536);
  EXPECT_EQ(profile.environment.devices.size(), 1u);

  const Timeline& timeline = profile.timeline;
  EXPECT_EQ(timeline.calls.size(), 4u) << "HSA's calls are below HIP's";
  ASSERT_EQ(timeline.activities.size(), 4u);
  EXPECT_EQ(timeline.activities[1].stream, 3u);
  ASSERT_NE(timeline.activities[1].call, kNone);
  EXPECT_EQ(timeline.names[timeline.calls[timeline.activities[1].call].name], "hipLaunchKernel");
  EXPECT_EQ(timeline.ranges.size(), 1u) << "a mark is no range";
  EXPECT_EQ(timeline.ranges[0].kind, RangeKind::kStep);
  ASSERT_EQ(profile.copies.size(), 2u);
  EXPECT_EQ(profile.copies[0].kind, "h2d");
  EXPECT_EQ(profile.copies[1].kind, "d2h");
  ASSERT_EQ(profile.processes.size(), 1u);
  EXPECT_EQ(profile.processes[0].pid, 238);
  EXPECT_NE(find_note(profile, "copies_without_bytes"), nullptr);
}

TEST(RocprofCsv, CountersGoToTheirLaunches) {
  const Profile with_trace = import_ok(
      {{"/r/1_kernel_trace.csv", kKernelTrace}, {"/r/1_counter_collection.csv", kCounters}});
  ASSERT_EQ(with_trace.kernels.size(), 1u);
  EXPECT_EQ(with_trace.coverage.launches_seen, 2) << "counted once";
  EXPECT_EQ(counter(with_trace.kernels[0], "SQ_WAVES"), 16385);
  EXPECT_EQ(counter(with_trace.kernels[0], "TCC_HIT"), 15) << "instances add up";

  const Profile alone = import_ok({{"/r/pmc_1/1_counter_collection.csv", kCounters},
                                   {"/r/pmc_2/1_counter_collection.csv", kCounters}});
  ASSERT_EQ(alone.kernels.size(), 1u);
  EXPECT_EQ(alone.coverage.launches_seen, 2) << "the second pass ran the program anew";
  EXPECT_EQ(alone.kernels[0].duration.total_ns(), 2500);
  EXPECT_EQ(alone.kernels[0].launch.grid, (Dim3{4096, 1, 1}));
  EXPECT_TRUE(alone.timeline.empty());
  EXPECT_NE(find_note(alone, "replayed"), nullptr);
}

TEST(RocprofCsv, PmcPerfOfRocprofCompute) {
  const Profile profile = import_ok(
      {{"pmc_perf.csv",
        "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
        "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,wave_size,Kernel_Name,Start_Timestamp,"
        "End_Timestamp,Correlation_ID,SQ_WAVES,TCC_HIT[0]\n"
        "0,4,1,9,9,1024,64,0,0,8,0,16,64,\"vcopy(double*, int) (.kd)\",100,300,1,16,2.5\n"
        "1,4,1,9,9,1024,64,0,0,8,0,16,64,\"vcopy(double*, int) (.kd)\",400,800,2,18,\n"},
       {"sysinfo.csv",
        "workload_name,command,gpu_model,gpu_arch,cu_per_gpu,wave_size,max_sclk\n"
        "vcopy,./vcopy,MI210,gfx90a,104,64,1700\n"},
       {"roofline.csv", "device,HBMBw,HBMBwLow,HBMBwHigh,L2Bw\n0,1388.4,1380.1,1390.2,3500\n"}});
  const DeviceInfo& device = profile.environment.devices.at(0);
  EXPECT_EQ(device.name, "MI210");
  EXPECT_EQ(device.arch, "gfx90a");
  EXPECT_EQ(device.compute_units, 104);
  EXPECT_EQ(device.memory_bytes_per_s, 1388.4e9);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].name, "vcopy(double*, int)");
  EXPECT_EQ(profile.kernels[0].duration.total_ns(), 600);
  EXPECT_EQ(counter(profile.kernels[0], "SQ_WAVES"), 17);
  EXPECT_EQ(counter(profile.kernels[0], "TCC_HIT[0]"), 2.5);
  EXPECT_EQ(profile.kernels[0].counters.size(), 2u);
  EXPECT_TRUE(profile.timeline.empty());
}

constexpr const char* kStats =
    "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n"
    "\"gemm(double*, int)\",24,10650240,443760,88.7\n"
    "\"hipLaunchKernel\",24,1000,41,0.1\n"
    "\"MEMORY_COPY_HOST_TO_DEVICE\",4,4000,1000,0.1\n";

// One table per set of counters, as rocprof-compute writes them, and one folder per pass.
TEST(RocprofCsv, LaunchesOfSeveralPassesCountOnce) {
  const auto table = [](const std::string& counter, int pid) {
    std::string text = "Dispatch_ID,Kernel_Name,GPU_ID,pid,Grid_Size,Workgroup_Size" + counter +
                       ",Start_Timestamp,End_Timestamp\n";
    for (int i = 0; i < 3; ++i)
      text += fmt::format("{},\"copy(int)\",2,{},1024,256{},{},{}\n", i, pid,
                          counter.empty() ? "" : fmt::format(",{}", 10 * i), 1000 * i + 1,
                          1000 * i + 101);
    return text;
  };
  const Texts folder = {
      {"r/SQ_A.csv", table(",SQ_A", 10)},
      {"r/SQ_B.csv", table(",SQ_B", 11)},
      {"r/pmc_dispatch_info.csv", "Dispatch_ID,Kernel_Name,GPU_ID\n0,\"copy(int)\",2\n"},
      {"r/pmc_perf.csv", table(",TCC_C", 12)},
      {"r/timestamps.csv", table("", 13)}};
  const Profile profile = import_ok(folder);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].duration.count(), 3);
  EXPECT_DOUBLE_EQ(profile.kernels[0].duration.total_ns(), 300);
  for (const char* name : {"SQ_A", "SQ_B", "TCC_C"})
    EXPECT_EQ(counter(profile.kernels[0], name), 10) << name;
  EXPECT_EQ(profile.processes.size(), 1u);
  EXPECT_EQ(profile.coverage.launches_seen, 3);
  // Any subset of the tables has the same three launches, and a list without times is not more.
  for (std::size_t left_out = 0; left_out < folder.size(); ++left_out) {
    Texts rest = folder;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Profile part = import_ok(rest);
    EXPECT_EQ(part.coverage.launches_seen, 3) << left_out;
    EXPECT_EQ(find_note(part, "durations_unknown"), nullptr) << left_out;
  }
  // The same counters of two processes are two times three launches.
  const Profile two =
      import_ok({{"r/results_1.csv", table(",SQ_A", 1)}, {"r/results_2.csv", table(",SQ_A", 2)}});
  EXPECT_EQ(two.coverage.launches_seen, 6);
  // rocprofv3 traces kernels in every pass.
  const std::string counters =
      "Correlation_Id,Dispatch_Id,Agent_Id,Kernel_Name,Grid_Size,Workgroup_Size,Counter_Name,"
      "Counter_Value,Start_Timestamp,End_Timestamp\n";
  const Profile passes = import_ok(
      {{"o/pass_1/1_kernel_trace.csv", kKernelTrace},
       {"o/pass_2/2_kernel_trace.csv", kKernelTrace},
       {"o/pass_10/3_counter_collection.csv",
        counters + "1,17,Agent 1,\"gemm(double*, int)\",1048576,256,SQ_WAVES,4,1000,2000\n"}});
  const Profile one = import_ok({{"o/pass_1/1_kernel_trace.csv", kKernelTrace}});
  EXPECT_EQ(passes.coverage.launches_seen, one.coverage.launches_seen);
}

TEST(RocprofCsv, AGpuIsNumberedAmongTheGpus) {
  const Profile profile = import_ok(
      {{"r/1_agent_info.csv",
        "Node_Id,Logical_Node_Id,Agent_Type,Cu_Count,Name,Product_Name\n0,0,CPU,0,x,EPYC\n"
        "4,4,GPU,228,gfx942,AMD Instinct MI300A\n5,5,GPU,228,gfx942,AMD Instinct MI300A\n"},
       {"r/1_kernel_trace.csv",
        "Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
        "KERNEL_DISPATCH,Agent 5,k,1,2\n"}});
  EXPECT_EQ(profile.environment.devices.at(0).id, "hip:1");
}

TEST(RocprofCsv, TotalsAlone) {
  const Profile profile = import_ok({{"results.stats.csv", kStats}});
  ASSERT_EQ(profile.kernels.size(), 1u) << "API functions are no kernels";
  EXPECT_EQ(profile.kernels[0].duration.count(), 24);
  EXPECT_NEAR(profile.kernels[0].duration.total_ns(), 10650240, 1e-3);
  ASSERT_EQ(profile.copies.size(), 1u);
  EXPECT_EQ(profile.copies[0].duration.count(), 4);
  EXPECT_NE(find_note(profile, "aggregates_only"), nullptr);

  const Profile both = import_ok({{"results.csv", kResults}, {"results.stats.csv", kStats}});
  EXPECT_EQ(both.coverage.launches_seen, 2) << "the trace has them already";
}

TEST(RocprofCsv, DamagedRowsAndCutFiles) {
  const std::string trace = kKernelTrace;
  const Profile odd =
      import_ok({{"k_kernel_trace.csv",
                  trace + "\"KERNEL_DISPATCH\",\"Agent 1\",1\n" +
                      "\"KERNEL_DISPATCH\",\"Agent "
                      "1\",1,3,7777,2,17,\"k\",104,9000,8000,0,0,64,4,32,256,1,1,1,1,1"
                      "\n\"KERNEL_DISPATCH\",\"Agent "
                      "1\",1,3,7777,2,17,\"k\",104,x,8000,0,0,64,4,32,256,1,1,1,1,1\n"}});
  EXPECT_EQ(odd.coverage.launches_seen, 2);
  ASSERT_NE(find_note(odd, "rows_damaged"), nullptr);
  EXPECT_EQ(find_note(odd, "rows_damaged")->count, 3);
  EXPECT_NE(find_note(odd, "rows_damaged")->text.find("line 4"), std::string::npos);
  EXPECT_FALSE(odd.partial);

  for (const std::size_t cut : {trace.size() - 30, trace.rfind("gemm") + 2}) {
    const Profile partial = import_ok({{"k_kernel_trace.csv", trace.substr(0, cut)}});
    EXPECT_TRUE(partial.partial);
    EXPECT_EQ(partial.coverage.launches_seen, 1);
    ASSERT_NE(find_note(partial, "damaged"), nullptr);
    EXPECT_NE(find_note(partial, "damaged")->text.find("line 3"), std::string::npos);
  }
  EXPECT_EQ(import_texts({{"x.csv", "a,b\n1,2\n"}}).status().code(), Code::kInvalid);
  EXPECT_EQ(import_texts({{"x.csv", ""}}).status().code(), Code::kInvalid);
}

TEST(RocprofCsv, FoldersAreSearched) {
  const std::string folder = *make_temporary_directory("purlin-rocprof");
  const std::string deeper = join_path(folder, "host/run");
  ASSERT_TRUE(make_directories(deeper).is_ok());
  ASSERT_TRUE(write_atomic(join_path(deeper, "238_kernel_trace.csv"), kKernelTrace).is_ok());
  ASSERT_TRUE(write_atomic(join_path(deeper, "238_hip_api_trace.csv"), kHipCalls).is_ok());
  ASSERT_TRUE(write_atomic(join_path(folder, "other.csv"), "a,b\n1,2\n").is_ok());
  const Result<Profile> profile = import_rocprof_csv(folder, {});
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_EQ(profile->timeline.calls.size(), 4u);
  EXPECT_EQ(profile->coverage.launches_seen, 2);
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

TEST(RocprofTables, AreKnownByTheirHeaders) {
  for (const char* text : {kResults, kKernelTrace, kAgents, kHipCalls, kCopies, kCounters, kStats})
    EXPECT_TRUE(looks_like_rocprof_csv(text)) << text;
  EXPECT_TRUE(looks_like_rocprof_csv(
      "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\","
      "\"Start_Timestamp\",\"End_Timestamp\",\"Private_Segment_Size\",\"Group_Segment_Size\"\n"));
  EXPECT_TRUE(looks_like_rocprof_csv(
      "\nDomain,Function,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID\n"));
  for (const char* text :
       {"", "\n\n", "a,b\n", "\"ID\",\"Kernel Name\",\"Metric Name\"\n", "Name,Calls\n",
        "\"Time (%)\",\"Total Time (ns)\",\"Instances\",\"Name\"\n", "{\"traceEvents\": []}"})
    EXPECT_FALSE(looks_like_rocprof_csv(text)) << text;
  EXPECT_EQ(without_clone_marks("k(int) [clone .kd]"), "k(int)");
  EXPECT_EQ(without_clone_marks("k.kd"), "k");
  EXPECT_EQ(without_clone_marks("k (.kd)"), "k");
}

}  // namespace
}  // namespace purlin::profile
