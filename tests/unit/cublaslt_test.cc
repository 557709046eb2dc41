// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's algorithms through a fake library (tests/programs/fake_cublaslt.cc): what is listed,
// what is built, what is refused, and that row-major means row-major.
#include "gpu/cuda/cublaslt/cublaslt.h"

#include "gpu/fake/fake_device.h"
#include "gpu/library_app_context.h"
#include "measure/workbench.h"
#include "model/spec/spec.h"
#include "tune/space/library_space.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

namespace purlin::gpu {
namespace {

class CublasLt : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PURLIN_CUBLASLT", PURLIN_FAKE_CUBLASLT, 1);
    for (const char* name : {"WRONG", "STRAY", "HIDDEN", "REFUSE", "VERSION"})
      ::unsetenv((std::string("FAKE_CUBLASLT_") + name).c_str());
    Result<LtFunctions> lt = load_cublaslt();
    ASSERT_TRUE(lt.is_ok()) << lt.status().message();
    lt_ = *lt;
    ASSERT_EQ(lt_.cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    if (handle_ != nullptr) lt_.cublasLtDestroy(handle_);
  }

  static ProblemShape shape(std::int64_t m, std::int64_t n, std::int64_t k) {
    ProblemShape problem;
    problem.set("M", m);
    problem.set("N", n);
    problem.set("K", k);
    return problem;
  }
  static LibraryOperation operation(std::int64_t workspace = 1 << 20) {
    LibraryOperation made;
    made.transpose_b = true;
    made.workspace_bytes = workspace;
    return made;
  }
  LibrarySpace list(const LibraryOperation& of) {
    auto product = LtProduct::create(lt_, handle_, of, shape(16, 8, 32));
    EXPECT_TRUE(product.is_ok()) << product.status().message();
    Result<LibrarySpace> space = enumerate_lt(**product);
    EXPECT_TRUE(space.is_ok()) << space.status().message();
    return space.is_ok() ? *space : LibrarySpace{};
  }
  static Config config(std::initializer_list<int> values) {
    Config made;
    std::size_t i = 0;
    for (const int value : values) made.set(library_parameters()[i++], std::int64_t{value});
    return made;
  }

  LtFunctions lt_;
  cublasLtHandle_t handle_ = nullptr;
};

TEST_F(CublasLt, ListsEveryAlgorithmTheLibraryAccepts) {
  const LibrarySpace space = list(operation());
  EXPECT_EQ(space.version, "cuBLASLt 13.1.0");
  EXPECT_TRUE(space.complete);
  // algo 1: 2 tiles. algo 6: 5 pairs x 2 swizzles x (no split, or 7 splits by 3 reductions).
  // algo 66: 3 tiles x (4 clusters x 3 options, and option 3 with cluster 3).
  EXPECT_EQ(space.size(), 2u + 5 * 2 * (1 + 7 * 3) + 3 * (4 * 3 + 1));
  std::set<std::string> seen;
  for (std::size_t row = 0; row < space.size(); ++row)
    EXPECT_TRUE(seen.insert(space.config(row).text()).second);
  EXPECT_TRUE(seen.contains(config({66, 393, 35, 1, 0, 0, 3, 0, 3}).text()));
  EXPECT_FALSE(seen.contains(config({66, 393, 35, 1, 0, 0, 3, 0, 2}).text()));
  EXPECT_FALSE(seen.contains(config({6, 20, 12, 1, 0, 0, 0, 0, 0}).text()));
  ASSERT_EQ(space.proposals.size(), 3u);
  EXPECT_EQ(space.config(space.proposals[0]), config({66, 20, 35, 1, 0, 0, 0, 0, 2}));
  EXPECT_EQ(space.config(space.proposals[1]), config({6, 18, 8, 4, 2, 0, 0, 0, 0}));
  EXPECT_EQ(space.not_rebuilt, 0u);
}

TEST_F(CublasLt, ASmallWorkspaceLeavesOutWhatNeedsMore) {
  const LibrarySpace none = list(operation(0));
  for (std::size_t row = 0; row < none.size(); ++row)
    EXPECT_EQ(std::get<std::int64_t>(*none.config(row).find("split_k")), 1);
  EXPECT_EQ(none.size(), 2u + 5 * 2 + 3 * 13);
}

TEST_F(CublasLt, SaysWhenAttributesDoNotGiveAProposalAgain) {
  ::setenv("FAKE_CUBLASLT_HIDDEN", "1", 1);
  EXPECT_EQ(list(operation()).not_rebuilt, 1u);
}

TEST_F(CublasLt, ASpaceSurvivesItsJson) {
  const LibrarySpace space = list(operation());
  const Result<LibrarySpace> back = library_space_from_json(*Json::parse(to_json(space).dump()));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back->values, space.values);
  EXPECT_EQ(back->proposals, space.proposals);
  Json cut = to_json(space);
  cut.set("values", "1 2 3");
  EXPECT_FALSE(library_space_from_json(cut).is_ok());
  cut.set("values", "1 x");
  EXPECT_FALSE(library_space_from_json(cut).is_ok());
}

TEST_F(CublasLt, AProgramIsNeverHandedWhatTheLibraryRefuses) {
  const auto app_context = join_library("cublaslt", handle_);
  ASSERT_TRUE(app_context.is_ok()) << app_context.status().message();
  cublasLtMatmulAlgo_t algo;
  std::memset(&algo, 0xEE, sizeof algo);
  const cublasLtMatmulAlgo_t untouched = algo;
  const Config good = config({6, 18, 8, 4, 2, 0, 0, 0, 0});
  const ProblemShape problem = shape(16, 8, 32);
  const auto product = LtProduct::create(lt_, handle_, operation(), problem);
  ASSERT_TRUE(product.is_ok()) << product.status().message();
  const LtDescriptors& own = (*product)->descriptors();
  const LibraryDescriptors of{own.operation, own.a, own.b, own.c, own.d};
  const Result<std::size_t> bytes = (*app_context)->algorithm(operation(), of, good, &algo);
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, 16u * 8 * 4 * 4);
  EXPECT_NE(std::memcmp(&algo, &untouched, sizeof algo), 0);
  EXPECT_TRUE((*app_context)->plan(operation(), problem, &good).is_ok());
  EXPECT_TRUE((*app_context)->plan(operation(), problem, nullptr).is_ok());
  algo = untouched;
  EXPECT_FALSE((*app_context)->algorithm(operation(100), of, good, &algo).is_ok());
  EXPECT_FALSE((*app_context)->plan(operation(100), problem, &good).is_ok());
  ::setenv("FAKE_CUBLASLT_REFUSE", "18", 1);
  EXPECT_FALSE((*app_context)->algorithm(operation(), of, good, &algo).is_ok());
  Config incomplete;
  incomplete.set("algo", std::int64_t{6});
  EXPECT_FALSE((*app_context)->algorithm(operation(), of, incomplete, &algo).is_ok());
  EXPECT_EQ(std::memcmp(&algo, &untouched, sizeof algo), 0);
}

// Products of every layout and type against the reference, which knows nothing of column-major.
TEST_F(CublasLt, ProductsAreThoseOfTheReference) {
  const char* kOperations[] = {
      "",
      "transpose_a = true\n",
      "transpose_b = true\nepilogue = \"gelu_bias\"\n",
      "transpose_a = true\ntranspose_b = true\nepilogue = \"relu\"\na = \"f16\"\n",
      "batched = true\nepilogue = \"bias\"\na = \"f32\"\n",
      "a = \"i8\"\ntranspose_b = true\n",
      "a = \"f8e4m3\"\nb = \"f8e5m2\"\ntranspose_b = true\n",
      "a = \"f64\"\ntranspose_a = true\n",
  };
  for (const std::string lines : kOperations) {
    const bool batched = lines.find("batched") != std::string::npos;
    const std::string text = "schema = \"purlin.spec/1\"\n[problem]\nM = 5\nN = 12\nK = 19\n" +
                             std::string(batched ? "BATCH = 3\n" : "") +
                             "[library]\nname = \"cublaslt\"\n" + lines;
    Result<KernelSpec> spec = parse_spec(text, "gemm.toml", {});
    ASSERT_TRUE(spec.is_ok()) << spec.status().message();
    FakeDevice device;
    device.mutable_info().backend = "cuda";
    const auto found = device.library_space(*spec->library, spec->problem);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    auto choices = tune::library_choices(*spec, *found);
    ASSERT_TRUE(choices.is_ok()) << choices.status().message();
    const auto bench = measure::Workbench::create(device, *spec, spec->problem, {});
    ASSERT_TRUE(bench.is_ok()) << bench.status().message();
    const Evaluation right = (*bench)->evaluate(*choices->default_config, {});
    EXPECT_TRUE(right.ok()) << lines << right.message;
    const Evaluation split =
        (*bench)->evaluate(choices->space.config(choices->proposals.at(1)), {});
    EXPECT_TRUE(split.ok()) << lines << split.message;
  }
}

TEST_F(CublasLt, AWrongResultAndAStrayWriteAreSeen) {
  const std::string text =
      "schema = \"purlin.spec/1\"\n[problem]\nM = 5\nN = 12\nK = 19\n[library]\n"
      "name = \"cublaslt\"\n";
  const Result<KernelSpec> spec = parse_spec(text, "gemm.toml", {});
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  FakeDevice device;
  device.mutable_info().backend = "cuda";
  const auto bench = measure::Workbench::create(device, *spec, spec->problem, {});
  ASSERT_TRUE(bench.is_ok()) << bench.status().message();
  const Config tile18 = config({6, 18, 8, 4, 2, 0, 0, 0, 0});
  ::setenv("FAKE_CUBLASLT_WRONG", "18", 1);
  EXPECT_EQ((*bench)->evaluate(tile18, {}).status, EvaluationStatus::kWrong);
  ::unsetenv("FAKE_CUBLASLT_WRONG");
  ::setenv("FAKE_CUBLASLT_STRAY", "18", 1);
  EXPECT_EQ((*bench)->evaluate(tile18, {}).status, EvaluationStatus::kOutOfBounds);
  ::unsetenv("FAKE_CUBLASLT_STRAY");
  EXPECT_EQ((*bench)->evaluate(config({6, 20, 12, 1, 0, 0, 0, 0, 0}), {}).status,
            EvaluationStatus::kLaunch);
  EXPECT_TRUE((*bench)->evaluate(tile18, {}).ok());
}

TEST(LibrarySpec, NamesItselfAndRefusesWhatDoesNotExist) {
  const auto parse = [](const std::string& lines) {
    return parse_spec("schema = \"purlin.spec/1\"\n" + lines + "[problem]\nM = 5\nN = 12\nK = 19\n",
                      "gemm.toml", {});
  };
  const Result<KernelSpec> spec = parse("[library]\nname = \"cublaslt\"\ntranspose_b = true\n");
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  EXPECT_EQ(spec->name, "cublaslt-nt-bf16-bf16-f32");
  EXPECT_EQ(spec->op, "gemm");
  EXPECT_EQ(spec->dtype_text(), "bf16");
  EXPECT_EQ(*LibraryOperation::parse(spec->library->text()), *spec->library);
  const auto problem_of = [&](const std::string& lines) { return parse(lines).status().message(); };
  EXPECT_NE(problem_of("name = \"mine\"\n[library]\nname = \"cublaslt\"\n")
                .find("cublaslt-nn-bf16-bf16-f32"),
            std::string::npos);
  EXPECT_NE(problem_of("[library]\nname = \"cudnn\"\n").find("cublaslt"), std::string::npos);
  EXPECT_NE(problem_of("[library]\nname = \"cublaslt\"\na = \"i8\"\nd = \"bf16\"\n").find("i32"),
            std::string::npos);
  EXPECT_NE(problem_of("[library]\nname = \"cublaslt\"\na = \"f8e4m3\"\n").find("transpose_b"),
            std::string::npos);
  EXPECT_NE(problem_of("[library]\nname = \"cublaslt\"\nbatched = true\n").find("BATCH"),
            std::string::npos);
  EXPECT_NE(problem_of("[library]\nname = \"cublaslt\"\nepilog = \"bias\"\n").find("epilogue"),
            std::string::npos);
}

}  // namespace
}  // namespace purlin::gpu
