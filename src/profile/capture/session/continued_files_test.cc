// SPDX-License-Identifier: Apache-2.0
// A capture of a long run in several files: no launch is lost or in two of them.
#include "base/files.h"
#include "profile/capture/session/definitions.h"
#include "profile/capture/session/session.h"
#include "profile/format/file.h"
#include "profile/format/tail.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

namespace purlin::profile::capture {
namespace {

class NoSource : public Source {
 public:
  void collect(bool) override {}
};

class ContinuedFiles : public ::testing::Test {
 protected:
  void SetUp() override { spool_ = make_temporary_directory("purlin-continued").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(spool_).is_ok()); }
  // Sessions are never destroyed.
  CaptureSession& start(std::uint64_t file_bytes) {
    SessionOptions options;
    options.spool = spool_;
    options.layer = "opencl";
    options.period_ms = 10;
    options.file_bytes = file_bytes;
    auto* const session = new CaptureSession(options, *new NoSource);
    // Reachable, for the leak sanitizer.
    static auto* const sessions = new std::vector<const CaptureSession*>;
    sessions->push_back(session);
    session->start();
    session->set_devices(R"([{"id": "opencl:0", "name": "a device"}])");
    return *session;
  }
  void launch(CaptureSession& session, const std::string& kernel, std::int64_t duration_ns) {
    {
      Recorder::Batch batch(session.recorder());
      LaunchFacts facts;
      facts.name = kernel;
      facts.start_ns = 1'700'000'000'000'000'000 + ++launches_ * 1000;
      facts.duration_ns = duration_ns;
      batch.launch(facts);
      batch.copy({.kind = launches_ % 3 == 0 ? "h2d" : "d2h",
                  .bytes = 10,
                  .start_ns = facts.start_ns,
                  .duration_ns = 100});
    }
    ++ledger_[kernel];
    session.recorder().count_launches(1);
  }
  std::string spool_;
  std::int64_t launches_ = 0;
  std::map<std::string, double> ledger_;
};

TEST_F(ContinuedFiles, HaveEachLaunchOnceAndEndInOrder) {
  CaptureSession& session = start(8 << 10);
  for (int i = 0; i < 400 || list_directory(spool_)->size() < 4; ++i) {
    launch(session, "kernel_" + std::to_string(i % 7 + i / 200), 1000 + i);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_LT(i, 20'000);
  }
  session.finish();
  const std::vector<std::string> names = list_directory(spool_).value();
  std::map<std::string, double> found, copied;
  double seen = 0, counted = 0;
  for (const std::string& name : names) {
    const std::string path = join_path(spool_, name);
    EXPECT_LT(file_size(path).value(), 64u << 10);
    ProfileTail tail;
    const std::vector<TailPart> parts = tail.read(Bytes::open(path).value()).value();
    EXPECT_TRUE(tail.is_final()) << name;
    for (const TailPart& part : parts) {
      EXPECT_EQ(part.profile.environment.devices.at(0).name, "a device");
      for (const KernelRow& row : part.profile.kernels) found[row.name] += row.duration.count();
      seen += part.profile.coverage.launches_seen;
      counted += part.profile.coverage.launches_counted;
    }
    const Profile whole = read_profile(path).value();
    for (const CopyRow& row : whole.copies) copied[row.kind] += row.duration.count();
    EXPECT_FALSE(whole.partial) << name;
  }
  EXPECT_EQ(found, ledger_);
  EXPECT_EQ(seen, static_cast<double>(launches_));
  EXPECT_EQ(counted, static_cast<double>(launches_));
  EXPECT_EQ(copied["h2d"] + copied["d2h"], static_cast<double>(launches_));
  EXPECT_EQ(copied["h2d"], static_cast<double>(launches_ / 3));
}

TEST_F(ContinuedFiles, OneFileWithoutTheVariable) {
  CaptureSession& session = start(0);
  for (int i = 0; i < 100; ++i) launch(session, "kernel", 1000);
  session.finish();
  EXPECT_EQ(list_directory(spool_)->size(), 1u);
}

TEST(Definitions, EndWhereAFileIsCutShort) {
  std::string bytes;
  wire::append_chunk(bytes, wire::ChunkType::kStrings, std::string_view("\x01\x01x", 3));
  const std::string strings = bytes;
  wire::append_chunk(bytes, wire::ChunkType::kCoverage, "{}");
  const std::size_t before = bytes.size();
  wire::Encoder types, counters;
  for (const std::uint64_t value : {1, 0, 1, 0, 0}) types.varint(value);
  for (const std::uint64_t value : {1, 0, 0, 0, 1, 0}) counters.varint(value);
  counters.real(1), counters.real(1);
  wire::append_chunk(bytes, wire::ChunkType::kDetails, counters.bytes());
  wire::append_chunk(bytes, wire::ChunkType::kDetails, types.bytes());
  std::string details;
  wire::append_chunk(details, wire::ChunkType::kDetails, types.bytes());
  EXPECT_EQ(definitions_of(bytes), strings + details) << "counters are of a period";
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(definitions_of(std::string_view(bytes).substr(0, size)),
              size < strings.size() ? "" : strings)
        << size << " " << before;
}

}  // namespace
}  // namespace purlin::profile::capture
