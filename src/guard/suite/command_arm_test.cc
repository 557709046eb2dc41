// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/command_arm.h"

#include "base/files.h"
#include "guard/suite/suite.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

CommandSpec printing(const std::string& name, const std::string& script) {
  CommandSpec command;
  command.name = name;
  command.argv = {"sh", "-c", script};
  command.rules.format = OutputFormat::kRegex;
  command.rules.pattern = R"((\w+)=([\d.]+))";
  command.rules.unit = "us";
  return command;
}

CommandArmOptions in(const std::string& directory) {
  CommandArmOptions options;
  options.label = "here";
  options.directory = directory;
  options.seed = 7;
  return options;
}

TEST(CommandArm, TellsItsItemsAndMeasuresThemInFreshProcesses) {
  const std::string folder = *make_temporary_directory("purlin-arm");
  auto arm = make_command_arm(
      in(folder),
      {printing("bench", "echo run >>runs; echo a=1; echo b=2; echo a=3; echo seed=$PURLIN_SEED")});
  ASSERT_TRUE(arm->prepare().is_ok());
  ASSERT_EQ(arm->items().size(), 3u);
  EXPECT_EQ(arm->items()[0].kernel, "bench/a");
  // The run in prepare() is the rehearsal: no further run is needed.
  EXPECT_EQ(arm->rehearse(arm->items())->size(), 3u);
  const Readings readings = *arm->launch({arm->items()[0]});
  EXPECT_EQ(read_file(join_path(folder, "runs"))->size(), 2 * std::string("run\n").size());
  ASSERT_EQ(readings.size(), 3u);
  EXPECT_EQ(readings[0].process.reading.time_ns, 2000);  // median of 1 and 3 us
  EXPECT_EQ(readings[2].process.reading.time_ns, 7000);  // the seed reached it
  (void)remove_tree(folder);
}

TEST(CommandArm, WritesWhereItIsToldAndRunsInItsFolder) {
  const std::string folder = *make_temporary_directory("purlin-arm");
  ASSERT_TRUE(make_directories(join_path(folder, "sub")).is_ok());
  ASSERT_TRUE(write_atomic(join_path(folder, "sub/bench.sh"), "echo x=4 >\"$1\"\n").is_ok());
  CommandSpec command = printing("", "");
  command.argv = {"sh", "./bench.sh", "{output}"};
  command.directory = "sub";
  auto arm = make_command_arm(in(folder), {command});
  ASSERT_TRUE(arm->prepare().is_ok()) << arm->prepare().message();
  EXPECT_EQ(arm->items()[0].kernel, "x");
  EXPECT_EQ((*arm->launch(arm->items()))[0].process.reading.time_ns, 4000);
  (void)remove_tree(folder);
}

TEST(CommandArm, ACommandThatFailsIsItsItemsFailure) {
  const std::string folder = *make_temporary_directory("purlin-arm");
  auto arm = make_command_arm(
      in(folder), {printing("bench", "[ ! -e broken ] || { echo oh no >&2; exit 4; }; echo a=1"),
                   printing("other", "echo a=1")});
  ASSERT_TRUE(arm->prepare().is_ok());
  ASSERT_TRUE(write_atomic(join_path(folder, "broken"), "").is_ok());
  const Readings readings = *arm->launch(arm->items());
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].status.code(), Code::kFailed);
  EXPECT_NE(readings[0].status.message().find("exit status 4: oh no"), std::string::npos);
  EXPECT_TRUE(readings[1].status.is_ok());
  // Without a known item the arm itself fails.
  auto broken = make_command_arm(in(folder), {printing("bench", "exit 4")});
  EXPECT_EQ(broken->prepare().code(), Code::kFailed);
  CommandSpec slow = printing("slow", "sleep 60; echo a=1");
  slow.timeout_s = 0.05;
  EXPECT_NE(make_command_arm(in(folder), {slow})->prepare().message().find("did not end within"),
            std::string::npos);
  // Two commands must not report the same item.
  auto twins = make_command_arm(in(folder), {printing("t", "echo a=1"), printing("t", "echo a=2")});
  EXPECT_EQ(twins->prepare().code(), Code::kInvalid);
  (void)remove_tree(folder);
}

TEST(CommandArm, FingerprintFollowsAllThatDecidesWhatRuns) {
  const auto fingerprint = [](CommandArmOptions options, const std::string& script) {
    return make_command_arm(std::move(options), {printing("b", script)})->fingerprint();
  };
  const std::string one = fingerprint(in("/x"), "echo a=1");
  EXPECT_EQ(one, fingerprint(in("/x"), "echo a=1"));
  EXPECT_NE(one, fingerprint(in("/x"), "echo a=2"));
  CommandArmOptions other = in("/x");
  other.environment["CUDA_CACHE_DISABLE"] = "1";
  EXPECT_NE(one, fingerprint(other, "echo a=1"));
  other = in("/x");
  other.identity = "3f2a9c1";
  EXPECT_NE(one, fingerprint(other, "echo a=1"));
}

TEST(CommandArm, SeveralArmsActAsOne) {
  std::vector<std::unique_ptr<Arm>> arms;
  arms.push_back(make_command_arm(in("/"), {printing("one", "echo a=1")}));
  arms.push_back(make_command_arm(in("/"), {printing("two", "echo a=2")}));
  auto joined = join_arms("both", std::move(arms));
  ASSERT_TRUE(joined->prepare().is_ok());
  ASSERT_EQ(joined->items().size(), 2u);
  const Readings readings = *joined->launch({joined->items()[1], joined->items()[0]});
  EXPECT_EQ(readings[0].item.kernel, "two/a");
  EXPECT_EQ(readings[1].process.reading.time_ns, 1000);
}

TEST(CommandSuite, IsReadWithAComplaintForEachMistake) {
  const std::string head = "schema = \"purlin.suite/1\"\nname = \"s\"\n[[commands]]\n";
  auto suite = parse_suite(head + R"(name = "copy"
run = ["./bench", "--json", "{output}"]
format = "nvbench"
directory = "build"
environment = {CUDA_VISIBLE_DEVICES = "0"}
tags = ["quick"]
expected_s = 3
thresholds = {detectable = 0.1}
)",
                           "s.toml");
  ASSERT_TRUE(suite.is_ok()) << suite.status().message();
  ASSERT_EQ(suite->commands.size(), 1u);
  EXPECT_EQ(suite->commands[0].argv.size(), 3u);
  EXPECT_EQ(suite->commands[0].thresholds.detectable, 0.1);
  EXPECT_EQ(with_tags(*suite, {"quick"})->commands.size(), 1u);
  EXPECT_FALSE(with_tags(*suite, {"slow"}).is_ok());
  const auto complaint = [&](const std::string& body) {
    const auto wrong = parse_suite(head + body, "s.toml");
    return wrong.is_ok() ? "accepted" : wrong.status().message();
  };
  EXPECT_NE(complaint("format = \"csv\"\n").find("a command needs 'run'"), std::string::npos);
  EXPECT_NE(complaint("run = [\"x\"]\nformat = \"perf\"\n").find("s.toml:5"), std::string::npos);
  EXPECT_NE(complaint("run = [\"x\"]\n").find("google-benchmark, nvbench"), std::string::npos);
  const std::string regex = "run = [\"x\"]\nformat = \"regex\"\n";
  EXPECT_NE(complaint(regex).find("'pattern'; it finds a time in a line"), std::string::npos);
  for (const char* pattern : {"(", "none"})
    EXPECT_EQ(complaint(regex + "pattern = \"" + pattern + "\"\n")
                  .find(std::string("s.toml:6:11: pattern '") + pattern),
              0u);
  EXPECT_NE(complaint("run = [\"x\"]\nformat = \"csv\"\nunit = \"days\"\n").find("'unit' must be"),
            std::string::npos);
  EXPECT_NE(complaint("run = [\"x\"]\nformat = \"csv\"\npatern = \"y\"\n").find("patern"),
            std::string::npos);
}

}  // namespace
}  // namespace purlin::guard
