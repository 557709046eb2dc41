// SPDX-License-Identifier: Apache-2.0
#include "model/spec/spec.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

std::string text_of(const std::string& head, const std::string& parameters) {
  return "schema = \"purlin.spec/1\"\nname = \"k\"\n" + head + R"T(
[problem]
N = 1024
[kernel]
entry = "k"
[kernel.cuda]
file = "k.cu"
[parameters]
)T" + parameters +
         R"T(
[launch]
grid = ["ceil_div(N, BX)"]
block = ["BX", "BY"]
shared_memory = "BX * 64"
[[arguments]]
name = "out"
role = "output"
dtype = "f32"
shape = ["N"]
[reference]
entry = "r"
[reference.cuda]
file = "r.cu"
[reference.launch]
grid = [1]
block = [1]
)T";
}

Result<KernelSpec> parse(const std::string& head, const std::string& parameters) {
  return parse_spec(text_of(head, parameters), "k.toml",
                    [](const std::string&) -> Result<std::string> { return std::string(); });
}

DeviceInfo hopper() {
  DeviceInfo device;
  device.arch = "sm_90";
  device.warp_size = 32;
  device.max_threads_per_block = 1024;
  device.max_block = {1024, 1024, 64};
  device.shared_memory_per_block = 49152;
  return device;
}

constexpr const char* kSizes = "BX = [32, 64, 1024]\nBY = [1, 2]\n";

TEST(LaunchLimits, AreTheConstraintsThatTheDeviceSets) {
  const KernelSpec spec = parse("", kSizes).value();
  const std::vector<SpecExpression> limits = launch_limits(spec.launch, hopper());
  const auto broken = [&](std::int64_t bx, std::int64_t by) {
    Config config;
    config.set("BX", bx);
    config.set("BY", by);
    const Scope scope = config_scope(spec, spec.problem, config, hopper());
    std::string names;
    for (const SpecExpression& limit : limits)
      if (!limit.expression.evaluate_bool(scope.lookup()).value()) names += limit.text() + "; ";
    // Exactly what the launch itself would be refused for.
    EXPECT_EQ(names.empty(), resolve_launch(spec.launch, scope, hopper()).is_ok());
    return names;
  };
  EXPECT_EQ(broken(64, 2), "");
  EXPECT_EQ(broken(512, 4), "device limit of threads per block: BX * BY <= 1024; ");
  EXPECT_EQ(broken(1024, 1), "device limit of shared memory: 0 <= (BX * 64) <= 49152; ");
  // What a device does not tell limits nothing.
  for (const SpecExpression& limit : launch_limits(spec.launch, DeviceInfo{}))
    EXPECT_EQ(limit.expression.text().find("<="), 2u) << limit.expression.text();
}

TEST(CheckLimits, WhatIsMeasuredCountsOnceItIs) {
  const KernelSpec spec = parse("limits = [\"power_w < 500\", \"time_ms < BX\"]", kSizes).value();
  EXPECT_TRUE(needs_energy(spec.limits));
  Evaluation evaluation;
  evaluation.config = default_config(spec);  // BX = 32
  EXPECT_TRUE(check_compiled(spec, evaluation, hopper()).is_ok()) << "nothing is known yet";
  evaluation.time_ms = 33;
  EXPECT_NE(check_compiled(spec, evaluation, hopper()).message().find("'time_ms < BX'"),
            std::string::npos);
  evaluation.time_ms = 31;
  evaluation.power_w = 612;
  EXPECT_NE(check_compiled(spec, evaluation, hopper()).message().find("power_w=612"),
            std::string::npos);
  const Result<SpecExpression> limit = parse_limit(spec, "energy_mj < 10 and registers < BX");
  ASSERT_TRUE(limit.is_ok());
  EXPECT_TRUE(needs_energy({*limit}));
  EXPECT_FALSE(needs_energy({*parse_limit(spec, "registers < N")}));
  EXPECT_NE(parse_limit(spec, "watts < 10").status().message().find("power_w"), std::string::npos);
  EXPECT_FALSE(parse_limit(spec, "power_w <").is_ok());
}

TEST(CheckCompiled, RefusesWhatBreaksALimitAndSaysWhy) {
  const KernelSpec spec =
      parse("limits = [\"registers <= 128\", \"spills == 0\", \"occupancy >= 0.5 or BX == 32\"]",
            kSizes)
          .value();
  Evaluation evaluation;
  evaluation.config = default_config(spec);
  evaluation.config.set("BX", std::int64_t{64});
  evaluation.registers = 64;
  evaluation.shared_bytes = 4096;
  EXPECT_TRUE(check_compiled(spec, evaluation, hopper()).is_ok());
  evaluation.registers = 168;
  Status broken = check_compiled(spec, evaluation, hopper());
  EXPECT_EQ(broken.code(), Code::kInvalid);
  EXPECT_NE(broken.message().find("'registers <= 128' is not met (registers=168)"),
            std::string::npos);
  evaluation.registers = 128;
  broken = check_compiled(spec, evaluation, hopper());
  EXPECT_NE(broken.message().find("occupancy=0.25"), std::string::npos) << broken.message();
  evaluation.registers = 64;
  evaluation.local_bytes = 8;
  EXPECT_NE(check_compiled(spec, evaluation, hopper()).message().find("spills=8"),
            std::string::npos);
  // OpenCL tells no registers, so neither they nor the occupancy are known.
  evaluation.registers = 0;
  evaluation.local_bytes = 0;
  EXPECT_TRUE(check_compiled(spec, evaluation, DeviceInfo{}).is_ok());
}

TEST(Limits, KnowOnlyNamesThatHaveAMeaning) {
  const Result<KernelSpec> typo = parse("limits = [\"register <= 128\"]", kSizes);
  EXPECT_NE(typo.status().message().find("did you mean 'registers'"), std::string::npos);
  const Result<KernelSpec> taken =
      parse("limits = [\"spills == 0\"]", std::string(kSizes) + "spills = [1]\n");
  EXPECT_NE(taken.status().message().find("rename the parameter"), std::string::npos);
  EXPECT_FALSE(parse("constraints = [\"registers <= 128\"]", kSizes).is_ok());
}

TEST(ConditionalParameter, KeepsItsDefaultWhereItIsIdle) {
  const KernelSpec spec =
      parse("", std::string(kSizes) +
                    "MODE = [\"plain\", \"pipe's\"]\n"
                    "STAGES = {values = [2, 3, 4], default = 3, when = \"MODE == 'pipe\\\\'s'\"}\n")
          .value();
  ASSERT_EQ(spec.constraints.size(), 1u);
  EXPECT_NE(spec.constraints[0].text().find("STAGES is 3 unless MODE"), std::string::npos);
  const auto valid = [&](const char* mode, std::int64_t stages) {
    Config config = default_config(spec);
    config.set("MODE", std::string(mode));
    config.set("STAGES", stages);
    return check_constraints(spec, config_scope(spec, spec.problem, config, hopper())).is_ok();
  };
  EXPECT_TRUE(valid("plain", 3));
  EXPECT_FALSE(valid("plain", 2));
  EXPECT_TRUE(valid("pipe's", 2));
  EXPECT_TRUE(
      check_constraints(spec, config_scope(spec, spec.problem, default_config(spec), hopper()))
          .is_ok());
  const Result<KernelSpec> circular =
      parse("", std::string(kSizes) + "S = {values = [1, 2], when = \"S > 1\"}\n");
  EXPECT_NE(circular.status().message().find("depends on 'S' itself"), std::string::npos);
}

}  // namespace
}  // namespace purlin
