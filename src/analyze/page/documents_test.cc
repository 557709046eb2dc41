// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/documents.h"

#include "analyze/page/slice_rows.h"
#include "analyze/page/timeline_document.h"
#include "analyze/report/testing.h"
#include "analyze/timeline/testing.h"
#include "base/text.h"
#include "page/page.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::analyze {
namespace {

Json head_of(const Profile& profile, const PageLimits& limits = {}) {
  return report_head(build_report(profile, GroupBy::kKernel),
                     build_report(profile, GroupBy::kLaunch), profile, limits);
}

template <class Value>
std::vector<Value> array_of(const page::Document& document, std::string_view key) {
  const Json place = document.head()["arrays"][key];
  std::vector<Value> out(static_cast<std::size_t>(place["count"].as_int()));
  if (!out.empty())
    std::memcpy(out.data(), document.bytes().data() + place["at"].as_int(),
                out.size() * sizeof(Value));
  return out;
}

TEST(PageDocuments, TheHeadHoldsTheReport) {
  const Report report = full_report();
  const Json document = report_head(report, full_report(GroupBy::kLaunch), {}, {});
  EXPECT_EQ(document["schema"].as_string(), "purlin.report/1");
  const Json wanted = to_json(report);
  for (const Json::Member& member : wanted.members())
    EXPECT_EQ(document[member.key], member.value) << member.key;
  EXPECT_EQ(document["page"]["rows"].as_int(), 4);
  ASSERT_EQ(document["page"]["details"].size(), 4u);
  const Json& first = document["page"]["details"].items()[0];
  EXPECT_EQ(first["shapes"].size(), 2u);
  double count = 0;
  for (const Json& bin : first["histogram"]["count"].items()) count += bin.as_double();
  EXPECT_EQ(count, 250);
}

// The rows beyond those in full are there in short, in the same order.
TEST(PageDocuments, SizeIsBounded) {
  Profile profile;
  for (int i = 0; i < 700; ++i) {
    profile.kernels.push_back(
        row_of((std::string(9'000, 'x') + std::to_string(i)).c_str(), 1, 0, 1000 + i, 1));
    profile.kernels.push_back(profile.kernels.back());
    profile.kernels.back().launch.grid[0] = 2;
  }
  const Report report = build_report(profile, GroupBy::kKernel);
  const Report by_launch = build_report(profile, GroupBy::kLaunch);
  const std::vector<page::Document> documents =
      documents_of({profile, profile, report, by_launch, {}, {}}, 0);
  ASSERT_EQ(documents.size(), 3u);
  const Json document = documents[0].head();
  EXPECT_LT(document.dump().size(), 10u << 20);
  EXPECT_EQ(document["kernels"].size(), 500u);
  EXPECT_EQ(document["page"]["rows"].as_int(), 700);
  EXPECT_EQ(document["page"]["other"]["rows"].as_int(), 200);
  double share = document["page"]["other"]["share"].as_double();
  for (const Json& kernel : document["kernels"].items()) share += kernel["share"].as_double();
  EXPECT_NEAR(share, 1, 1e-9);
  const page::Document& rows = documents[1];
  EXPECT_EQ(rows.name(), "rows");
  EXPECT_EQ(rows.head()["rows"].as_int(), 200);
  const std::vector<double> total = array_of<double>(rows, "total_ns");
  ASSERT_EQ(total.size(), 200u);
  EXPECT_DOUBLE_EQ(total[0], report.kernels[500].duration.total_ns());
  const std::vector<std::uint8_t> labels = array_of<std::uint8_t>(rows, "labels");
  EXPECT_EQ(std::count(labels.begin(), labels.end(), '\n'), 200);
}

TEST(PageDocuments, AnEmptyProfileIsAPageToo) {
  const Json document = head_of({});
  EXPECT_EQ(document["kernels"].size(), 0u);
  EXPECT_EQ(document["page"]["rows"].as_int(), 0);
  EXPECT_EQ(document["timeline"]["devices"].size(), 0u);
}

TEST(PageDocuments, SlicesOfARowDoNotOverlap) {
  SliceRows rows;
  rows.add({0, 100, 0, 0});
  rows.add({10, 50, 1, 1});   // in the first
  rows.add({20, 30, 2, 2});   // in the second
  rows.add({40, 120, 3, 3});  // beyond both: an own row below
  rows.add({60, 70, 4, 4});   // below what is still under way
  rows.add({130, 140, 5, 5});
  ASSERT_EQ(rows.rows().size(), 4u);
  EXPECT_EQ(rows.rows()[0].size(), 2u);
  EXPECT_EQ(rows.size(), 6u);
  for (const std::vector<PageSlice>& row : rows.rows())
    for (std::size_t i = 1; i < row.size(); ++i) EXPECT_LE(row[i - 1].end, row[i].begin);
}

Profile linked_profile() {
  Profile profile;
  profile.environment.devices.resize(1);
  profile.environment.devices[0].name = "NVIDIA H200";
  profile.processes.resize(1);
  profile.kernels.push_back(row_of("gemm_kernel", 2, 0, 900, 1));
  CopyRow copy;
  copy.kind = "h2d";
  profile.copies.push_back(copy);
  Timeline& timeline = profile.timeline;
  timeline.names = {"", "cudaLaunchKernel", "ProfilerStep#1"};
  Call call;
  call.start_ns = 1'000;
  call.duration_ns = 100;
  call.name = 1;
  call.kind = CallKind::kLaunch;
  timeline.calls = {call};
  Range step;
  step.start_ns = 900;
  step.duration_ns = 5'000;
  step.name = 2;
  step.kind = RangeKind::kStep;
  timeline.ranges = {step};
  Activity kernel;
  kernel.start_ns = 2'000;
  kernel.duration_ns = 900;
  kernel.call = 0;
  kernel.stream = 7;
  Activity bytes = kernel;
  bytes.start_ns = 4'000;
  bytes.duration_ns = 500;
  bytes.kind = ActivityKind::kCopy;
  bytes.bytes = 4096;
  bytes.call = kNone;
  timeline.activities = {kernel, bytes};
  sort_timeline(timeline);
  return profile;
}

TEST(PageDocuments, TheTimelineLinksWorkToItsCall) {
  const Profile profile = linked_profile();
  const TimelineAnalysis analysis = analyze_timeline(profile, PhaseChoice::kAll);
  const std::optional<page::Document> document =
      timeline_document("timeline", profile, analysis, GroupBy::kKernel);
  ASSERT_TRUE(document.has_value());
  const Json head = document->head();
  EXPECT_EQ(head["schema"].as_string(), "purlin.page-timeline/1");
  EXPECT_EQ(head["origin_ns"].as_string(), "900");
  const auto begin = array_of<double>(*document, "begin");
  const auto item = array_of<std::uint32_t>(*document, "item");
  const auto link = array_of<std::uint32_t>(*document, "link");
  ASSERT_EQ(link.size(), 2u);
  const std::size_t first = static_cast<std::size_t>(head["first_linked"].as_int());
  ASSERT_LT(link[0], begin.size());
  EXPECT_EQ(begin[link[0]], 100);  // the call, after the origin
  EXPECT_EQ(link[1], kNone);
  const Json::Array& items = head["items"].items();
  EXPECT_EQ(items[item[link[0]]]["name"].as_string(), "cudaLaunchKernel");
  EXPECT_EQ(items[item[first]]["class"].as_string(), "gemm");
  const Json report = head_of(profile);
  EXPECT_EQ(items[item[first]]["kernel"], report["kernels"].items()[0]["id"]);
  EXPECT_EQ(array_of<double>(*document, "bytes"), std::vector<double>{4096});
  EXPECT_EQ(array_of<std::uint32_t>(*document, "bytes_of")[0], first + 1);
}

TEST(PageDocuments, EachIdleIntervalHasACauseAndItsShare) {
  const Profile profile = linked_profile();
  const TimelineAnalysis analysis = analyze_timeline(profile, PhaseChoice::kAll);
  std::int64_t idle = 0;
  for (const IdleInterval& gap : analysis.idle) {
    idle += gap.duration_ns;
    EXPECT_GT(gap.share, 0);
    EXPECT_LE(gap.share, 1);
  }
  EXPECT_EQ(idle, analysis.devices[0].idle_total_ns());
  const std::optional<page::Document> document =
      timeline_document("timeline", profile, analysis, GroupBy::kKernel);
  const Json head = document->head();
  const Json::Array& tracks = head["tracks"].items();
  EXPECT_TRUE(std::any_of(tracks.begin(), tracks.end(),
                          [](const Json& track) { return track["kind"].as_string() == "idle"; }));
  EXPECT_EQ(array_of<std::uint8_t>(*document, "share").size(), analysis.idle.size());
}

TEST(PageDocuments, SparksAddUpToTheRow) {
  const Profile profile = linked_profile();
  const Json document = head_of(profile);
  double sum = 0;
  for (const Json& part : document["page"]["details"].items()[0]["spark"].items())
    sum += part.as_double();
  EXPECT_EQ(sum, 900);
}

TEST(PageDocuments, NoTimelineIsNoDocument) {
  EXPECT_FALSE(timeline_document("timeline", {}, {}, GroupBy::kKernel).has_value());
}

// Names are hostile: nothing of them becomes an element of the page.
TEST(PageDocuments, HostileNamesAreInert) {
  Profile profile = linked_profile();
  const std::string hostile =
      "k</script><script>alert(1)</script><!--<img src=x "
      "onerror=alert(2)>&lt;\xe2\x80\xa8\xff\x01\"'";
  profile.kernels[0].name = profile.kernels[0].op = profile.kernels[0].shape = hostile;
  profile.command = profile.environment.devices[0].name = profile.environment.build = hostile;
  profile.timeline.names[1] = profile.copies[0].kind = hostile;
  Result<AnalysedPage> analysed = analyse_for_page(profile, hostile, 0, {});
  ASSERT_TRUE(analysed.is_ok()) << analysed.status().message();
  page::Page page;
  page.title = hostile;
  page.files.push_back(analysed->file);
  page.documents = std::move(analysed->documents);
  const Result<std::string> text = page::render_file(page);
  ASSERT_TRUE(text.is_ok());
  const std::string body = text->substr(text->find("<body>"));
  const std::string data = body.substr(0, body.rfind("<script>"));
  EXPECT_EQ(data.find("<img"), std::string::npos);
  EXPECT_EQ(data.find("<!--"), std::string::npos);
  EXPECT_EQ(data.find("<script>"), std::string::npos);
  EXPECT_NE(data.find("k\\u003c/script\\u003e"), std::string::npos);
}

}  // namespace
}  // namespace purlin::analyze
