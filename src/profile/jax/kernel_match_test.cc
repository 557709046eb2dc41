// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/kernel_match.h"

#include "base/text.h"
#include "profile/import/input.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace purlin::profile {
namespace {

struct Ran {
  std::string kernel;
  std::int64_t ns = 10'000;
};

// One after the other on one stream of an H200.
Profile run_of(const std::vector<Ran>& launches) {
  Profile run;
  DeviceInfo device;
  device.name = "NVIDIA H200";
  run.environment.devices.push_back(device);
  ProcessInfo process;
  process.pid = 7;
  run.processes.push_back(process);
  std::int64_t now = 1000;
  for (const Ran& each : launches) {
    std::uint32_t row = 0;
    while (row < run.kernels.size() && run.kernels[row].name != each.kernel) ++row;
    if (row == run.kernels.size()) {
      run.kernels.emplace_back();
      run.kernels.back().name = each.kernel;
    }
    run.kernels[row].duration.add(static_cast<double>(each.ns));
    Activity activity;
    activity.start_ns = now;
    activity.duration_ns = each.ns;
    activity.row = row;
    run.timeline.activities.push_back(activity);
    now += each.ns;
  }
  return run;
}

hlo::Launch named(std::string kernel, std::string shape, std::uint64_t signature) {
  hlo::Launch launch;
  launch.kernel = std::move(kernel);
  launch.op = "jit(step)/" + launch.kernel;
  launch.shape = std::move(shape);
  launch.op_class = "elementwise";
  launch.signature = signature;
  return launch;
}

hlo::Launch product(std::string shape, std::uint64_t signature, double flops = 1e6) {
  hlo::Launch launch;
  launch.instruction = "custom-call.1";
  launch.op = "jit(step)/dot_general";
  launch.shape = std::move(shape);
  launch.dtype = "bf16";
  launch.op_class = "gemm";
  launch.flops = flops;
  launch.signature = signature;
  return launch;
}

hlo::Program program_of(std::string name, std::vector<hlo::Launch> launches) {
  hlo::Program program;
  program.name = std::move(name);
  program.launches = std::move(launches);
  for (std::uint32_t i = 0; i < program.launches.size(); ++i) program.order.push_back(i);
  return program;
}

const std::string kNvjet = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN";

// "kernel op shape count" of each row.
std::vector<std::string> rows_of(const Profile& run) {
  std::vector<std::string> out;
  for (const KernelRow& row : run.kernels)
    out.push_back(row.name.substr(0, 5) + " " + row.op.substr(row.op.rfind('/') + 1) + " " +
                  row.shape + " " + std::to_string(static_cast<int>(row.duration.count())));
  return out;
}

using Rows = std::vector<std::string>;

// add, product, mul, product, product, sub: with two kinds of products of one kernel.
hlo::Program step(bool chained = true) {
  hlo::Launch third = product("M=3,N=3,K=3", 23);
  third.chained = chained;
  return program_of(
      "jit_step", {named("aaaaa", "n=1", 11), product("M=1,N=1,K=1", 21), named("bbbbb", "n=2", 12),
                   product("M=2,N=2,K=2", 22), third, named("ccccc", "n=3", 13)});
}

std::vector<Ran> repeated(const std::vector<Ran>& once, int times) {
  std::vector<Ran> out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), once.begin(), once.end());
  return out;
}

TEST(KernelMatch, LibraryKernelsBetweenNamedOnesSplitTheirRow) {
  Profile run = run_of(repeated(
      {{"aaaaa"}, {kNvjet, 10'000}, {"bbbbb"}, {kNvjet, 20'000}, {kNvjet, 30'000}, {"ccccc"}}, 5));
  const ProgramMatch match = match_programs(run, {{7, {step()}}});
  EXPECT_EQ(rows_of(run),
            (Rows{"aaaaa aaaaa n=1 5", "nvjet dot_general M=1,N=1,K=1 5", "bbbbb bbbbb n=2 5",
                  "ccccc ccccc n=3 5", "nvjet dot_general M=2,N=2,K=2 5",
                  "nvjet dot_general M=3,N=3,K=3 5"}));
  EXPECT_EQ(run.kernels[1].duration.total_ns(), 50'000);
  EXPECT_EQ(run.kernels[5].duration.total_ns(), 150'000);
  EXPECT_EQ(run.timeline.activities[3].row, 4u);
  EXPECT_EQ(match.heavy_ns, 300'000);
  EXPECT_EQ(match.heavy_with_shape_ns, 300'000);
  EXPECT_EQ(match.with_op_ns, match.total_ns);
}

TEST(KernelMatch, AnotherNumberOfLibraryKernelsMatchesNothing) {
  Profile run = run_of(
      repeated({{"aaaaa"}, {kNvjet}, {"bbbbb"}, {kNvjet}, {kNvjet}, {kNvjet}, {"ccccc"}}, 5));
  const ProgramMatch match = match_programs(run, {{7, {step()}}});
  EXPECT_EQ(rows_of(run), (Rows{"aaaaa aaaaa n=1 5", "nvjet   15", "bbbbb bbbbb n=2 5",
                                "ccccc ccccc n=3 5", "nvjet dot_general M=1,N=1,K=1 5"}));
  EXPECT_LT(match.heavy_with_shape_ns, match.heavy_ns);
}

TEST(KernelMatch, ProductsThatMayRunInAnotherOrderMatchNothing) {
  const std::vector<Ran> ran =
      repeated({{"aaaaa"}, {kNvjet}, {"bbbbb"}, {kNvjet}, {kNvjet}, {"ccccc"}}, 5);
  Profile run = run_of(ran);
  match_programs(run, {{7, {step(false)}}});
  EXPECT_EQ(rows_of(run), (Rows{"aaaaa aaaaa n=1 5", "nvjet   10", "bbbbb bbbbb n=2 5",
                                "ccccc ccccc n=3 5", "nvjet dot_general M=1,N=1,K=1 5"}));
  // Two kernels where one call is: another's ran before its turn.
  Profile early = run_of(repeated({{"aaaaa"}, {kNvjet}, {"nvjet_other"}, {"bbbbb"}}, 5));
  match_programs(early, {{7, {step()}}});
  EXPECT_EQ(rows_of(early)[1], "nvjet   5");
  EXPECT_EQ(rows_of(early)[2], "nvjet   5");
}

TEST(KernelMatch, HelpersOfOneCallHaveItsOpAndNoShape) {
  Profile run = run_of(repeated({{"aaaaa"},
                                 {"cublasLt::splitKreduce_kernel", 2000},
                                 {kNvjet, 10'000},
                                 {"bbbbb"},
                                 {kNvjet},
                                 {kNvjet},
                                 {"ccccc"}},
                                3));
  match_programs(run, {{7, {step()}}});
  EXPECT_EQ(rows_of(run)[1], "cubla dot_general  3");
}

TEST(KernelMatch, TheScheduleTellsNamesakesApart) {
  const hlo::Program other =
      program_of("jit_other", {named("aaaaa", "n=9", 91), named("ddddd", "n=8", 92)});
  Profile run =
      run_of(repeated({{"aaaaa"}, {kNvjet}, {"bbbbb"}, {kNvjet}, {kNvjet}, {"ccccc"}}, 5));
  match_programs(run, {{7, {other, step()}}});
  EXPECT_EQ(rows_of(run)[0], "aaaaa aaaaa n=1 5");
  // Of a program that is gone: no neighbour fits.
  Profile stranger = run_of(repeated({{"aaaaa"}, {"eeeee"}, {"fffff"}}, 5));
  match_programs(
      stranger,
      {{7, {program_of("jit_x", {named("aaaaa", "n=9", 91), named("ggggg", "n=8", 92)})}}});
  EXPECT_EQ(rows_of(stranger)[0], "aaaaa   5");
  // Of another process.
  match_programs(run, {{8, {step()}}});
}

// Two programs whose schedules fit equally well: what both do alike has an op.
TEST(KernelMatch, ATieOfProgramsMatchesNothing) {
  const auto program = [](const char* name, const char* shape, std::uint64_t first) {
    return program_of(name, {named("aaaaa", shape, first), named("bbbbb", "n=2", 12)});
  };
  for (const bool swapped : {false, true}) {
    std::vector<hlo::Program> programs = {program("p", "n=1", 11), program("q", "n=9", 91)};
    if (swapped) std::swap(programs[0], programs[1]);
    Profile run = run_of(repeated({{"aaaaa"}, {"bbbbb"}}, 5));
    match_programs(run, {{7, programs}});
    EXPECT_EQ(rows_of(run), (Rows{"aaaaa   5", "bbbbb bbbbb n=2 5"})) << swapped;
  }
}

// One near neighbour of eight may be chance, where the program has more.
TEST(KernelMatch, OneNeighbourOfManyIsTooFew) {
  const auto of = [](const std::string& letters) {
    std::vector<hlo::Launch> launches;
    for (const char c : letters)
      launches.push_back(named(std::string(5, c), "n=1", static_cast<std::uint64_t>(c)));
    return program_of("jit_" + letters, std::move(launches));
  };
  const auto first_op = [&](const std::string& ran, const std::string& program) {
    std::vector<Ran> launches;
    for (const char c : ran) launches.push_back({std::string(5, c)});
    Profile run = run_of(launches);
    match_programs(run, {{7, {of(program), of("qrstuv")}}});
    for (const KernelRow& row : run.kernels)
      if (row.name == "aaaaa") return row.op;
    return std::string("none ran");
  };
  EXPECT_EQ(first_op("qrsabtuv", "abcd"), "");
  EXPECT_EQ(first_op("qrsabctuv", "abcd"), "jit(step)/aaaaa");
  EXPECT_EQ(first_op("qrsabtuv", "ab"), "jit(step)/aaaaa") << "it has no more";
  // Two streams: the neighbours are not next to it.
  EXPECT_EQ(first_op("aqbrcs", "abc"), "jit(step)/aaaaa");
  EXPECT_EQ(first_op("aqrstbuv", "ab"), "") << "too far away";
}

TEST(KernelMatch, ALonelyKernelMustHaveItsNameAndSize) {
  const auto op_of = [](double elements, int programs, std::uint32_t blocks) {
    Profile run = run_of({{"aaaaa"}, {"other"}});
    run.kernels[0].launch.block[0] = 128;
    run.kernels[0].launch.grid[0] = blocks;
    hlo::Launch alone = named("aaaaa", "n=1", 11);
    alone.elements = elements;
    std::vector<hlo::Program> all;
    for (int i = 0; i < programs; ++i) all.push_back(program_of("jit_f", {alone}));
    match_programs(run, {{7, all}});
    return run.kernels[0].op;
  };
  EXPECT_EQ(op_of(4096, 1, 32), "jit(step)/aaaaa");
  EXPECT_EQ(op_of(4096, 1, 2), "jit(step)/aaaaa") << "16 elements of each thread";
  EXPECT_EQ(op_of(4096, 1, 33), "");
  EXPECT_EQ(op_of(4096, 1, 1), "");
  EXPECT_EQ(op_of(0, 1, 32), "") << "its size is not known";
  EXPECT_EQ(op_of(4096, 2, 32), "") << "of two programs";
}

TEST(KernelMatch, KernelsOfCompilationAreNoPartOfAProgram) {
  Profile run = run_of({{"stream_executor::gpu::DelayKernel"},
                        {kNvjet},
                        {"stream_executor::gpu::RedzoneAllocatorKernelImpl"},
                        {"aaaaa"},
                        {kNvjet},
                        {"bbbbb"},
                        {kNvjet},
                        {kNvjet},
                        {"ccccc"}});
  match_programs(run, {{7, {step()}}});
  EXPECT_EQ(rows_of(run)[1], "nvjet   1");
  EXPECT_EQ(rows_of(run).size(), 9u);  // three shapes, and the product that was tried
}

TEST(KernelMatch, WhatTheDeviceCannotDoIsDropped) {
  // 1e12 operations in 10 us; float32 where the name says bf16; 1 GB in 10 us.
  hlo::Launch fast = product("M=1,N=1,K=1", 21, 1e12), other = product("M=1,N=1,K=1", 21);
  other.dtype = "f32";
  hlo::Launch large = named("bbbbb", "n=2", 12);
  large.bytes = 1e9;
  for (const hlo::Launch& wrong : {fast, other}) {
    Profile run = run_of(repeated({{"aaaaa"}, {kNvjet}, {"bbbbb"}}, 5));
    const ProgramMatch match =
        match_programs(run, {{7, {program_of("p", {named("aaaaa", "n=1", 11), wrong, large})}}});
    EXPECT_EQ(rows_of(run), (Rows{"aaaaa aaaaa n=1 5", "nvjet   5", "bbbbb   5"}));
    EXPECT_EQ(match.implausible, 10);
    EXPECT_EQ(match.heavy_with_shape_ns, 0);
  }
}

TEST(KernelMatch, TheProgramsOwnNamesStayAndMarksOfXlaDoNot) {
  Profile run = run_of(repeated({{"aaaaa"}, {kNvjet}, {"bbbbb"}}, 5));
  run.kernels[0].op = "forward";
  run.kernels[2].op = "Thunk:#hlo_op=bbbbb#";
  const auto launches = program_of(
      "p", {named("aaaaa", "n=1", 11), product("M=1,N=1,K=1", 21), named("bbbbb", "n=2", 12)});
  match_programs(run, {{7, {launches}}});
  EXPECT_EQ(rows_of(run),
            (Rows{"aaaaa forward  5", "nvjet dot_general M=1,N=1,K=1 5", "bbbbb bbbbb n=2 5"}));
}

TEST(KernelMatch, ALonelyProductIsKnownByXlasMarks) {
  Profile run = run_of(repeated({{kNvjet}}, 5));
  Timeline& timeline = run.timeline;
  timeline.names = {"", "XlaModule:#hlo_module=jit_f,program_id=4#",
                    "Thunk:#name=x,hlo_op=custom-call.1,unique_hlo_op_id=3#"};
  Op module, thunk;
  module.name = 1, thunk.name = 2, thunk.parent = 0;
  timeline.ops = {module, thunk};
  timeline.calls.resize(1);
  timeline.calls[0].op = 1;
  for (Activity& each : timeline.activities) each.call = 0;
  const hlo::Program f = program_of("jit_f", {product("M=1,N=1,K=1", 21)});
  Profile twice = run, elsewhere = run;
  match_programs(run, {{7, {f}}});
  EXPECT_EQ(rows_of(run), (Rows{"nvjet dot_general M=1,N=1,K=1 5"}));
  // Two programs of that name with other shapes; a program of another name.
  match_programs(twice, {{7, {f, program_of("jit_f", {product("M=2,N=2,K=2", 22)})}}});
  EXPECT_EQ(rows_of(twice), (Rows{"nvjet   5"}));
  match_programs(elsewhere, {{7, {program_of("jit_g", {product("M=1,N=1,K=1", 21)})}}});
  EXPECT_EQ(rows_of(elsewhere), (Rows{"nvjet   5"}));
}

// Each of many programs has all of the names, and the kernels come in ever another order.
TEST(KernelMatch, ManyProgramsOfTheSameNames) {
  constexpr int kPrograms = 2000, kNames = 10;
  ProcessPrograms process{7, {}};
  for (int p = 0; p < kPrograms; ++p) {
    std::vector<hlo::Launch> launches;
    for (int i = 0; i < kNames; ++i)
      launches.push_back(named("name" + std::to_string(i), "n=1", 1 + i));
    process.programs.push_back(program_of("jit", std::move(launches)));
  }
  std::vector<Ran> ran;
  for (int i = 0; i < 40'000; ++i) ran.push_back({"name" + std::to_string(i * 7 % 11 % kNames)});
  Profile run = run_of(ran);
  const ProgramMatch match = match_programs(run, {process});
  EXPECT_EQ(match.launches, 40'000);
  // One program that gives all of its launches one name.
  hlo::Program one = program_of("jit", {});
  for (std::uint64_t i = 1; i <= 300'000; ++i) one.launches.push_back(named("name0", "n=1", i));
  for (std::uint32_t i = 0; i < one.launches.size(); ++i) one.order.push_back(i);
  Profile other = run_of(std::vector<Ran>(20, {"name0"}));
  EXPECT_EQ(match_programs(other, {{7, {one}}}).launches, 0);
}

std::string recorded(const std::string& name) {
  Result<Input> input = Input::open(std::string(PURLIN_SOURCE_DIR) + "/tests/data/hlo/" + name);
  return input.is_ok() ? input->read_all(4 << 20).value_or("") : "";
}

// Three steps of a convolutional net on an H200, in CUDA graphs that change the order (tests/data).
TEST(KernelMatch, RecordedStepsOfAConvolutionalNet) {
  std::vector<Ran> ran;
  for (const std::string& line : split(recorded("conv_steps_h200.tsv.gz"), '\n')) {
    const std::vector<std::string> cells = split(line, '\t');
    if (cells.size() == 5) ran.push_back({cells[4], parse_int(cells[1]).value_or(0)});
  }
  ASSERT_GT(ran.size(), 200u);
  Profile run = run_of(ran);
  const std::string text = recorded("jax_0.11_h200.hlo.gz");
  const std::vector<hlo::Module> modules = hlo::read_modules(text);
  ASSERT_EQ(modules.size(), 2u);
  ProcessPrograms programs{7, {}};
  for (const hlo::Module& module : modules) programs.programs.push_back(hlo::program_of(module));
  const ProgramMatch match = match_programs(run, {programs});
  EXPECT_EQ(match.heavy_with_shape_ns, match.heavy_ns);
  EXPECT_GT(match.with_op_ns, 0.97 * match.total_ns);
  EXPECT_EQ(match.implausible, 0);
  // What the kernels' names tell agrees: forward, gradients of images and of filters, 4 layers.
  int forward = 0, images = 0, filters = 0;
  for (const KernelRow& row : run.kernels) {
    if (row.shape.find("K=") == std::string::npos || row.shape.find("R=3") == std::string::npos)
      continue;
    const bool gradient = row.shape.find("gradients=1") != std::string::npos;
    const auto says = [&](const char* word) { return row.name.find(word) != std::string::npos; };
    EXPECT_EQ(gradient, says("wgrad") || says("dgrad") || says("Wgrad")) << row.name;
    forward += !gradient, images += says("dgrad"), filters += says("wgrad") || says("Wgrad");
  }
  EXPECT_EQ(forward, 4);
  EXPECT_EQ(images, 3);
  EXPECT_EQ(filters, 4);
}

}  // namespace
}  // namespace purlin::profile
