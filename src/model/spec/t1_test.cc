// SPDX-License-Identifier: Apache-2.0
#include "model/spec/t1.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

// As the published files are, made small; `kernel` and `argument` are further members.
std::string document(const std::string& kernel = "", const std::string& argument = "") {
  return R"T1({
 "General": {"BenchmarkName": "blur"},
 "ConfigurationSpace": {
  "TuningParameters": [
   {"Name": "bx", "Type": "int", "Values": "[16, 32] + list(range(64, 128+1, 64))", "Default": 32},
   {"Name": "tile", "Type": "int", "Values": "[i for i in range(1, 4)]", "Default": [2]},
   {"Name": "width", "Type": "int", "Values": [15], "Default": 1}],
  "Conditions": [{"Expression": "bx * tile <= 128", "Parameters": ["bx", "tile"]}]
}
, "KernelSpecification" : {
  "Language": "CUDA", "CompilerOptions": ["-std=c++11"], "KernelName": "blur_kernel",
  "KernelFile": "blur.cu", "GlobalSizeType": "CUDA",
  "LocalSize": {"X": "bx", "Y": "1", "Z": "1"}, "GlobalSize": {"X": "7", "Y": "1", "Z": "1"},
  "GridDivX": ["bx", "tile"], "ProblemSize": [4096, 64], "SharedMemory": 0, "Stream": null)T1" +
         kernel + R"T1(,
  "Arguments": [
   {"Name": "out", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly",
    "FillType": "Constant", "Size": "ProblemSize[0]*ProblemSize[1]", "FillValue": 0.0, "Output": 1},
   {"Name": "in", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly",
    "FillType": "Random", "Size": "ProblemSize[0] + max(width) - 1", "FillValue": 2.0)T1" +
         argument + R"T1(},
   {"Name": "scale", "Type": "float", "MemoryType": "Scalar", "AccessType": "ReadOnly",
    "FillValue": 0.5}]}})T1";
}

Result<KernelSpec> parse(const std::string& text, SpecUse use = SpecUse::kRun) {
  return parse_t1(text, "dir/blur.json", use, [](const std::string& path) -> Result<std::string> {
    if (path == "dir/blur.cu") return std::string("__global__ void blur_kernel() {}");
    return error(Code::kNotFound, "no {}", path);
  });
}

std::string problem_of(const std::string& text) {
  const Result<KernelSpec> spec = parse(text);
  return spec.is_ok() ? "" : spec.status().message();
}

TEST(T1, ReadsSpaceLaunchAndArguments) {
  const Result<KernelSpec> spec = parse(document());
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  EXPECT_EQ(spec->name, "blur");
  EXPECT_EQ(spec->entry, "blur_kernel");
  EXPECT_EQ(spec->problem.text(), "problem_size_x=4096,problem_size_y=64");
  ASSERT_EQ(spec->parameters.size(), 3u);
  EXPECT_EQ(spec->parameters[0].values.size(), 4u);
  EXPECT_EQ(spec->parameters[1].values.size(), 3u);
  // 1 is no value of width, so that its first stands in.
  EXPECT_EQ(default_config(*spec).text(), "bx=32 tile=2 width=15");
  EXPECT_TRUE(check_constraints(
                  *spec, config_scope(*spec, spec->problem, default_config(*spec), DeviceInfo{}))
                  .is_ok());
  const Scope scope = config_scope(*spec, spec->problem, default_config(*spec), DeviceInfo{});
  const Result<LaunchShape> launch = resolve_launch(spec->launch, scope, DeviceInfo{});
  ASSERT_TRUE(launch.is_ok()) << launch.status().message();
  EXPECT_EQ(launch->grid, (Dim3{64, 1, 1}));  // 4096 / (32 * 2)
  EXPECT_EQ(launch->block, (Dim3{32, 1, 1}));
  EXPECT_EQ(spec->arguments[0].role, Argument::Role::kOutput);
  EXPECT_EQ(spec->arguments[1].shape[0].expression.evaluate_int(scope.lookup()).value(), 4110);
  EXPECT_EQ(spec->arguments[1].fill, Argument::Fill::kUniform);
  EXPECT_EQ(spec->arguments[1].fill_b, 2);
  EXPECT_EQ(spec->arguments[2].role, Argument::Role::kScalar);
}

TEST(T1, TheReferenceIsTheDefaultConfig) {
  const KernelSpec spec = parse(document()).value();
  const std::vector<std::string> options = {"-std=c++11", "-Dbx=32", "-Dtile=2", "-Dwidth=15"};
  EXPECT_EQ(spec.reference.sources.at("cuda").options, options);
  const Scope no_config = config_scope(spec, spec.problem, {}, DeviceInfo{});
  const Result<LaunchShape> launch = resolve_launch(spec.reference.launch, no_config, DeviceInfo{});
  ASSERT_TRUE(launch.is_ok()) << launch.status().message();
  EXPECT_EQ(launch->grid, (Dim3{64, 1, 1}));
  EXPECT_EQ(launch->block, (Dim3{32, 1, 1}));
}

TEST(T1, ASpaceNeedsNoSourceAndNoLaunch) {
  std::string text = document(R"(, "Whatever": 1)");
  text.replace(text.find("blur.cu"), 7, "gone.cu");
  EXPECT_TRUE(parse(text, SpecUse::kSpace).is_ok());
  EXPECT_FALSE(parse(text).is_ok());
}

TEST(T1, RefusesWhatPurlinLacksByName) {
  const auto refuses = [](const std::string& text, const std::string& why) {
    EXPECT_NE(problem_of(text).find(why), std::string::npos) << problem_of(text);
  };
  refuses(document(R"(, "SimulationInput": "x.csv")"), "has nothing for 'SimulationInput'");
  refuses(document("", R"(, "MemType": "Constant")"), "argument 'in': MemType 'Constant'");
  refuses(document("", R"(, "DataSource": "a.bin")"), "has nothing for 'DataSource'");
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = document();
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  refuses(with("\"CUDA\"", "\"HIP\""), "'HIP' is neither CUDA nor OpenCL");
  refuses(with("\"Random\"", "\"BinaryRaw\""), "FillType 'BinaryRaw'");
  refuses(with("max(width)", "bx"), "write max(bx)");
  refuses(with("bx * tile", "bx * tyle"),
          "Conditions[0]: 'bx * tyle <= 128' uses the unknown name");
  refuses(with("\"Stream\": null", "\"Stream\": 3"), "in one stream");
  refuses(with("[16, 32]", "[16, 32"), "parameter 'bx': Values");
  refuses("{}", "no 'ConfigurationSpace'");
  refuses("{", "line 1");
}

}  // namespace
}  // namespace purlin
