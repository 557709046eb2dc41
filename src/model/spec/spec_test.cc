// SPDX-License-Identifier: Apache-2.0
#include "model/spec/spec.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin {
namespace {

constexpr std::string_view kGemm = R"toml(schema = "purlin.spec/1"
name = "gemm"
summary = "C = A * B"
seed = 7
constraints = ["BM % TM == 0", "(BM // TM) * (BN // TN) <= device_max_threads"]

[problem]
M = 512
N = 256
[problem.presets.large]
M = 4096

[kernel]
entry = "gemm"
[kernel.opencl]
file = "gemm.cl"
options = ["-cl-mad-enable"]
[kernel.cuda]
file = "cuda/gemm.cu"

[parameters]
BM = [16, 32, 64]
BN = {values = [16, 32], default = 32}
TM = {powers_of_two = [2, 8]}
TN = {range = [1, 5], step = 2}
SCALE = {range = [0.1, 0.3], step = 0.1}
VECTOR = [true, false]
LAYOUT = ["row", "column"]

[launch]
grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
block = ["BN // TN", "BM // TM"]
shared_memory = "4 * BM * BN"

[[arguments]]
name = "A"
role = "input"
dtype = "f16"
shape = ["M", "N"]
fill = "normal(0, 2.5)"
[[arguments]]
name = "C"
role = "output"
dtype = "f32"
shape = "M * N"
[[arguments]]
name = "M"
role = "scalar"
dtype = "i32"
value = "M"

[reference]
entry = "gemm_reference"
arguments = ["A", "C"]
[reference.opencl]
file = "reference.cl"
[reference.cuda]
file = "reference.cu"
[reference.launch]
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [16, 16]

[tolerance]
rtol = 1e-3
atol = 0

[work]
flops = "2 * M * N"
bytes = "4 * (M + N)"

[bucket]
M = "pow2"
N = "multiple:64"
)toml";

Result<std::string> read_source(const std::string& path) {
  if (path.find("missing") != std::string::npos)
    return error(Code::kNotFound, "cannot read '{}'", path);
  return "// " + path;
}

Result<KernelSpec> parse(std::string_view text) {
  return parse_spec(text, "specs/gemm.toml", read_source);
}

// The gemm spec with one piece of text replaced.
std::string gemm_with(std::string_view piece, std::string_view replacement) {
  std::string text(kGemm);
  const std::size_t at = text.find(piece);
  if (at == std::string::npos) return "piece not found: " + std::string(piece);
  return text.replace(at, piece.size(), replacement);
}

std::string values_text(const Parameter& parameter) {
  std::string out;
  for (const Value& value : parameter.values) out += to_text(value) + " ";
  return out;
}

TEST(Spec, StatesTheLayoutOfBuffers) {
  const auto layout = [](std::string_view role_and_layout) {
    return parse(gemm_with("shape = [\"M\", \"N\"]", role_and_layout));
  };
  EXPECT_EQ(layout("shape = [\"M\", \"N\"]\nlayout = \"column\"")->layout_text(), "A=column");
  EXPECT_EQ(layout("shape = [\"M * N\"]\nlayout = \"nhwc\"")->layout_text(), "A=nhwc");
  EXPECT_EQ(layout("shape = [\"M * N\"]\nlayout = \"blocked:nc32hw32\"")->layout_text(),
            "A=blocked:nc32hw32");
  EXPECT_EQ(layout("shape = [\"M * N\"]")->layout_text(), "flat");
  const Status wrong = layout("shape = [\"M\", \"N\"]\nlayout = \"colunm\"").status();
  EXPECT_NE(wrong.message().find("column"), std::string::npos) << wrong.message();
  EXPECT_FALSE(parse(gemm_with("value = \"M\"", "value = \"M\"\nlayout = \"row\"")).is_ok());
}

TEST(Spec, ReadsEverything) {
  const Result<KernelSpec> parsed = parse(kGemm);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  const KernelSpec& spec = *parsed;
  EXPECT_EQ(spec.name, "gemm");
  EXPECT_EQ(spec.op, "gemm");
  EXPECT_EQ(spec.seed, 7u);
  EXPECT_EQ(spec.problem.text(), "M=512,N=256");
  EXPECT_EQ(spec.presets.at("large").text(), "M=4096,N=256");
  EXPECT_EQ(spec.sources.at("opencl").text, "// specs/gemm.cl");
  EXPECT_EQ(spec.sources.at("opencl").options, (std::vector<std::string>{"-cl-mad-enable"}));
  EXPECT_EQ(spec.sources.at("cuda").text, "// specs/cuda/gemm.cu");
  ASSERT_EQ(spec.parameters.size(), 7u);
  EXPECT_EQ(values_text(spec.parameters[0]), "16 32 64 ");
  EXPECT_EQ(values_text(spec.parameters[1]), "16 32 ");
  EXPECT_EQ(values_text(spec.parameters[2]), "2 4 8 ");
  EXPECT_EQ(values_text(spec.parameters[3]), "1 3 5 ");
  EXPECT_EQ(values_text(spec.parameters[5]), "True False ");
  ASSERT_EQ(spec.parameters[4].values.size(), 3u);  // 0.3 is reached in spite of rounding
  EXPECT_EQ(default_config(spec).text(), "BM=16 BN=32 TM=2 TN=1 SCALE=0.1 VECTOR=True LAYOUT=row");
  ASSERT_EQ(spec.arguments.size(), 3u);
  EXPECT_EQ(spec.arguments[0].fill, Argument::Fill::kNormal);
  EXPECT_EQ(spec.arguments[0].fill_b, 2.5);
  EXPECT_EQ(spec.arguments[1].shape.size(), 1u);
  EXPECT_EQ(spec.reference.arguments, (std::vector<std::string>{"A", "C"}));
  EXPECT_EQ(spec.rtol, 1e-3);
  EXPECT_EQ(spec.bucket.at("N"), "multiple:64");
  EXPECT_EQ(spec.dtype_text(), "f32,f16");
  EXPECT_EQ(spec.layout_text(), "A=row");  // C has one extent
  EXPECT_EQ(spec.constraints[0].where, "specs/gemm.toml:5:16");
}

TEST(Spec, ReadsHowItIsCompiledAndMeasured) {
  const KernelSpec plain = *parse(kGemm);
  EXPECT_EQ(plain.sources.at("cuda").compiler, "");
  EXPECT_FALSE(plain.rotate_inputs);
  const std::string text =
      gemm_with("file = \"cuda/gemm.cu\"",
                "file = \"cuda/gemm.cu\"\ncompiler = \"nvcc\"\narch = [\"sm_90a\", \"sm_100a\"]\n"
                "include = [\"cutlass/include\"]");
  const Result<KernelSpec> parsed = parse(text + "\n[measure]\ninputs = \"rotate\"\n");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  const SourceText& source = parsed->sources.at("cuda");
  EXPECT_EQ(source.compiler, "nvcc");
  EXPECT_EQ(source.archs, (std::vector<std::string>{"sm_90a", "sm_100a"}));
  EXPECT_EQ(source.include, (std::vector<std::string>{"cutlass/include"}));
  EXPECT_TRUE(parsed->rotate_inputs);
  EXPECT_NE(parsed->source_hash("cuda"), parse(text)->source_hash("cuda"));
  EXPECT_NE(plain.source_hash("cuda"), parse(text)->source_hash("cuda"));
}

TEST(Spec, AnEmptyListOfConstraintsIsNone) {
  const auto spec = parse(gemm_with(
      R"(constraints = ["BM % TM == 0", "(BM // TM) * (BN // TN) <= device_max_threads"])",
      "constraints = []"));
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  EXPECT_TRUE(spec->constraints.empty());
}

TEST(Spec, TheSourceHashCoversIncludedHeaders) {
  std::string header = "#define TILE 1\n";
  const auto hash = [&] {
    const SourceReader read = [&](const std::string& path) -> Result<std::string> {
      if (path == "specs/tile.h") return header;
      if (path.ends_with(".h")) return error(Code::kNotFound, "no such file");
      return std::string("#include \"tile.h\"\n#include <cuda.h>\n");
    };
    return parse_spec(kGemm, "specs/gemm.toml", read)->source_hash("opencl");
  };
  const std::string before = hash();
  EXPECT_EQ(hash(), before);
  header = "#define TILE 2\n";
  EXPECT_NE(hash(), before);
}

struct Mistake {
  std::string_view piece, replacement, message;
};

TEST(Spec, EveryMistakeSaysWhereAndWhatToDo) {
  constexpr Mistake kMistakes[] = {
      {"purlin.spec/1", "purlin.spec/2",
       ":1:10: schema 'purlin.spec/2' is not 'purlin.spec/1', which this Purlin reads"},
      {"schema = \"purlin.spec/1\"", "", ": the spec needs 'schema'"},
      {"name = \"gemm\"", "name = \"ge mm\"", ":2:8: 'name' must be 1 to 100 letters"},
      {"summary", "sumary", ": the spec has no key 'sumary'; did you mean 'summary'?"},
      {"seed = 7", "seed = \"x\"", ":4:8: 'seed' must be an integer, not a string"},
      {"M = 512", "M = 0", ":8:5: extent of 'M' must be a positive integer"},
      {"M = 512", "device_m = 2", ": 'device_m': names that begin with 'device_' are kept"},
      {"M = 512", "not = 2", ": 'not' is a word of the expression language; rename it"},
      {"M = 512", "\"a b\" = 2", ": 'a b' is no name"},
      {"M = 4096", "Q = 4096", ":11:5: [problem] has no dimension 'Q'; there are M, N"},
      {"entry = \"gemm\"", "", ":13:1: [kernel] needs 'entry'"},
      {"file = \"gemm.cl\"", "file = \"missing.cl\"",
       ":16:8: [kernel.opencl]: cannot read 'specs/missing.cl'"},
      {"options = [\"-cl-mad-enable\"]", "option = \"\"",
       ": [kernel.opencl] has no key 'option'; did you mean 'options'?"},
      {"BM = [16, 32, 64]", "BM = []", ":22:6: 'BM' has no values"},
      {"BM = [16, 32, 64]", "BM = 16", ": 'BM' must be a list of values, such as BM = [16, 32]"},
      {"BM = [16, 32, 64]", "BM = [16, 32, 16]", ":22:15: 'BM' lists 16 twice"},
      {"BM = [16, 32, 64]", "BM = [16, [3]]",
       ":22:11: a parameter's value is a number, a boolean or a text, not an array"},
      {"BM = [16, 32, 64]", "BM = [nan]", "not inf or nan"},
      {"BM = [16, 32, 64]", "M = [16]", ":22:5: 'M' is already a dimension of [problem]"},
      {"default = 32", "default = 33", ": default 33 of 'BN' is not one of its values"},
      {"default = 32", "defalt = 32", "has no key 'defalt'; did you mean 'default'?"},
      {"values = [16, 32], ", "", "parameter 'BN' needs exactly one of values"},
      {"powers_of_two = [2, 8]", "powers_of_two = [2, 9]",
       ": powers_of_two takes two powers of two, the smaller first"},
      {"powers_of_two = [2, 8]", "powers_of_two = [8]", ": powers_of_two takes two ends"},
      {"range = [1, 5]", "range = [5, 1]", ": range takes two numbers, the smaller first"},
      {"step = 2", "step = 0", ": step must be a positive number"},
      {"range = [1, 5], step = 2", "range = [0, 1000000000000]",
       ": 'TN' has more than 65536 values"},
      {"BM % TM == 0", "BM % TMM == 0",
       ":5:16: unknown name 'TMM' in 'BM % TMM == 0'; did you mean 'TM'?"},
      {"BM % TM == 0", "BM % % 0", ":5:16: constraints: 'BM % % 0': column 6: '%' where"},
      {"\"BM % TM == 0\"", "3.5",
       ":5:16: constraints must be an expression in quotes or an integer, not a number"},
      {"grid = [\"ceil_div(N, BN)\", \"ceil_div(M, BM)\"]", "grid = []",
       ": grid must have 1 to 3 entries, not 0"},
      {"shared_memory", "shared_memroy", "did you mean 'shared_memory'?"},
      {"fill = \"normal(0, 2.5)\"", "tensor_map = {box = [\"BM\", 8], swizzle = 128}",
       ": a tensor map is for CUDA alone; put [kernel.opencl] into a spec without one"},
      {"fill = \"normal(0, 2.5)\"", "tensor_map = {box = [8]}",
       ": box must have the 2 extents of 'A', not 1"},
      {"value = \"M\"", "value = \"M\"\ntensor_map = {box = [8]}",
       ": scalar 'M' has no tensor map"},
      {"role = \"input\"", "role = \"in\"", ": unknown role 'in'; there are input, output"},
      {"dtype = \"f16\"", "dtype = \"f17\"", ": unknown dtype 'f17'"},
      {"role = \"output\"", "role = \"scratch\"",
       ": no argument has role \"output\" or \"inout\"; what would be verified?"},
      {"name = \"C\"", "name = \"A\"", ": there are two arguments 'A'"},
      {"value = \"M\"", "", ": scalar 'M' needs value"},
      {"value = \"M\"", "value = \"M\"\nshape = [1]", ": scalar 'M' has no shape"},
      {"shape = \"M * N\"", "", ": buffer 'C' needs shape"},
      {"shape = \"M * N\"", "shape = \"M * BN\"",
       ": no use of parameter 'BN' in 'M * BN': buffers other than scratch"},
      {"shape = \"M * N\"", "shape = \"M * N\"\nvalue = 3", ": 'value' is for scalars"},
      {"shape = \"M * N\"", "shape = \"M * N\"\nfill = \"iota\"",
       ": 'fill' is for role input and inout; 'C' is output"},
      {"normal(0, 2.5)", "normal(0)", ": fill 'normal(0)' is not one of uniform(low, high)"},
      {"normal(0, 2.5)", "uniform(2, 1)", ": fill 'uniform(2, 1)' is not one of"},
      {"normal(0, 2.5)", "iota()", ": fill 'iota()' is not one of"},
      {"normal(0, 2.5)", "constant(", ": fill 'constant(' is not one of"},
      {"[launch]", "[lanch]", ":1:1: the spec needs 'launch'; is 'lanch' meant to be it?"},
      {"[reference]\nentry", "[reference]\nentri",
       ": [reference] needs 'entry'; is 'entri' meant to be it?"},
      {"[\"A\", \"C\"]", "[\"A\", \"D\"]",
       ": the reference's argument 'D' is not in [[arguments]]; there are A, C, M"},
      {"[\"A\", \"C\"]", "[\"A\"]",
       ": the reference does not take 'C', so it could not be verified"},
      {"[\"A\", \"C\"]", "[\"C\", \"C\"]", ": the reference takes 'C' twice"},
      {"[reference.cuda]\nfile = \"reference.cu\"", "",
       ": the kernel has a cuda source, so [reference.cuda] is needed to verify it"},
      {"block = [16, 16]", "block = [\"BM\"]",
       ": no use of parameter 'BM' in 'BM': the reference runs once, without a config"},
      {"rtol = 1e-3", "rtol = -1", ": rtol and atol must be finite and not negative"},
      {"flops = \"2 * M * N\"", "flops = \"2 * M * L\"", ": unknown name 'L' in '2 * M * L'"},
      {"\"multiple:64\"", "\"multiple:0\"", ": a bucket is \"exact\", \"pow2\" or"},
      {"N = \"multiple:64\"", "X = \"pow2\"", ": [problem] has no dimension 'X'"},
      {"[work]", "[work", "specs/gemm.toml:"},
      {"[work]", "[measure]\ninputs = \"new\"\n[work]",
       ": inputs is \"reuse\" or \"rotate\", not 'new'"},
      {"file = \"cuda/gemm.cu\"", "file = \"cuda/gemm.cu\"\ncompiler = \"clang\"",
       ": compiler is \"nvrtc\" or \"nvcc\", not 'clang'"},
      {"file = \"cuda/gemm.cu\"", "file = \"cuda/gemm.cu\"\narch = [\"hopper\"]",
       ": arch lists architectures such as \"sm_90a\", not 'hopper'"},
      {"file = \"gemm.cl\"", "file = \"gemm.cl\"\ncompiler = \"nvcc\"",
       ": [kernel.opencl] has no key 'compiler'"},
  };
  for (const Mistake& mistake : kMistakes) {
    const Result<KernelSpec> parsed = parse(gemm_with(mistake.piece, mistake.replacement));
    ASSERT_FALSE(parsed.is_ok()) << mistake.replacement;
    const std::string message = parsed.status().message();
    EXPECT_EQ(message.rfind("specs/gemm.toml:", 0), 0u) << message;
    EXPECT_NE(message.find(mistake.message), std::string::npos)
        << mistake.replacement << "\n  gave: " << message << "\n  want: " << mistake.message;
  }
}

TEST(Spec, ADimensionMayHaveTheNameOfAFunction) {
  // Functions are only functions before a parenthesis, as names and calls cannot be confused.
  EXPECT_TRUE(Expression::parse("min * min(min, 2)").is_ok());
}

TEST(Spec, TheShippedSpecsLoad) {
  const std::string folder = join_path(PURLIN_SOURCE_DIR, "kernels");
  const auto names = list_directory(folder).value();
  for (const std::string& name : names) {
    const std::string path = join_path(join_path(folder, name), name + ".toml");
    if (!file_exists(path)) continue;
    const Result<KernelSpec> spec = load_spec(path);
    EXPECT_TRUE(spec.is_ok()) << spec.status().message();
  }
}

// The example as a spec of CUDA alone, with a tensor map of A.
std::string gemm_with_tensor_map(const std::string& map) {
  std::string text = gemm_with("fill = \"normal(0, 2.5)\"", "tensor_map = " + map);
  for (const std::string from : {"[kernel.opencl]", "[reference.opencl]"}) {
    const std::size_t start = text.find(from);
    text.erase(start, text.find("\n[", start) + 1 - start);
  }
  return text;
}

TEST(Spec, ATensorMapDependsOnParametersAndIsPartOfTheSource) {
  const Result<KernelSpec> spec =
      parse(gemm_with_tensor_map("{box = [\"BM\", 64], swizzle = 128}"));
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  const auto& map = spec->arguments[0].tensor_map;
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->box[0].expression.text(), "BM");
  EXPECT_EQ(map->swizzle.expression.text(), "128");
  const Result<KernelSpec> other = parse(gemm_with_tensor_map("{box = [\"BM\", 32]}"));
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  EXPECT_NE(spec->source_hash("cuda"), other->source_hash("cuda"));
  const Result<KernelSpec> wrong = parse(gemm_with_tensor_map("{box = [\"BX\", 32]}"));
  EXPECT_NE(wrong.status().message().find("unknown name 'BX'"), std::string::npos)
      << wrong.status().message();
}

TEST(Spec, TheReferenceMayBeTheDefaultConfig) {
  std::string text(kGemm);
  const std::size_t from = text.find("[reference]"), to = text.find("[tolerance]");
  ASSERT_LT(from, to);
  text.replace(from, to - from, "[reference]\nconfig = \"default\"\n");
  const Result<KernelSpec> spec = parse(text);
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  const Reference& reference = spec->reference;
  EXPECT_TRUE(reference.is_default_config);
  EXPECT_EQ(reference.entry, "gemm");
  EXPECT_EQ(reference.arguments.size(), spec->arguments.size());
  const std::vector<std::string>& options = reference.sources.at("opencl").options;
  EXPECT_EQ(options.front(), "-cl-mad-enable");
  EXPECT_NE(std::find(options.begin(), options.end(), "-DBN=32"), options.end());
  EXPECT_NE(std::find(options.begin(), options.end(), "-DLAYOUT=row"), options.end());
  const Scope no_config = config_scope(*spec, spec->problem, {}, DeviceInfo{});
  const Result<LaunchShape> launch = resolve_launch(reference.launch, no_config, DeviceInfo{});
  ASSERT_TRUE(launch.is_ok()) << launch.status().message();
  EXPECT_FALSE(parse(gemm_with("[reference]", "[reference]\nconfig = \"fast\"")).is_ok());
}

TEST(Spec, AToleranceThatIsNotStatedFollowsTheOutputs) {
  EXPECT_FALSE(parse(kGemm)->scaled_atol);
  EXPECT_TRUE(parse(gemm_with("atol = 0\n", ""))->scaled_atol);
}

TEST(Spec, MissingFilesAreNotFound) {
  EXPECT_EQ(load_spec("/nonexistent/x.toml").status().code(), Code::kNotFound);
  const auto parsed = parse(gemm_with("file = \"gemm.cl\"", "file = \"missing.cl\""));
  EXPECT_EQ(parsed.status().code(), Code::kNotFound);
}

TEST(Spec, ShapesComeFromTextPresetsAndDefaults) {
  const KernelSpec spec = parse(kGemm).value();
  EXPECT_EQ(resolve_shape(spec, "").value().text(), "M=512,N=256");
  EXPECT_EQ(resolve_shape(spec, "large").value().text(), "M=4096,N=256");
  EXPECT_EQ(resolve_shape(spec, "N=8").value().text(), "M=512,N=8");
  EXPECT_EQ(resolve_shape(spec, "larg").status().message(),
            "'larg' is neither a preset of gemm nor a shape such as M=512,N=256; did you mean "
            "'large'?");
  EXPECT_EQ(resolve_shape(spec, "K=8").status().message(),
            "gemm has no problem dimension 'K'; it has M, N");
  EXPECT_FALSE(resolve_shape(spec, "M=0").is_ok());
}

DeviceInfo small_device() {
  DeviceInfo device;
  device.max_threads_per_block = 64;
  device.shared_memory_per_block = 4096;
  device.max_block = {64, 16, 1};
  device.max_grid = {100, 50, 1};
  return device;
}

Result<LaunchShape> launch_of(const KernelSpec& spec, std::string_view shape,
                              std::string_view config_text, const DeviceInfo& device) {
  Config config = default_config(spec);
  const Config changes = parse_config(config_text).value();
  for (const auto& [name, value] : changes.items()) config.set(name, value);
  const Scope scope = config_scope(spec, resolve_shape(spec, shape).value(), config, device);
  return resolve_launch(spec.launch, scope, device);
}

// A head size that the program is compiled for: only one of its values fits a shape.
TEST(Spec, TheDefaultOfAShapeIsTheNearestConfigThatCanRunThere) {
  const auto spec_with = [](const std::string& constraints) {
    std::string text(kGemm);
    const std::size_t at = text.find("constraints = [");
    EXPECT_NE(at, std::string::npos);
    text.insert(at + 15, constraints);
    return parse(text).value();
  };
  const DeviceInfo device = [] {
    DeviceInfo out = small_device();
    out.max_threads_per_block = 1024;
    out.max_block = {1024, 1024, 64};
    out.shared_memory_per_block = 1 << 16;
    return out;
  }();
  const KernelSpec free = spec_with("");
  EXPECT_EQ(default_config(free, free.problem, device), default_config(free));
  const auto changed = [&](const std::string& constraints) {
    const KernelSpec spec = spec_with(constraints);
    const Config config = default_config(spec, spec.problem, device);
    std::string out;
    for (const auto& [name, value] : config.items())
      if (*default_config(spec).find(name) != value) out += name + "=" + to_text(value) + " ";
    return out;
  };
  EXPECT_EQ(changed("\"BM == 32\", "), "BM=32 ");
  EXPECT_EQ(changed("\"BM == 32\", \"BN == 16\", "), "BM=32 BN=16 ");
  EXPECT_EQ(changed("\"BM == 17\", "), "") << "no config fits";
  EXPECT_EQ(changed("\"BM != 16\", "), "BM=32 ");
  EXPECT_EQ(changed("\"SCALE > 0.15 or BN < 20\", "), "BN=16 ");
  KernelSpec last = free;  // nearest is not first
  last.parameters[0].preset = Value(std::int64_t{64});
  last.constraints.push_back({Expression::parse("BM < 64").value(), "", ""});
  EXPECT_EQ(*default_config(last, last.problem, device).find("BM"), Value(std::int64_t{32}));
  EXPECT_NE(default_config(free, free.problem, small_device()), default_config(free))
      << "the device's limits are constraints, too";
}

TEST(Spec, LaunchIsCheckedAgainstTheDevice) {
  const KernelSpec spec = parse(kGemm).value();
  const DeviceInfo device = small_device();
  const LaunchShape shape = launch_of(spec, "", "TN=5", device).value();
  EXPECT_EQ(to_text(shape), "8x32x1 / 6x8x1 shared 2048");
  const auto refusal = [&](std::string_view problem, std::string_view config) {
    return launch_of(spec, problem, config, device).status().message();
  };
  EXPECT_EQ(refusal("", ""), "block 32x8x1 has 256 threads; the device's limit is 64");
  EXPECT_EQ(refusal("M=1600", "TN=5"),
            "specs/gemm.toml:31:28: grid.y = ceil_div(M, BM) = 100 is above the device's limit of "
            "50 (M=1600 BM=16)");
  EXPECT_EQ(refusal("N=64", "BN=1,TN=3"),
            "specs/gemm.toml:32:10: block.x = BN // TN = 0 is not positive (BN=1 TN=3)");
  EXPECT_EQ(refusal("", "BM=64,TM=8,TN=5"),
            "specs/gemm.toml:33:17: shared_memory = 4 * BM * BN = 8192 bytes; the device allows 0 "
            "to 4096 (BM=64 BN=32)");
  // A device that tells no limits refuses only what no device could take.
  EXPECT_TRUE(launch_of(spec, "M=100000", "BM=64", DeviceInfo{}).is_ok());
}

TEST(Spec, ConstraintsNameWhatTheyDoNotHoldFor) {
  const KernelSpec spec = parse(kGemm).value();
  const auto check = [&](std::string_view text, const DeviceInfo& device) {
    const Config config = parse_config(text).value();
    return check_constraints(spec, config_scope(spec, spec.problem, config, device)).message();
  };
  EXPECT_EQ(check("BM=16,TM=2,BN=32,TN=1", DeviceInfo{}), "");
  EXPECT_EQ(check("BM=16,TM=3,BN=32,TN=1", DeviceInfo{}),
            "constraint 'BM % TM == 0' is not met (BM=16 TM=3)");
  EXPECT_EQ(check("BM=16,TM=2,BN=32,TN=1", small_device()),
            "constraint '(BM // TM) * (BN // TN) <= device_max_threads' is not met (BM=16 TM=2 "
            "BN=32 TN=1 device_max_threads=64)");
  EXPECT_NE(check("BM=16,TM=0", DeviceInfo{}).find("column 4: division by zero"),
            std::string::npos);
}

TEST(Spec, HashFollowsWhatIsCompiledAndRun) {
  const std::string base = parse(kGemm)->source_hash("cuda");
  EXPECT_EQ(base.size(), 32u);
  EXPECT_NE(base, parse(kGemm)->source_hash("opencl"));
  const auto changed = [&](std::string_view piece, std::string_view replacement) {
    return parse(gemm_with(piece, replacement))->source_hash("cuda") != base;
  };
  EXPECT_TRUE(changed("cuda/gemm.cu", "cuda/other.cu"));
  EXPECT_TRUE(changed("entry = \"gemm\"", "entry = \"gemm2\""));
  EXPECT_TRUE(changed("dtype = \"f16\"", "dtype = \"bf16\""));
  EXPECT_TRUE(changed("[\"BN // TN\"", "[\"BN\""));
  EXPECT_FALSE(changed("BM = [16, 32, 64]", "BM   =   [16, 32]"));
  EXPECT_FALSE(changed("summary = \"C = A * B\"", ""));
}

}  // namespace
}  // namespace purlin
