// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/jax_programs.h"

#include "base/files.h"
#include "base/gzip.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace purlin::profile {
namespace {

std::string module_named(const std::string& name) {
  return "HloModule " + name + R"(, is_scheduled=true

%add (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %a = f32[8]{0} add(%p, %p)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %scale = f32[8]{0} fusion(%x), kind=kLoop, calls=%add, metadata={op_name="jit(step)/mul"}
  ROOT %shift = f32[8]{0} fusion(%scale), kind=kInput, calls=%add, metadata={op_name="jit(step)/add"}
}
)";
}

// A spool as the hook leaves it, and a run of the process 7 with three rounds of `scale` and
// `shift`.
class JaxPrograms : public testing::Test {
 protected:
  void SetUp() override {
    spool_ = make_temporary_directory("purlin-jax").value();
    run_.processes.emplace_back().pid = 7;
    for (int i = 0; i < 6; ++i) {
      if (run_.kernels.size() < 2) run_.kernels.emplace_back().name = i == 0 ? "scale" : "shift";
      Activity activity;
      activity.start_ns = 1000 * i;
      activity.duration_ns = 500;
      activity.row = static_cast<std::uint32_t>(i % 2);
      run_.kernels[activity.row].duration.add(500);
      run_.timeline.activities.push_back(activity);
    }
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(spool_).is_ok()); }

  void leave(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(write_atomic(join_path(spool_, name), bytes).is_ok());
  }
  void leave_note(const std::string& name, int pid, const std::string& members = "") {
    leave(name, fmt::format(R"({{"schema":"purlin.jax/1","pid":{},"cost_ns":2e6{}}})", pid,
                            members.empty() ? "" : "," + members));
  }
  std::string causes() const {
    std::string out;
    for (const CoverageNote& note : run_.coverage.notes)
      out += fmt::format("{}:{:g} ", note.cause, note.count);
    return out;
  }

  std::string spool_;
  Profile run_;
};

TEST_F(JaxPrograms, GiveTheKernelsOfTheirProcessOps) {
  leave("jax-7.hlo.gz", gzip(module_named("jit_step")).value());
  leave_note("jax-7.note", 7);
  add_jax_programs(run_, spool_);
  EXPECT_EQ(causes(), "jax_programs:6 ");
  EXPECT_NE(run_.coverage.notes[0].text.find("1 program that"), std::string::npos);
  EXPECT_EQ(run_.kernels[0].op, "jit(step)/mul");
  EXPECT_EQ(run_.kernels[1].op, "jit(step)/add");
  EXPECT_EQ(run_.coverage.overhead_ns, 2e6);
}

// Their process writes notes and texts: a second note is no second program, and no path.
TEST_F(JaxPrograms, OneNoteOfAProcessCounts) {
  leave("jax-7.hlo.gz", gzip(module_named("jit_step")).value());
  leave_note("jax-7.note", 7);
  leave_note("jax-8.note", 7);
  leave_note("jax-7.notes", 7);
  leave_note("torch-7.note", 7);
  leave("jax-9.note", "no note");
  add_jax_programs(run_, spool_);
  EXPECT_EQ(causes(), "jax_programs:6 ");
  EXPECT_NE(run_.coverage.notes[0].text.find("1 program that"), std::string::npos);
  EXPECT_EQ(run_.coverage.overhead_ns, 2e6);
}

TEST_F(JaxPrograms, WhatOfACutTextCanBeReadIsUsed) {
  std::string many;
  for (int i = 0; i < 400; ++i) many += module_named(fmt::format("jit_{}", i));
  const std::string packed = gzip(many).value();
  leave("jax-7.hlo.gz", packed.substr(0, packed.size() - 200));
  leave_note("jax-7.note", 7);
  add_jax_programs(run_, spool_);
  EXPECT_EQ(causes(), "jax_programs:6 ") << "all of these programs do the same";
  EXPECT_EQ(run_.kernels[1].op, "jit(step)/add");
}

TEST_F(JaxPrograms, FaultsAndWhatWasNotReadAreNotes) {
  leave_note("jax-7.note", 7, R"("reason":"fault","detail":"made up","left_out":3)");
  leave_note("jax-8.note", 8, R"("reason":"fault","left_out":4)");
  add_jax_programs(run_, spool_);
  EXPECT_EQ(causes(), "jax_no_programs:0 jax_no_programs:0 jax_programs_left_out:7 ");
  EXPECT_NE(run_.coverage.notes[0].text.find("made up"), std::string::npos);
  EXPECT_NE(run_.coverage.notes[1].text.find("fault"), std::string::npos);
  EXPECT_EQ(run_.coverage.overhead_ns, 4e6);
}

// More processes than are read, by their notes: a note tells how many programs these compiled.
TEST_F(JaxPrograms, ManyProcessesAreLeftOut) {
  for (int pid = 1; pid <= 70; ++pid)
    leave_note(fmt::format("jax-{}.note", pid), pid, R"("modules":10)");
  add_jax_programs(run_, spool_);
  EXPECT_EQ(causes(), "jax_programs_left_out:60 ");
}

// Only of products and convolutions does XLA try several kernels.
TEST_F(JaxPrograms, WhatXlaTimedWhileItWasRecordedIsSaid) {
  const auto causes_of = [&](const char* members, const std::string& module) {
    leave("jax-7.hlo.gz", gzip(module).value());
    leave_note("jax-7.note", 7, members);
    Profile run = run_;
    add_jax_programs(run, spool_);
    std::string out;
    for (const CoverageNote& note : run.coverage.notes)
      out += fmt::format("{}:{:g} ", note.cause, note.count);
    return out;
  };
  const std::string product = R"(HloModule jit_step, is_scheduled=true

%dot (a: f32[8,8], b: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %b = f32[8,8]{1,0} parameter(1)
  ROOT %d = f32[8,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%add (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  ROOT %s = f32[8,8]{1,0} add(%p, %p)
}

ENTRY %main (x: f32[8,8]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  %scale = f32[8,8]{1,0} fusion(%x, %x), kind=kCustom, calls=%dot, metadata={op_name="jit(step)/dot_general"}, backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}
  ROOT %shift = f32[8,8]{1,0} fusion(%scale), kind=kLoop, calls=%add, metadata={op_name="jit(step)/add"}
}
)";
  EXPECT_EQ(causes_of(R"("compiled":3)", product), "jax_programs:6 jax_autotuned:3 ");
  EXPECT_EQ(causes_of(R"("compiled":0)", product), "jax_programs:6 ");
  EXPECT_EQ(causes_of(R"("compiled":-1)", product), "jax_programs:6 ");
  EXPECT_EQ(causes_of(R"("compiled":3)", module_named("jit_step")), "jax_programs:6 ");
}

TEST_F(JaxPrograms, NothingIsSaidWithoutJax) {
  add_jax_programs(run_, spool_);
  add_jax_programs(run_, join_path(spool_, "gone"));
  EXPECT_EQ(causes(), "");
}

TEST(JaxNote, IsNotTrusted) {
  const Result<JaxNote> note = parse_jax_note(
      R"({"schema":"purlin.jax/1","pid":7,"modules":-3,"left_out":2,"cost_ns":5e6,"jax":"0.11"})");
  ASSERT_TRUE(note.is_ok());
  EXPECT_EQ(note->modules, 0);
  EXPECT_EQ(note->left_out, 2);
  EXPECT_EQ(note->cost_ns, 5e6);
  for (const char* odd :
       {"", "{}", R"({"schema":"purlin.jax/1"})", R"({"schema":"purlin.torch/1","pid":7})",
        R"({"schema":"purlin.jax/1","pid":-1})"})
    EXPECT_FALSE(parse_jax_note(odd).is_ok()) << odd;
  const Result<JaxNote> odd = parse_jax_note(
      fmt::format(R"({{"schema":"purlin.jax/1","pid":7,"left_out":-1,"cost_ns":-5,"detail":"{}"}})",
                  std::string(5000, 'x')));
  ASSERT_TRUE(odd.is_ok());
  EXPECT_EQ(odd->left_out, 0);
  EXPECT_EQ(odd->cost_ns, 0);
  EXPECT_EQ(odd->detail.size(), 400u);
}

}  // namespace
}  // namespace purlin::profile
