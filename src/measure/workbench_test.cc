// SPDX-License-Identifier: Apache-2.0
// The workbench over a fake device, whose kernels are functions of the test.
#include "measure/workbench.h"

#include "base/files.h"
#include "gpu/fake/fake_device.h"
#include "measure/binary_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace purlin::measure {
namespace {

// One kernel `candidate` and its reference, with N elements and the parameter P = 0…7.
constexpr const char* kHead = R"toml(
schema = "purlin.spec/1"
name = "sample"
op = "elementwise"
constraints = ["P != 7"]
[problem]
N = 256
[kernel]
entry = "candidate"
[kernel.opencl]
file = "sample.cl"
[parameters]
P = [0, 1, 2, 3, 4, 5, 6, 7]
[launch]
grid = ["ceil_div(N, 32)"]
block = ["32 * (2 ** P)"]
[reference]
entry = "reference"
[reference.opencl]
file = "sample.cl"
[reference.launch]
grid = ["ceil_div(N, 32)"]
block = [32]
)toml";

constexpr const char* kOutput = R"toml(
[[arguments]]
name = "out"
role = "output"
dtype = "DTYPE"
shape = ["N // 16", 16]
)toml";

std::string output_of(std::string_view dtype) {
  std::string text = kOutput;
  return text.replace(text.find("DTYPE"), 5, dtype);
}

class WorkbenchTest : public ::testing::Test {
 protected:
  void SetUp() override { directory_ = make_temporary_directory("purlin-bench").value(); }
  void TearDown() override { static_cast<void>(remove_tree(directory_)); }

  // Loads the spec with these arguments and lays it out on a device that behaves so.
  Status create(const std::string& arguments, gpu::FakeBehaviour behaviour = {},
                Workbench::Options options = {}, const std::string& language = "opencl") {
    const std::string path = join_path(directory_, "sample.toml");
    std::string head = kHead;
    for (std::size_t at = head.find(".opencl"); at != std::string::npos;
         at = head.find(".opencl", at + 1))
      head.replace(at, 7, "." + language);
    PURLIN_TRY(write_atomic(path, head + arguments));
    PURLIN_TRY(write_atomic(join_path(directory_, "sample.cl"), "kernel"));
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(path));
    device_ = std::make_unique<gpu::FakeDevice>(std::move(behaviour));
    if (language == "cuda") device_->mutable_info().backend = language;
    PURLIN_ASSIGN(bench_, Workbench::create(*device_, spec, spec.problem, std::move(options)));
    return Status::ok();
  }
  Evaluation evaluate(std::int64_t p = 0) {
    Config config;
    config.set("P", p);
    return bench_->evaluate(config, Policy{});
  }

  std::string directory_;
  std::unique_ptr<gpu::FakeDevice> device_;
  std::unique_ptr<Workbench> bench_;
};

// A behaviour in which the candidate's last buffer argument is written by `write` and the
// reference's by the usual pattern.
using Write = std::function<void(gpu::FakeBuffer&, std::size_t offset, std::size_t bytes)>;
gpu::FakeBehaviour candidate_writes(Write write) {
  gpu::FakeBehaviour behaviour;
  behaviour.write = [write](const gpu::FakeKernel& kernel, const gpu::Launch&,
                            gpu::FakeBuffer& buffer, std::size_t offset, std::size_t bytes) {
    if (kernel.entry == "candidate")
      write(buffer, offset, bytes);
    else
      gpu::FakeDevice::write_pattern(buffer, offset, bytes);
  };
  return behaviour;
}

void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST_F(WorkbenchTest, AKernelTakesTensorMapsOfItsConfigAndTheReferenceTakesAddresses) {
  std::vector<std::string> seen;
  gpu::FakeBehaviour behaviour;
  behaviour.launch = [&](const gpu::FakeKernel& kernel, const gpu::Launch& launch) {
    const auto& map = launch.arguments[0].tensor_map;
    seen.push_back(kernel.entry + " " +
                   (map == nullptr
                        ? "address"
                        : fmt::format("{}x{} of {}x{} swizzle {}", map->box[0], map->box[1],
                                      map->extents[0], map->extents[1], map->swizzle)));
    return Status::ok();
  };
  const std::string input =
      "[[arguments]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f16\"\nshape = [\"N\", 64]\n"
      "tensor_map = {box = [\"2 ** P\", 64], swizzle = \"128 // 2 ** P\"}\n";
  ASSERT_TRUE(create(input + output_of("f32"), behaviour, {}, "cuda").is_ok());
  EXPECT_EQ(seen.front(), "reference address");
  ASSERT_TRUE(evaluate(0).ok());
  EXPECT_EQ(seen.back(), "candidate 1x64 of 256x64 swizzle 128");
  ASSERT_TRUE(evaluate(2).ok());
  EXPECT_EQ(seen.back(), "candidate 4x64 of 256x64 swizzle 32");
}

TEST_F(WorkbenchTest, ARightKernelIsTimed) {
  ASSERT_TRUE(create(output_of("f32")).is_ok());
  const Evaluation evaluation = evaluate();
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOk) << evaluation.message;
  EXPECT_EQ(evaluation.time_ms, 1.0);
  EXPECT_EQ(evaluation.registers, 32);
  EXPECT_FALSE(bench_->device_lost());
}

// The ratio of another time to it would be infinite, and no entry could hold it.
TEST_F(WorkbenchTest, ATimeThatNoClockCanMeasureIsNoTime) {
  for (const double ms : {0.0, 1e-9}) {
    gpu::FakeBehaviour behaviour;
    behaviour.time_ms = [ms](const gpu::FakeKernel&, const LaunchShape&) { return ms; };
    ASSERT_TRUE(create(output_of("f32"), std::move(behaviour)).is_ok());
    const Evaluation evaluation = evaluate();
    EXPECT_EQ(evaluation.status, EvaluationStatus::kLaunch) << evaluation.time_ms;
    expect_contains(evaluation.message, "the clock");
    EXPECT_EQ(evaluation.time_ms, 0);
    EXPECT_FALSE(bench_->device_lost());
  }
}

TEST_F(WorkbenchTest, AConfigOutOfTheRaceSaysSo) {
  ASSERT_TRUE(create(output_of("f32")).is_ok());
  Config config;
  config.set("P", std::int64_t{0});
  Policy policy;
  EXPECT_FALSE(bench_->evaluate(config, policy).raced_out);
  policy.give_up_ms = 0.5;  // the kernel takes 1 ms
  const Evaluation evaluation = bench_->evaluate(config, policy);
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOk) << evaluation.message;
  EXPECT_TRUE(evaluation.raced_out);
  EXPECT_EQ(evaluation.samples.size(), 2u);
}

TEST_F(WorkbenchTest, AWrongElementIsNamed) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes([](auto& buffer, auto offset, auto bytes) {
                       gpu::FakeDevice::write_pattern(buffer, offset, bytes);
                       const float wrong = 99;
                       std::memcpy(&buffer.data[offset + 37 * 4], &wrong, 4);
                     }))
                  .is_ok());
  const Evaluation evaluation = evaluate();
  EXPECT_EQ(evaluation.status, EvaluationStatus::kWrong);
  expect_contains(evaluation.message, "output 'out' element 37[2,5] is 99, expected 18.5");
  expect_contains(evaluation.message, "1 of 256 elements differ");
  EXPECT_TRUE(evaluation.samples.empty());
}

// The comparison runs during the timing on a GPU, and before it on a CPU, whose cores it would
// take.
TEST_F(WorkbenchTest, AWrongConfigIsTimedOnAGpuOnlyAndHasNoTimeOnEither) {
  for (const bool cpu : {false, true}) {
    int launches = 0;
    ASSERT_TRUE(create(output_of("f32"), candidate_writes([&](auto& buffer, auto offset, auto) {
                         buffer.data[offset] = 77;
                         ++launches;
                       }))
                    .is_ok());
    if (cpu) device_->mutable_info().kind = "cpu";
    const Evaluation evaluation = evaluate();
    EXPECT_EQ(evaluation.status, EvaluationStatus::kWrong);
    EXPECT_EQ(evaluation.time_ms, 0);
    EXPECT_TRUE(evaluation.samples.empty());
    EXPECT_EQ(launches > 1, !cpu);
  }
}

// The usual pattern, each element off by so much.
Write writes_off_by(float error) {
  return [error](gpu::FakeBuffer& buffer, std::size_t offset, std::size_t bytes) {
    gpu::FakeDevice::write_pattern(buffer, offset, bytes);
    for (std::size_t i = 0; i < bytes; i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, &buffer.data[offset + i], sizeof value);
      value += error;
      std::memcpy(&buffer.data[offset + i], &value, sizeof value);
    }
  };
}

// Sums in another order differ by a share of the output's magnitude (73 here), at elements near 0
// as at all others.
TEST_F(WorkbenchTest, TheToleranceFollowsTheMagnitudeOfTheOutput) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes(writes_off_by(3e-4F))).is_ok());
  EXPECT_EQ(evaluate().status, EvaluationStatus::kOk) << evaluate().message;
  ASSERT_TRUE(create(output_of("f32") + "[tolerance]\natol = 1e-5\n",
                     candidate_writes(writes_off_by(3e-4F)))
                  .is_ok());
  const Evaluation strict = evaluate();
  EXPECT_EQ(strict.status, EvaluationStatus::kWrong);
  expect_contains(strict.message, "the tolerance may be too tight: [tolerance] atol = 0.0006");
}

// Reference and config write these, in 2 bytes, to every element.
gpu::FakeBehaviour halves(std::uint16_t reference, std::uint16_t config) {
  gpu::FakeBehaviour behaviour;
  behaviour.write = [=](const gpu::FakeKernel& kernel, const gpu::Launch&, gpu::FakeBuffer& buffer,
                        std::size_t offset, std::size_t bytes) {
    const std::uint16_t bits = kernel.entry == "candidate" ? config : reference;
    for (std::size_t i = 0; i + 1 < bytes; i += 2)
      std::memcpy(&buffer.data[offset + i], &bits, sizeof bits);
  };
  return behaviour;
}

// Two orders of one sum round to neighbours, the nearest values that the type has.
TEST_F(WorkbenchTest, NeighboursInACoarseTypeAreEqual) {
  struct Row {
    const char* dtype;
    std::uint16_t reference, config;
    bool equal;
  };
  for (const Row& row : {Row{"f16", 0x3C00, 0x3C01, true}, Row{"f16", 0x3C01, 0x3C00, true},
                         Row{"f16", 0x3C00, 0x3C08, false}, Row{"bf16", 0x3F80, 0x3F81, true},
                         Row{"bf16", 0x3F80, 0x3F90, false}}) {
    ASSERT_TRUE(create(output_of(row.dtype), halves(row.reference, row.config)).is_ok());
    const Evaluation evaluation = evaluate();
    EXPECT_EQ(evaluation.ok(), row.equal) << row.dtype << ": " << evaluation.message;
  }
}

TEST_F(WorkbenchTest, AReferenceThatIsNanEverywhereVerifiesNothing) {
  expect_contains(create(output_of("f16"), halves(0x7E01, 0x7E01)).message(),
                  "the reference writes NaN to every element of output 'out'");
}

TEST_F(WorkbenchTest, TheMessageNamesTheToleranceOfIntegersAndOfZeros) {
  ASSERT_TRUE(create(output_of("i16"), halves(7, 8)).is_ok());
  expect_contains(evaluate().message, "[tolerance] atol = 1 would accept it");
  ASSERT_TRUE(create(output_of("f16"), halves(0, 1)).is_ok());
  expect_contains(evaluate().message, "the output is 0 everywhere");
}

TEST_F(WorkbenchTest, ALargeErrorIsNotSaidToBeTheTolerances) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes(writes_off_by(5))).is_ok());
  const Evaluation wrong = evaluate();
  EXPECT_EQ(wrong.status, EvaluationStatus::kWrong);
  EXPECT_EQ(wrong.message.find("tight"), std::string::npos) << wrong.message;
}

TEST_F(WorkbenchTest, AnUnwrittenElementIsNamed) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes([](auto& buffer, auto offset, auto bytes) {
                       gpu::FakeDevice::write_pattern(buffer, offset, bytes - 8);
                     }))
                  .is_ok());
  expect_contains(evaluate().message, "element 254[15,14] was not written, expected 127; 2 of 256");
}

// Bytes 0…255: for each poison there is an element whose right value looks like it.
void count_up(gpu::FakeBuffer& buffer, std::size_t offset, std::size_t bytes, std::size_t skip) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (i != skip) buffer.data[offset + i] = static_cast<std::uint8_t>(i);
}

TEST_F(WorkbenchTest, AnUnwrittenElementIsSeenThoughItsValueLooksLikeThePoison) {
  for (const std::size_t skip : {0, 0x5A, 0x7D, 0xA6, 0xFF}) {
    gpu::FakeBehaviour behaviour;
    behaviour.write = [skip](const gpu::FakeKernel& kernel, const gpu::Launch&,
                             gpu::FakeBuffer& buffer, std::size_t offset, std::size_t bytes) {
      count_up(buffer, offset, bytes, kernel.entry == "candidate" ? skip : bytes);
    };
    const Status status = create(output_of("u8"), behaviour);
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(evaluate().status, EvaluationStatus::kWrong) << skip;
  }
}

TEST_F(WorkbenchTest, AReferenceThatLeavesAnElementOutIsTheSpecsError) {
  gpu::FakeBehaviour behaviour;
  behaviour.write = [](const gpu::FakeKernel&, const gpu::Launch&, gpu::FakeBuffer& buffer,
                       std::size_t offset,
                       std::size_t bytes) { count_up(buffer, offset, bytes, 40); };
  const Status status = create(output_of("u8"), behaviour);
  EXPECT_EQ(status.code(), Code::kInvalid);
  expect_contains(status.message(), "reference does not write element 40[2,8] of output 'out'");
}

TEST_F(WorkbenchTest, AWriteJustPastTheEndIsSeen) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes([](auto& buffer, auto offset, auto bytes) {
                       gpu::FakeDevice::write_pattern(buffer, offset, bytes);
                       buffer.data[offset + bytes + 3] = 1;
                     }))
                  .is_ok());
  for (int i = 0; i < 2; ++i) {  // the second time, too: the zone was repaired in between
    const Evaluation evaluation = evaluate();
    EXPECT_EQ(evaluation.status, EvaluationStatus::kOutOfBounds);
    expect_contains(evaluation.message,
                    "argument 'out', byte 1027 of 1024, 3 past its end (1 byte");
  }
}

TEST_F(WorkbenchTest, AWriteBeforeTheStartIsSeen) {
  ASSERT_TRUE(create(output_of("f32"), candidate_writes([](auto& buffer, auto offset, auto bytes) {
                       gpu::FakeDevice::write_pattern(buffer, offset, bytes);
                       buffer.data[offset - 4] = 1;
                     }))
                  .is_ok());
  const Evaluation evaluation = evaluate();
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOutOfBounds);
  expect_contains(evaluation.message, "byte -4, before its start");
}

TEST_F(WorkbenchTest, AWriteThatStraysOnlyWhileTimedIsSeen) {
  int launches = 0;
  ASSERT_TRUE(create(output_of("f32"), candidate_writes([&](auto& buffer, auto offset, auto bytes) {
                       gpu::FakeDevice::write_pattern(buffer, offset, bytes);
                       if (++launches == 5) buffer.data[offset + bytes] = 1;
                     }))
                  .is_ok());
  const Evaluation evaluation = evaluate();
  EXPECT_EQ(evaluation.status, EvaluationStatus::kOutOfBounds);
  EXPECT_EQ(evaluation.time_ms, 0);
  EXPECT_TRUE(evaluation.samples.empty());
}

TEST_F(WorkbenchTest, AConfigThatBreaksAConstraintIsNotCompiled) {
  ASSERT_TRUE(create(output_of("f32")).is_ok());
  const int before = device_->compiles;
  const Evaluation evaluation = evaluate(7);
  EXPECT_EQ(evaluation.status, EvaluationStatus::kInvalid);
  EXPECT_EQ(device_->compiles, before);
}

TEST_F(WorkbenchTest, ABlockOverTheLimitIsInvalid) {
  ASSERT_TRUE(create(output_of("f32")).is_ok());
  EXPECT_EQ(evaluate(6).status, EvaluationStatus::kInvalid);  // 2048 threads
}

TEST_F(WorkbenchTest, AConfigWithoutAParameterSaysWhich) {
  ASSERT_TRUE(create(output_of("f32")).is_ok());
  const Evaluation evaluation = bench_->evaluate({}, Policy{});
  EXPECT_EQ(evaluation.status, EvaluationStatus::kInvalid);
  expect_contains(evaluation.message, "'P'");
}

TEST_F(WorkbenchTest, ALostDeviceIsACrash) {
  gpu::FakeBehaviour behaviour;
  behaviour.launch = [](const gpu::FakeKernel& kernel, const gpu::Launch&) {
    return kernel.entry == "candidate" ? Status(Code::kFailed, "illegal access") : Status::ok();
  };
  ASSERT_TRUE(create(output_of("f32"), behaviour).is_ok());
  EXPECT_EQ(evaluate().status, EvaluationStatus::kCrash);
  EXPECT_TRUE(bench_->device_lost());
}

TEST_F(WorkbenchTest, SizesThatCannotBeAreRefusedByName) {
  const auto with_shape = [](const char* shape) {
    return fmt::format(
        "[[arguments]]\nname = \"big\"\nrole = \"output\"\ndtype = \"f32\"\nshape = [{}]\n", shape);
  };
  const Status overflow = create(with_shape("\"N * 2 ** 40\", \"N * 2 ** 40\""));
  EXPECT_EQ(overflow.code(), Code::kInvalid);
  expect_contains(overflow.message(), "'big' is larger than any memory");
  const Status negative = create(with_shape("\"N - 256\""));
  EXPECT_EQ(negative.code(), Code::kInvalid);
  expect_contains(negative.message(), "must be positive");
  const Status large = create(with_shape("\"N * 2 ** 24\""));
  EXPECT_EQ(large.code(), Code::kUnavailable);
  expect_contains(large.message(), "smaller problem shape");
}

TEST_F(WorkbenchTest, ScratchIsSizedByTheConfig) {
  std::vector<std::size_t> sizes;
  gpu::FakeBehaviour behaviour;
  behaviour.launch = [&](const gpu::FakeKernel& kernel, const gpu::Launch& launch) {
    if (kernel.entry == "candidate") sizes.push_back(launch.arguments[0].bytes);
    return Status::ok();
  };
  const std::string scratch =
      "[[arguments]]\nname = \"partial\"\nrole = \"scratch\"\ndtype = \"f32\"\n"
      "shape = [\"N * (P + 1)\"]\n";
  ASSERT_TRUE(create(scratch + output_of("f32"), behaviour).is_ok());
  EXPECT_TRUE(evaluate(1).ok());
  EXPECT_EQ(sizes.back(), 2048u);
  EXPECT_TRUE(evaluate(0).ok());
  EXPECT_EQ(sizes.back(), 1024u);
}

TEST_F(WorkbenchTest, ADriverThatCompilesLazilyDoesSoBeforeTheFirstSample) {
  std::vector<std::string> steps;
  Workbench::Options options;
  options.on_step = [&](std::string_view step) { steps.emplace_back(step); };
  options.verify = false;
  ASSERT_TRUE(create(output_of("f32"), {}, std::move(options)).is_ok());
  EXPECT_TRUE(evaluate().ok());
  EXPECT_EQ(steps, (std::vector<std::string>{"compile", "verify", "measure"}));
}

TEST_F(WorkbenchTest, UnverifiedInputsRepeatUnlessTheyAreIntegers) {
  constexpr std::size_t kPeriod = std::size_t{1} << 22, kCount = kPeriod * 5 / 2;
  const auto contents = [&](const std::string& dtype, const std::string& role, bool verify) {
    std::vector<std::uint32_t> values;
    gpu::FakeBehaviour behaviour;
    behaviour.launch = [&](const gpu::FakeKernel& kernel, const gpu::Launch& launch) {
      if (kernel.entry != "candidate" || !values.empty()) return Status::ok();
      const auto& x = launch.arguments[0];
      values.resize(kCount);
      std::memcpy(values.data(),
                  static_cast<const gpu::FakeBuffer&>(*x.buffer).data.data() + x.offset,
                  kCount * sizeof values[0]);
      return Status::ok();
    };
    Workbench::Options options;
    options.verify = verify;
    const std::string input = "[[arguments]]\nname = \"x\"\nrole = \"" + role + "\"\ndtype = \"" +
                              dtype + "\"\nshape = [\"N * 40960\"]\n" +
                              "fill = \"uniform(0, 1000000)\"\n";
    EXPECT_TRUE(create(input + output_of("f32"), behaviour, std::move(options)).is_ok());
    EXPECT_TRUE(evaluate().ok());
    return values;
  };
  const std::vector<std::uint32_t> whole = contents("f32", "input", true);
  const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(kPeriod);
  for (const char* role : {"input", "inout"}) {
    const std::vector<std::uint32_t> repeated = contents("f32", role, false);
    EXPECT_TRUE(std::equal(whole.begin(), middle, repeated.begin())) << role;
    for (const std::size_t i : {std::size_t{0}, std::size_t{12345}, kPeriod / 2 - 1}) {
      EXPECT_EQ(repeated[kPeriod + i], repeated[i]) << role;
      EXPECT_EQ(repeated[2 * kPeriod + i], repeated[i]) << role;
    }
  }
  EXPECT_NE(whole[kPeriod], whole[0]);
  const std::vector<std::uint32_t> places = contents("i32", "input", false);
  EXPECT_FALSE(std::equal(places.begin() + kPeriod, places.begin() + 2 * kPeriod, places.begin()));
}

TEST_F(WorkbenchTest, OtherSeedsGiveOtherInputs) {
  const std::string input =
      "[[arguments]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"N\"]\n";
  const auto contents = [&](std::uint64_t seed) {
    std::vector<std::uint8_t> bytes;
    gpu::FakeBehaviour behaviour;
    behaviour.launch = [&](const gpu::FakeKernel&, const gpu::Launch& launch) {
      const auto& x = launch.arguments[0];
      const auto& data = static_cast<const gpu::FakeBuffer&>(*x.buffer).data;
      const auto first = data.begin() + static_cast<std::ptrdiff_t>(x.offset);
      bytes.assign(first, first + 1024);
      return Status::ok();
    };
    Workbench::Options options;
    options.seed = seed;
    EXPECT_TRUE(create(input + output_of("f32"), behaviour, std::move(options)).is_ok());
    EXPECT_TRUE(evaluate().ok());
    return bytes;
  };
  const auto first = contents(1);
  EXPECT_EQ(first, contents(1));
  EXPECT_NE(first, contents(2));
}

TEST_F(WorkbenchTest, LaunchesTakeCopiesOfTheirInputsInTurn) {
  // 4 MiB of inputs and an output, with a cache of 4 MiB: two more sets fill it twice.
  const std::string input =
      "[[arguments]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"N * 4096\"]\n";
  const std::string rotate = "[measure]\ninputs = \"rotate\"\n";
  std::size_t sets = 0, alike = 0;
  gpu::FakeBehaviour behaviour;
  behaviour.launch = [&](const gpu::FakeKernel&, const gpu::Launch& launch) {
    sets = 1 + launch.further_arguments.size();
    alike = 0;
    const auto bytes_of = [](const gpu::KernelArgument& argument) {
      return static_cast<const gpu::FakeBuffer&>(*argument.buffer).data.data() + argument.offset;
    };
    for (const auto& further : launch.further_arguments) {
      EXPECT_NE(bytes_of(further[1]), bytes_of(launch.arguments[1])) << "outputs have their own";
      alike += std::memcmp(bytes_of(further[0]), bytes_of(launch.arguments[0]), 4 << 20) == 0;
    }
    return Status::ok();
  };
  ASSERT_TRUE(create(input + output_of("f32") + rotate, behaviour).is_ok());
  Evaluation evaluation = evaluate();
  ASSERT_TRUE(evaluation.ok()) << evaluation.message;
  EXPECT_EQ(evaluation.input_sets, 3);
  EXPECT_EQ(sets, 3u);
  EXPECT_EQ(alike, 2u);
  EXPECT_EQ(evaluation_from_json(to_json(evaluation))->input_sets, 3);

  Config config;
  config.set("P", std::int64_t{0});
  Policy policy;
  policy.inputs = Policy::Inputs::kReuse;
  EXPECT_EQ(bench_->evaluate(config, policy).input_sets, 1);

  ASSERT_TRUE(create(input + output_of("f32"), behaviour).is_ok());
  EXPECT_EQ(evaluate().input_sets, 1) << "the spec does not ask for it";
  policy.inputs = Policy::Inputs::kRotate;
  device_->mutable_info().memory_bytes = 20 << 20;  // a quarter holds one copy
  EXPECT_EQ(bench_->evaluate(config, policy).input_sets, 2);

  ASSERT_TRUE(create(input + output_of("f32"), behaviour).is_ok());
  device_->mutable_info().memory_bytes = 10 << 20;
  evaluation = bench_->evaluate(config, policy);
  EXPECT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation.input_sets, 1) << "there is no room for copies";
}

TEST_F(WorkbenchTest, ABatchLoadsOnceAndItsStrayWritesAreItsOwn) {
  int launches = 0, compiled = 0, stray_at = 0;
  gpu::FakeBehaviour behaviour = candidate_writes([&](auto& buffer, auto offset, auto bytes) {
    gpu::FakeDevice::write_pattern(buffer, offset, bytes);
    if (++launches == stray_at) buffer.data[offset + bytes] = 1;
  });
  behaviour.compile = [&](const gpu::CompileRequest&) { return ++compiled, Status::ok(); };
  ASSERT_TRUE(create(output_of("f32"), std::move(behaviour)).is_ok());
  const auto repeat = [&](std::int64_t p) {
    Config config;
    config.set("P", p);
    return bench_->repeat(config, Policy{});
  };
  ASSERT_TRUE(evaluate(0).ok());
  ASSERT_TRUE(evaluate(1).ok());
  for (const std::int64_t p : {0, 1}) EXPECT_TRUE(repeat(p).samples.empty()) << "loaded";
  const int before = compiled;
  for (const std::int64_t p : {0, 1, 0, 1}) {
    const Evaluation batch = repeat(p);
    EXPECT_TRUE(batch.ok()) << batch.message;
    EXPECT_EQ(batch.time_ms, 1.0);
  }
  EXPECT_EQ(compiled, before) << "both stay loaded";
  stray_at = launches + 1;
  EXPECT_EQ(repeat(0).status, EvaluationStatus::kOutOfBounds);
  EXPECT_TRUE(evaluate(1).ok()) << "the next one is not blamed for it";
}

TEST_F(WorkbenchTest, AnInputThatWasChangedIsSeenAndPutBack) {
  const std::string input =
      "[[arguments]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"N\"]\n";
  bool spoil = true;
  gpu::FakeBehaviour behaviour;
  behaviour.launch = [&](const gpu::FakeKernel& kernel, const gpu::Launch& launch) {
    auto& x = static_cast<gpu::FakeBuffer&>(*launch.arguments[0].buffer);
    if (kernel.entry == "candidate" && spoil) x.data[launch.arguments[0].offset + 8] ^= 1;
    return Status::ok();
  };
  ASSERT_TRUE(create(input + output_of("f32"), behaviour).is_ok());
  const Evaluation evaluation = evaluate();
  EXPECT_EQ(evaluation.status, EvaluationStatus::kWrong);
  expect_contains(evaluation.message, "input 'x' was changed at element 2");
  spoil = false;
  EXPECT_EQ(evaluate().status, EvaluationStatus::kOk);
}

TEST(BoundedLog, StartsAtTheFirstErrorOfALongLog) {
  EXPECT_EQ(bounded_log("short", 10), "short");
  const std::string log = std::string(500, 'w') + "\na.cl:1: error: here\n" + std::string(500, 'x');
  const std::string kept = bounded_log(log, 100);
  expect_contains(kept, "a.cl:1: error: here");
  EXPECT_LT(kept.size(), 200u);
}

// What a compiler knows keeps a config from the process that measures.
TEST_F(WorkbenchTest, AConfigThatCannotLaunchOrSpillsIsOutOnceCompiled) {
  gpu::FakeBehaviour behaviour;
  behaviour.resources = [](const Config& config) -> gpu::Resources {
    const Value* p = config.find("P");
    const std::int64_t value = p == nullptr ? 0 : std::get<std::int64_t>(*p);
    return {value == 4 ? 255 : 40, 0, value == 2 ? 1300 : value == 1 ? 1024 : 100};
  };
  BinaryCache binaries(join_path(directory_, "binaries"));
  Workbench::Options options;
  options.binaries = &binaries;
  ASSERT_TRUE(create(output_of("f32"), behaviour, options).is_ok());
  device_->mutable_info().arch = "sm_90";
  EXPECT_TRUE(evaluate(0).ok());  // the default: its stack is the source's own
  EXPECT_TRUE(evaluate(1).ok());
  const Evaluation spilled = evaluate(2), beyond = evaluate(4);
  EXPECT_EQ(spilled.status, EvaluationStatus::kInvalid);
  EXPECT_NE(spilled.message.find("1300 bytes"), std::string::npos) << spilled.message;
  EXPECT_EQ(beyond.status, EvaluationStatus::kLaunch);
  EXPECT_NE(beyond.message.find("registers a block"), std::string::npos) << beyond.message;

  // A process that only compiles knows the default from its kept binary.
  options.compile_only = true;
  ASSERT_TRUE(create(output_of("f32"), behaviour, options).is_ok());
  device_->mutable_info().arch = "sm_90";
  for (const std::int64_t p : {1, 2, 4}) {
    Config config;
    config.set("P", p);
    EXPECT_EQ(bench_->compile(config).ok(), p == 1) << p;
  }
  EXPECT_EQ(device_->launches, 0);
}

}  // namespace
}  // namespace purlin::measure
