// SPDX-License-Identifier: Apache-2.0
// A requested window from the server to a node and back, with kills between any two steps.
#include "fleet/collector/window_taker.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "fleet/api/window_api.h"
#include "profile/format/file.h"

#include <gtest/gtest.h>

#include <fcntl.h>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kTakerNow = 1'700'000'000'000'000'000, kTakerSecond = 1'000'000'000;

class WindowTakerTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-windows").value();
    ASSERT_TRUE(make_directories(join_path(root_, "spool")).is_ok());
    clock_.now_ns = kTakerNow;
    restart();
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  // As after a kill of both sides.
  void restart() {
    requests_ = WindowRequests::open(join_path(root_, "server.json")).value();
    shelf_ = std::make_unique<RawShelf>(join_path(root_, "shelf"));
    endpoints_ = window_endpoints(*requests_, *shelf_, clock_);
    raws_ = RawSpool::open({join_path(root_, "raw")}).value();
    taker_ = WindowTaker::open({join_path(root_, "node.json"), "gpu07", longest_ns_,
                                [this](const LiveCapture& live, std::int64_t length_ns) {
                                  recorded_.push_back(fmt::format("{} {}", live.pid, length_ns));
                                  return record_;
                                }},
                               *raws_)
                 .value();
  }
  Status ask(const std::string& id, const std::string& job = "", std::int64_t pid = 0) {
    WindowRequest request;
    request.id = id, request.node = "gpu07", request.job = job, request.pid = pid;
    request.length_ns = 2 * kTakerSecond;
    return requests_->ask(request, 600 * kTakerSecond, clock_.now_ns).status();
  }
  // `answered`: false, if the answer is lost.
  void exchange(bool answered = true) {
    const Json sent = taker_->exchange();
    const HttpHead head{"POST", "/v1/windows/exchange"};
    const std::string body = sent.dump();
    const HttpAnswer answer = endpoints_[2].handle({head, body});
    ASSERT_EQ(answer.status, 200) << answer.body;
    if (!answered) return;
    ASSERT_TRUE(taker_->settle(sent, Json::parse(answer.body).value()).is_ok());
  }
  void look(std::vector<LiveCapture> captures) {
    ASSERT_TRUE(taker_->look(captures, [this] { return clock_.now_ns; }).is_ok());
  }
  // A capture with a launch in every 100 ms from 5 s before until 20 s after the start.
  LiveCapture capture(std::int64_t pid, const std::string& job = "4711.0") {
    Profile profile;
    DeviceInfo device;
    device.id = "opencl:0", device.name = "CPU";
    profile.environment.devices = {device};
    ProcessInfo process;
    process.pid = pid;
    profile.processes = {process};
    KernelRow row;
    row.name = "scale";
    for (std::int64_t at = -50; at < 200; ++at) {
      Activity activity;
      activity.start_ns = kTakerNow + at * kTakerSecond / 10;
      activity.duration_ns = 1000;
      profile.timeline.activities.push_back(activity);
      row.duration.add(1000);
    }
    profile.kernels = {row};
    LiveCapture live;
    live.capture.folder = join_path(root_, "spool");
    live.capture.name = fmt::format("opencl-{}.plprof", pid);
    live.capture.key = live.capture.name;
    const std::string path = join_path(live.capture.folder, live.capture.name);
    EXPECT_TRUE(profile::write_profile(path, profile).is_ok());
    live.capture.file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    live.pid = pid;
    live.sealed_ns = clock_.now_ns;
    live.run.labels.job = job, live.run.labels.scheduler = "slurm";
    return live;
  }
  std::string state() {
    const auto all = requests_->list("", "", 10, clock_.now_ns).value();
    return all.empty() ? "none" : fmt::format("{} {}", to_text(all[0].state), all[0].why);
  }

  std::string root_;
  FakeClock clock_;
  std::int64_t longest_ns_ = 60 * kTakerSecond;
  Status record_ = Status::ok();
  std::vector<std::string> recorded_;
  std::unique_ptr<WindowRequests> requests_;
  std::unique_ptr<RawShelf> shelf_;
  std::vector<Endpoint> endpoints_;
  std::unique_ptr<RawSpool> raws_;
  std::unique_ptr<WindowTaker> taker_;
};

TEST_F(WindowTakerTest, IsRecordedOnceAndArrivesWhateverIsKilledBetween) {
  ASSERT_TRUE(ask("a1", "4711").is_ok());
  restart();
  EXPECT_TRUE(requests_->is_wanted("gpu07"));
  exchange(false);
  EXPECT_EQ(state(), "taken ");
  restart();
  exchange();
  restart();
  EXPECT_TRUE(taker_->is_due(clock_.now_ns));
  look({capture(7), capture(8), capture(9, "other")});
  EXPECT_EQ(recorded_, (std::vector<std::string>{"7 2000000000", "8 2000000000"}));
  EXPECT_TRUE(taker_->is_recording(join_path(root_, "spool"), 8));
  restart();
  exchange();
  EXPECT_EQ(state(), "recording ");
  look({capture(7), capture(8)});
  clock_.now_ns += kTakerSecond;
  look({capture(7), capture(8)});
  clock_.now_ns += 2 * kTakerSecond;
  look({capture(7)});
  EXPECT_EQ(recorded_.size(), 2U) << "no process is asked again";
  EXPECT_FALSE(taker_->busy());
  restart();
  const RawCapture raw = raws_->next_to_send().value();
  EXPECT_EQ(raw.pointer.kind, "timeline");
  const std::string bytes = raws_->read(raw).value();
  const Profile window = profile::decode_profile(bytes).value();
  EXPECT_EQ(window.processes.size(), 2U);
  EXPECT_EQ(window.timeline.activities.size(), 2U * 20U) << "two seconds of two processes";
  ASSERT_EQ(window.kernels.size(), 1U);
  EXPECT_EQ(window.kernels[0].duration.count(), 40) << "the rows are of the window";
  exchange(false);
  EXPECT_EQ(state(), "sending ");
  ASSERT_TRUE(requests_->arrived(raw.pointer.sha256, clock_.now_ns).is_ok());
  restart();
  exchange();
  EXPECT_EQ(state(), "arrived ");
  EXPECT_FALSE(taker_->has_reports());
  EXPECT_EQ(taker_->exchange()["reports"].items().size(), 0U);
}

TEST_F(WindowTakerTest, AFileThatIsRemovedMeanwhileIsStillRead) {
  ASSERT_TRUE(ask("a1", "slurm 4711.0").is_ok());
  exchange();
  LiveCapture first = capture(7);
  look({first});
  clock_.now_ns += kTakerSecond / 2;
  first.sealed_ns = clock_.now_ns, first.ended = true;
  look({first});
  ASSERT_TRUE(remove_file(join_path(first.capture.folder, first.capture.name)).is_ok());
  clock_.now_ns += 3 * kTakerSecond;
  look({});
  exchange();
  EXPECT_EQ(state(), "sending ");
}

TEST_F(WindowTakerTest, RefusalsHaveTheirReason) {
  ASSERT_TRUE(ask("a1", "9").is_ok());
  exchange();
  look({capture(7)});
  exchange();
  EXPECT_EQ(state(), "refused no captured process of this job or number runs on the node");
  record_ = error(Code::kFailed, "process 7: another CUPTI client of the program is active");
  ASSERT_TRUE(ask("a2", "", 7).is_ok());
  exchange();
  look({capture(7), capture(8)});
  exchange();
  EXPECT_EQ(state(), "refused process 7: another CUPTI client of the program is active");
  longest_ns_ = 0;
  restart();
  ASSERT_TRUE(ask("a3").is_ok());
  exchange();
  look({capture(7)});
  exchange();
  EXPECT_NE(state().find("--window-limit"), std::string::npos);
  EXPECT_EQ(recorded_.size(), 1U);
}

TEST_F(WindowTakerTest, RequestsAreBoundedAndExpire) {
  for (const char* id : {"1", "2", "3", "4"}) ASSERT_TRUE(ask(id).is_ok());
  EXPECT_EQ(ask("5").code(), Code::kUnavailable);
  EXPECT_TRUE(ask("4").is_ok()) << "the same one";
  clock_.now_ns += 601 * kTakerSecond;
  EXPECT_NE(state().find("expired the node sent no batch"), std::string::npos);
  exchange();
  EXPECT_FALSE(taker_->busy()) << "nothing that expired is recorded";
  ASSERT_TRUE(ask("6").is_ok());
  exchange();
  clock_.now_ns += 2 * 3600 * kTakerSecond;
  EXPECT_NE(state().find("expired the node took it"), std::string::npos);
}

}  // namespace
}  // namespace purlin::fleet
