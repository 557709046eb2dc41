// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/worktree.h"

#include "base/files.h"
#include "base/os/process.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::guard {
namespace {

class WorktreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_directory("guard-worktree").value();
    repository_ = join_path(folder_, "repo");
    ASSERT_TRUE(sh("git --version")) << "git is not installed; ./dev test installs it";
    ASSERT_TRUE(
        sh("git init -q repo && cd repo && git config user.email a@b && git config "
           "user.name a && mkdir sub && echo one >sub/f && git add -A && git commit -qm 1 "
           "&& echo two >sub/f && git commit -qam 2"));
  }
  void TearDown() override { (void)remove_tree(folder_); }
  bool sh(const std::string& script) const {
    Process::Options options;
    options.argv = {"sh", "-c", script};
    options.directory = folder_;
    options.out = options.err = Process::Stream::kNull;
    const Result<Captured> ran = run_captured(options, 60);
    return ran.is_ok() && ran->exit.ok();
  }
  Result<std::string> make(const std::string& revision, const std::string& build) {
    PURLIN_ASSIGN(const std::string commit, resolve_commit(repository_, revision));
    return make_worktree({repository_, commit, join_path(folder_, "work"), build, 60});
  }
  std::string folder_, repository_;
};

TEST_F(WorktreeTest, ChecksOutAndBuildsWithoutTouchingTheUsersTree) {
  ASSERT_TRUE(write_atomic(join_path(repository_, "sub/f"), "edited\n").is_ok());
  const Result<std::string> old = make("HEAD~1", "cp sub/f built && echo $PURLIN_COMMIT >>built");
  ASSERT_TRUE(old.is_ok()) << old.status().message();
  const std::string commit = resolve_commit(repository_, "HEAD~1").value();
  EXPECT_EQ(read_file(join_path(*old, "built")).value(), "one\n" + commit + "\n");
  EXPECT_EQ(read_file(join_path(repository_, "sub/f")).value(), "edited\n");
  EXPECT_EQ(repository_root(join_path(repository_, "sub")).value(), repository_);

  // The folder is used again, unless the build command differs.
  ASSERT_TRUE(write_atomic(join_path(*old, "built"), "kept").is_ok());
  EXPECT_TRUE(make("HEAD~1", "cp sub/f built && echo $PURLIN_COMMIT >>built").is_ok());
  EXPECT_EQ(read_file(join_path(*old, "built")).value(), "kept");
  EXPECT_TRUE(make("HEAD~1", "echo other >built").is_ok());
  EXPECT_EQ(read_file(join_path(*old, "built")).value(), "other\n");

  ASSERT_TRUE(remove_worktree(repository_, *old).is_ok());
  EXPECT_FALSE(file_exists(*old));
  EXPECT_TRUE(sh("cd repo && [ $(git worktree list | wc -l) = 1 ]"));
}

// Git killed during `worktree add` leaves a locked note without a folder.
TEST_F(WorktreeTest, ALockedNoteOfAFolderThatIsGoneGoesToo) {
  const Result<std::string> made = make("HEAD", "");
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  ASSERT_TRUE(sh("cd repo && git worktree lock --reason initializing ../work/*[0-9a-f]"));
  ASSERT_TRUE(remove_tree(*made).is_ok());
  ASSERT_TRUE(forget_worktrees(repository_, parent_path(*made)).is_ok());
  EXPECT_TRUE(sh("cd repo && [ $(git worktree list | wc -l) = 1 ]"));
}

TEST_F(WorktreeTest, SubmodulesAreThere) {
  ::setenv("GIT_ALLOW_PROTOCOL", "file", 1);
  ASSERT_TRUE(
      sh("git init -q lib && cd lib && git config user.email a@b && git config user.name a && "
         "echo part >part && git add part && git commit -qm lib && cd ../repo && "
         "git submodule --quiet add $PWD/../lib lib && git commit -qm 3"));
  const Result<std::string> made = make("HEAD", "cat lib/part");
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  ASSERT_TRUE(sh("mv lib away && rm -rf repo/.git/modules"));
  const Status gone = make("HEAD", "cat lib/part; :").status();
  EXPECT_EQ(gone.code(), Code::kFailed);
  EXPECT_NE(gone.message().find("its submodules cannot be fetched"), std::string::npos);
  ::unsetenv("GIT_ALLOW_PROTOCOL");
}

TEST_F(WorktreeTest, SwappedRevisionsAndMergedBranches) {
  const std::string first = resolve_commit(repository_, "HEAD~1").value();
  const std::string last = resolve_commit(repository_, "HEAD").value();
  EXPECT_EQ(commits_between(repository_, first, last)->size(), 2u);
  EXPECT_NE(commits_between(repository_, last, first).status().message().find("they are swapped"),
            std::string::npos);
  EXPECT_NE(commits_between(repository_, last, last).status().message().find("are one commit"),
            std::string::npos);
  EXPECT_FALSE(merged_branch(repository_, last));
  ASSERT_TRUE(
      sh("cd repo && git checkout -qb side && echo 3 >a && git add a && git commit -qm 3 && "
         "echo 4 >a && git commit -qam 4 && git checkout -q - && echo 5 >b && git add b && "
         "git commit -qm 5 && git merge -q --no-ff -m merge side"));
  const std::optional<MergedBranch> branch =
      merged_branch(repository_, resolve_commit(repository_, "HEAD").value());
  ASSERT_TRUE(branch);
  EXPECT_EQ(branch->base, last);
  EXPECT_EQ(branch->tip, resolve_commit(repository_, "side").value());
  EXPECT_EQ(branch->commits, 2u);
}

TEST_F(WorktreeTest, ABuildThatFailsSaysHow) {
  const Result<std::string> built = make("HEAD", "echo the linker is cross; exit 7");
  ASSERT_FALSE(built.is_ok());
  EXPECT_EQ(built.status().code(), Code::kFailed);
  EXPECT_NE(built.status().message().find("the linker is cross"), std::string::npos);
  // A failed build is not used again.
  EXPECT_EQ(make("HEAD", "echo the linker is cross; exit 7").status().code(), Code::kFailed);
  EXPECT_TRUE(make("HEAD", "").is_ok());
}

// CI systems clone one commit.
TEST_F(WorktreeTest, AShallowCloneSaysThatItLacksCommits) {
  ASSERT_TRUE(sh("git clone -q --depth 1 \"file://$PWD/repo\" 'with space'"));
  const std::string clone = join_path(folder_, "with space");
  EXPECT_TRUE(resolve_commit(clone, "HEAD").is_ok());
  const std::string problem = resolve_commit(clone, "HEAD~1").status().message();
  EXPECT_NE(problem.find("git fetch --unshallow"), std::string::npos) << problem;
  EXPECT_EQ(resolve_commit(repository_, "nope").status().message().find("shallow"),
            std::string::npos);
}

TEST_F(WorktreeTest, NamesWhatIsNoRevisionOrRepository) {
  EXPECT_NE(resolve_commit(repository_, "nope").status().message().find("'nope'"),
            std::string::npos);
  EXPECT_EQ(resolve_commit(repository_, "--exec=x").status().code(), Code::kInvalid);
  EXPECT_EQ(resolve_commit("/", "HEAD").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::guard
