// SPDX-License-Identifier: Apache-2.0
// The tuner as a program sees it, through the shared library alone.
#include "base/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <purlin/tuner.hpp>
#include <stdexcept>

namespace {

double time_of(const purlin::TuningConfig& config) {
  const double block = static_cast<double>(config.integer("BLOCK"));
  const double staged = config.flag("STAGED") ? 0.5 : 1;
  return 1 + std::abs(block - 64) / 64 + staged + (config.text("LAYOUT")[0] == 'r' ? 0 : 1) +
         config.real("RATIO");
}

purlin::Tuner made() {
  purlin::TunerOptions options;
  options.kernel = "scale";
  options.budget = "100";
  purlin::Tuner tuner(options);
  tuner.parameter("BLOCK", {16, 32, 64, 128}, 16)
      .flag_parameter("STAGED", false)
      .text_parameter("LAYOUT", {"column", "row"}, "column")
      .real_parameter("RATIO", {0.5, 0.25}, 0.5)
      .dimension("N", 1000, "pow2")
      .constraint("BLOCK <= N");
  tuner.start();
  return tuner;
}

TEST(TunerApi, TunesAndKeepsTheProgramsOutputRight) {
  purlin::Tuner tuner = made();
  EXPECT_EQ(tuner.space_size(), 32u);
  EXPECT_EQ(tuner.best().integer("BLOCK"), 16);
  std::string output;
  int wrong = 0;
  while (!tuner.over()) {
    output.clear();
    tuner.call(
        [&](const purlin::TuningConfig& config) {
          if (config.integer("BLOCK") == 128) throw purlin::Rejected("too many threads");
          output = config.integer("BLOCK") == 64 && config.flag("STAGED") ? "wrong" : "right";
          return time_of(config);
        },
        [&](const purlin::TuningConfig&) {
          wrong += output == "wrong" ? 1 : 0;
          return output == "right";
        });
    ASSERT_EQ(output, "right");
  }
  EXPECT_EQ(wrong, 4);  // each candidate that is wrong runs once
  EXPECT_EQ(tuner.best().integer("BLOCK"), 32);
  EXPECT_TRUE(tuner.best().flag("STAGED"));
  EXPECT_STREQ(tuner.best().text("LAYOUT"), "row");
  EXPECT_DOUBLE_EQ(tuner.best().real("RATIO"), 0.25);
  EXPECT_EQ(tuner.best().options(), "-DBLOCK=32 -DSTAGED=1 -DLAYOUT=row -DRATIO=0.25");
  EXPECT_GT(tuner.default_time_ms(), tuner.best_time_ms());
}

TEST(TunerApi, TheWinnerIsFoundByALookup) {
  const std::string folder = purlin::make_temporary_directory("tuner").value();
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  const char* dimensions[] = {"N"};
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.op = "scale";
  desc.dimensions = dimensions;
  desc.dimension_count = 1;
  desc.device = &device;
  purlin::Tuner tuner = made();
  EXPECT_THROW(tuner.store(folder, desc, true), purlin::Error);
  const purlin::TuningConfig winner = tuner.tune(time_of);
  EXPECT_EQ(winner.integer("BLOCK"), 64);
  tuner.store(folder, desc, true);
  purlin::Cache cache(folder);
  const purlin::Op op = cache.op("scale", {"N"}, device);
  const purlin::Hit hit = op.find(900);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit.outcome(), PURLIN_BUCKET);
  EXPECT_EQ(hit.integer("BLOCK", 0), 64);
  EXPECT_TRUE(hit.verified());
  EXPECT_FALSE(op.find(2000));
  EXPECT_TRUE(purlin::remove_tree(folder).is_ok());
}

// What is in use after it was stored: the config that the same finals found faster.
TEST(TunerApi, AnEntryThatLostInTheFinalsIsNotServedAnyMore) {
  const std::string folder = purlin::make_temporary_directory("tuner_displaces").value();
  const std::string log = folder + "/log";
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.op = "scale";
  desc.policy = "";
  desc.device = &device;
  purlin::Cache cache(folder);
  ASSERT_EQ(purlin_cache_put(cache.handle(),
                             R"({"key": {"op": "scale", "kernel": "scale", "backend": "cuda",
                                 "arch": "sm_90"},
                                 "config": {"BLOCK": 16, "STAGED": false, "LAYOUT": "column",
                                            "RATIO": 0.5},
                                 "problem": {"N": 1000}, "bucket_rules": {"N": "pow2"},
                                 "time_ms": 0.001, "samples_ms": [0.001], "verified": true})"),
            PURLIN_OK)
      << purlin_last_error();
  purlin::Tuner tuner = made();
  EXPECT_EQ(tuner.tune(time_of).integer("BLOCK"), 64);
  ::setenv("PURLIN_LOG", ("info:" + log).c_str(), 1);
  tuner.store(folder, desc, true);
  ::unsetenv("PURLIN_LOG");
  cache.reload();
  const purlin::Op op = cache.op("scale", {"N"}, device);
  ASSERT_TRUE(op.find(1000));
  EXPECT_EQ(op.find(1000).integer("BLOCK", 0), 64);
  const std::string lines = purlin::read_file(log).value_or("");
  EXPECT_NE(lines.find("lost to the winner in the finals"), std::string::npos) << lines;
  EXPECT_TRUE(purlin::remove_tree(folder).is_ok());
}

TEST(TunerApi, LaterConfigsAreAnnouncedAndSearchesShareACache) {
  const std::string folder = purlin::make_temporary_directory("tuner_transfer").value();
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  desc.device = &device;
  desc.source_hash = "source";
  for (const std::int64_t extent : {1000, 2000}) {
    purlin::TunerOptions options;
    options.kernel = "scale";
    options.budget = "40";
    options.lookahead = 8;
    purlin::Tuner tuner(options);
    tuner.parameter("BLOCK", {16, 32, 64, 128}, 16)
        .parameter("UNROLL", {1, 2, 4, 8}, 1)
        .dimension("N", extent)
        .transfer(folder, desc);
    tuner.start();
    std::size_t announced = 0;
    while (!tuner.over()) {
      const purlin::TuningConfig config = tuner.next();
      if (tuner.over()) break;
      const double block = static_cast<double>(config.integer("BLOCK"));
      const double time_ms = 1 + std::abs(block - 64) / 64 + 1.0 / config.real("UNROLL");
      while (tuner.announced().handle() != nullptr) ++announced;
      tuner.waited(0.1);
      tuner.report(time_ms);
    }
    EXPECT_GE(announced, 14u) << "all but the default, which is first";
    EXPECT_EQ(tuner.best().integer("BLOCK"), 64);
    tuner.store(folder, desc, true);
  }
  EXPECT_EQ(purlin::list_directory(folder + "/evaluations")->size(), 2u);
  EXPECT_EQ(purlin_tuner_announced(nullptr, nullptr), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_waited(nullptr, 1), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_transfer(nullptr, nullptr, nullptr), PURLIN_INVALID);
  EXPECT_TRUE(purlin::remove_tree(folder).is_ok());
}

TEST(CachePut, WhatAnotherTunerFoundIsServedAtOnce) {
  const std::string folder = purlin::make_temporary_directory("put").value();
  purlin::Cache cache(folder);
  purlin_device device = PURLIN_DEVICE_INIT;
  device.backend = "cuda";
  device.arch = "sm_90";
  const purlin::Op op = cache.op("matmul", {"M", "N"}, device);
  EXPECT_FALSE(op.find(1000, 64));
  EXPECT_EQ(purlin_cache_put(cache.handle(),
                             R"({"key": {"op": "matmul", "kernel": "matmul", "backend": "cuda",
                                 "arch": "sm_90"}, "config": {"BLOCK": 64, "num_warps": 8},
                                 "problem": {"M": 900, "N": 64}, "bucket_rules": {"M": "pow2"},
                                 "time_ms": 0.5, "samples_ms": [0.5, 0.51], "verified": true})"),
            PURLIN_OK)
      << purlin_last_error();
  const purlin::Hit hit = op.find(1000, 64);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit.outcome(), PURLIN_BUCKET);
  EXPECT_EQ(hit.integer("num_warps", 0), 8);
  for (const char* wrong :
       {"", "[]", "{}", "{\"key\": {}}", "{\"key\": 1}",
        R"({"key": {"op": "x"}, "problem": {"M": 1}})",
        R"({"key": {"op": "x", "kernel": "x", "backend": "cuda", "arch": "sm_90"},
                                "problem": {"M": -1}, "config": {}})"})
    EXPECT_EQ(purlin_cache_put(cache.handle(), wrong), PURLIN_INVALID) << wrong;
  EXPECT_EQ(purlin_cache_put(nullptr, "{}"), PURLIN_INVALID);
  EXPECT_TRUE(purlin::remove_tree(folder).is_ok());
}

TEST(TunerApi, MistakesAreToldAndNullIsHarmless) {
  purlin_tuner* tuner = nullptr;
  purlin_tuner_desc desc = PURLIN_TUNER_DESC_INIT;
  EXPECT_EQ(purlin_tuner_open(&desc, &tuner), PURLIN_INVALID);
  desc.kernel = "k";
  desc.size = 8;
  EXPECT_EQ(purlin_tuner_open(&desc, &tuner), PURLIN_INVALID);
  desc.size = sizeof desc;
  desc.budget = "soon";
  ASSERT_EQ(purlin_tuner_open(&desc, &tuner), PURLIN_OK);
  const int64_t values[] = {1, 2};
  EXPECT_EQ(purlin_tuner_add_ints(tuner, "A", values, 2, 3), PURLIN_INVALID);
  EXPECT_NE(std::strstr(purlin_last_error(), "default 3"), nullptr) << purlin_last_error();
  EXPECT_EQ(purlin_tuner_add_ints(tuner, nullptr, values, 2, 1), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_add_ints(tuner, "A", values, 2, 1), PURLIN_OK);
  EXPECT_EQ(purlin_tuner_add_constraint(tuner, "A > B"), PURLIN_OK);
  EXPECT_EQ(purlin_tuner_start(tuner), PURLIN_INVALID);  // the budget
  const purlin_config* config = nullptr;
  EXPECT_EQ(purlin_tuner_next(tuner, &config), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_best(tuner), nullptr);
  purlin_tuner_close(tuner);

  purlin_tuner_close(nullptr);
  EXPECT_EQ(purlin_tuner_start(nullptr), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_report(nullptr, 1), PURLIN_INVALID);
  EXPECT_EQ(purlin_tuner_is_over(nullptr), 0);
  EXPECT_EQ(purlin_config_int(nullptr, "A", 7), 7);
  EXPECT_EQ(purlin_config_options(nullptr, nullptr, 0), 0u);
}

}  // namespace
