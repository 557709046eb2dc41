// SPDX-License-Identifier: Apache-2.0
#include "fleet/cache_api.h"

#include "base/file_fault_calls_testing.h"
#include "base/file_faults_testing.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/sha256.h"
#include "cache/share/bundle.h"
#include "cache/share/share_index.h"
#include "fleet/answers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <memory>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace purlin::fleet {
namespace {

class CacheApiTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-caches").value();
    clock_.now_ns = system_clock().wall_ns();
    open(0);
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void open(std::uint64_t quota) { api_ = CacheApi::open({root_, quota}, clock_).value(); }
  HttpAnswer ask(const std::string& method, const std::string& target, const std::string& body = "",
                 const std::string& condition = "") {
    HttpHead head{method, target};
    head.body_bytes = body.size();
    if (condition == "*")
      head.headers.emplace_back("if-none-match", "*");
    else if (!condition.empty())
      head.headers.emplace_back("if-match", condition);
    const Result<Route> route = parse_route(method, target);
    return route.is_ok() ? api_->answer(*route, head, body) : error_answer(route.status());
  }
  static std::string at(const std::string& key) { return "/v1/caches/team/objects/" + key; }
  static std::string bundle() { return cache::encode_bundle({}, nullptr).value(); }
  static std::string key_of(const std::string& bytes) {
    return "segments/" + sha256_hex(bytes) + ".bundle";
  }
  static std::string index(std::uint64_t generation) {
    cache::ShareIndex index;
    index.generation = generation;
    return cache::encode_index(index);
  }
  static std::string tag_of(const HttpAnswer& answer) {
    for (const auto& [name, value] : answer.headers)
      if (name == "ETag") return value;
    return "";
  }
  static Json json(const HttpAnswer& answer) { return Json::parse(answer.body).value(); }

  std::string root_;
  FakeClock clock_;
  std::unique_ptr<CacheApi> api_;
};

TEST_F(CacheApiTest, KeepsObjectsUnderConditions) {
  const std::string one = index(1), two = index(2);  // once: they hold the time
  EXPECT_EQ(ask("GET", at("index.json")).status, 404);
  const HttpAnswer first = ask("PUT", at("index.json"), one, "*");
  ASSERT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(ask("PUT", at("index.json"), two, "*").status, 412);
  EXPECT_EQ(ask("PUT", at("index.json"), two, "\"0000\"").status, 412);
  const HttpAnswer read = ask("GET", at("index.json"));
  EXPECT_EQ(read.body, one);
  EXPECT_EQ(tag_of(read), tag_of(first));
  EXPECT_EQ(ask("PUT", at("index.json"), two, tag_of(read)).status, 201);
  EXPECT_EQ(ask("GET", at("index.json")).body, two);
  EXPECT_EQ(ask("PUT", "/v1/caches/other/objects/index.json", index(3), "\"0000\"").status, 412);
}

TEST_F(CacheApiTest, AWriteNamesItsCondition) {
  const Route route = parse_route("PUT", at("probe-1")).value();
  for (const auto& headers : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {},
           {{"if-none-match", "\"x\""}},
           {{"if-match", "*"}},
           {{"if-match", "unquoted"}},
           {{"if-match", "\"x\""}, {"if-none-match", "*"}},
           {{"if-match", "\"x\""}, {"if-none-match", "\"y\""}}}) {
    HttpHead head{"PUT", at("probe-1"), headers};
    EXPECT_EQ(api_->answer(route, head, "a").status, 428);
  }
  EXPECT_EQ(ask("GET", at("probe-1")).status, 404);
  EXPECT_EQ(api_->stored_bytes(), 0u);
}

TEST_F(CacheApiTest, WhatNobodyCouldUseIsNotKept) {
  const std::string bytes = bundle(), key = key_of(bytes);
  EXPECT_EQ(ask("PUT", at(key), bytes.substr(0, bytes.size() - 1), "*").status, 400);
  EXPECT_EQ(ask("PUT", at(key_of("other bytes")), "other bytes", "*").status, 400);
  EXPECT_EQ(ask("PUT", at("index.json"), "{\"schema\":\"purlin.share/1\"", "*").status, 400);
  EXPECT_EQ(ask("PUT", at("index.json"), "{}", "*").status, 400);
  EXPECT_EQ(ask("PUT", at("notes.txt"), "x", "*").status, 400);
  EXPECT_EQ(ask("PUT", at("segments/x"), "x", "*").status, 400);
  EXPECT_EQ(ask("PUT", at("probe-1"), std::string(65, 'x'), "*").status, 400);
  EXPECT_EQ(ask("PUT", at("probe-1"), "", "*").status, 400) << "no quota would count it";
  EXPECT_EQ(ask("PUT", at(key), bytes, "\"" + sha256_hex(bytes) + "\"").status, 400)
      << "a segment is never replaced";
  EXPECT_EQ(api_->stored_bytes(), 0u);
  EXPECT_EQ(list_directory(root_).value().size(), 0u) << "nor does a refused write make a cache";
  EXPECT_EQ(ask("PUT", at(key), bytes, "*").status, 201);
  EXPECT_EQ(ask("PUT", at("index.json"), "{\"schema\":\"purlin.share/9\"}", "*").status, 201)
      << "newer clients have newer indexes";
  EXPECT_EQ(ask("GET", at("segments")).status, 404) << "a folder is no object";
  EXPECT_EQ(ask("GET", at(".lock")).status, 404);
}

TEST_F(CacheApiTest, RemovesSegmentsAndProbesAlone) {
  const std::string bytes = bundle(), key = key_of(bytes);
  ASSERT_EQ(ask("PUT", at(key), bytes, "*").status, 201);
  ASSERT_EQ(ask("PUT", at("index.json"), index(1), "*").status, 201);
  ASSERT_EQ(ask("PUT", at("probe-1"), "a", "*").status, 201);
  EXPECT_EQ(api_->stored_bytes(), bytes.size() + index(1).size() + 1);
  EXPECT_EQ(ask("DELETE", at("index.json")).status, 403);
  EXPECT_EQ(ask("DELETE", at(".lock")).status, 403);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(ask("DELETE", at(key)).status, 200);
    EXPECT_EQ(ask("DELETE", at("probe-1")).status, 200);
  }
  EXPECT_EQ(api_->stored_bytes(), index(1).size());
  EXPECT_EQ(ask("GET", at(key)).status, 404);
}

TEST_F(CacheApiTest, KeepsSignedBinariesAlone) {
  const std::string key = at("binaries/0123456789abcdef-00112233445566778899aabbccddeeff.bin");
  const std::string file = "purlin.binary/1 " + hash128_hex("{}\ncode") + "\n{}\ncode";
  const std::string bytes = "purlin.signed-binary/1 " + std::string(64, 'a') + "\n" + file;
  EXPECT_EQ(ask("PUT", key, file, "*").status, 400) << "not signed";
  EXPECT_EQ(ask("PUT", key, bytes.substr(0, bytes.size() - 1), "*").status, 400) << "cut";
  EXPECT_EQ(ask("PUT", at("binaries/x.bin"), bytes, "*").status, 400);
  EXPECT_EQ(ask("PUT", key, bytes, "*").status, 201);
  EXPECT_EQ(ask("PUT", key, bytes, "*").status, 412);
  EXPECT_EQ(ask("PUT", key, bytes, "\"" + sha256_hex(bytes) + "\"").status, 400)
      << "a binary is never replaced";
  EXPECT_EQ(ask("GET", key).body, bytes);
  EXPECT_EQ(api_->stored_bytes(), bytes.size());
  ASSERT_TRUE(api_->tend().is_ok());
  EXPECT_EQ(api_->stored_bytes(), bytes.size()) << "counted again";
  EXPECT_EQ(ask("DELETE", key).status, 200);
  EXPECT_EQ(api_->stored_bytes(), 0u);
}

// A client with a wrong clock must not remove objects that other clients have just listed.
TEST_F(CacheApiTest, WhatTheIndexListsStays) {
  const std::string bytes = bundle(), key = key_of(bytes);
  ASSERT_EQ(ask("PUT", at(key), bytes, "*").status, 201);
  cache::ShareIndex index;
  index.segments = {{sha256_hex(bytes), bytes.size(), 0}};
  const HttpAnswer listed = ask("PUT", at("index.json"), cache::encode_index(index), "*");
  ASSERT_EQ(listed.status, 201) << listed.body;
  EXPECT_EQ(ask("DELETE", at(key)).status, 409);
  EXPECT_EQ(ask("GET", at(key)).body, bytes);
  const Json list = json(ask("GET", "/v1/caches/team/objects?folder=segments/"));
  EXPECT_EQ(list["now_ns"].as_int(), clock_.now_ns) << "by which to read the times";
  ASSERT_TRUE(write_atomic(join_path(root_, "team/index.json"), "{\"sch").is_ok());
  EXPECT_EQ(ask("DELETE", at(key)).status, 409) << "a damaged one may list it";
  index.segments.clear();
  ASSERT_TRUE(
      write_atomic(join_path(root_, "team/index.json"), cache::encode_index(index)).is_ok());
  EXPECT_EQ(ask("DELETE", at(key)).status, 200);
}

// A file that a killed write left counts, because it is on the disk, and is removed after an hour.
// A file of a running write is not removed.
TEST_F(CacheApiTest, WhatKilledWritesLeftGoes) {
  const std::string bytes = bundle(), key = key_of(bytes);
  ASSERT_EQ(ask("PUT", at(key), bytes, "*").status, 201);
  const std::string lefts[] = {join_path(root_, "team/" + key + ".tmp.77.1"),
                               join_path(root_, "team/index.json.tmp.77.2")};
  for (const std::string& left : lefts) ASSERT_TRUE(write_atomic(left, "torn").is_ok());
  ASSERT_EQ(ask("PUT", at("probe-1"), "a", "*").status, 201);
  open(0);
  EXPECT_EQ(api_->stored_bytes(), bytes.size() + 9);
  EXPECT_EQ(ask("DELETE", at(key + ".tmp.77.1")).status, 403);
  EXPECT_EQ(json(ask("GET", "/v1/caches/team/objects?folder=segments/"))["objects"].size(), 1u);
  EXPECT_EQ(ask("GET", at("probe-1")).status, 200) << "its client may be alive";
  clock_.now_ns += std::int64_t{3700} * 1'000'000'000;
  ASSERT_TRUE(api_->tend().is_ok());
  for (const std::string& left : lefts) EXPECT_FALSE(file_exists(left)) << left;
  EXPECT_EQ(ask("GET", at("probe-1")).status, 404) << "its client is not";
  EXPECT_EQ(api_->stored_bytes(), bytes.size());
  EXPECT_EQ(ask("GET", at(key)).body, bytes);
}

TEST_F(CacheApiTest, ListsAndDescribes) {
  std::vector<std::string> keys;
  for (int i = 0; i < 3; ++i) {
    const std::string bytes = bundle();
    keys.push_back(key_of(bytes));
    ASSERT_EQ(ask("PUT", at(keys.back()), bytes, "*").status, 201);
  }
  std::sort(keys.begin(), keys.end());
  const Json all = json(ask("GET", at("").substr(0, at("").size() - 1) + "?folder=segments/"));
  ASSERT_EQ(all["objects"].size(), 3u);
  EXPECT_FALSE(all["more"].as_bool(true));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(all["objects"].items()[i]["key"].as_string(), keys[i]);
  EXPECT_GT(all["objects"].items()[0]["modified_ns"].as_int(), 0);
  const Json rest = json(ask("GET", "/v1/caches/team/objects?folder=segments/&after=" + keys[0]));
  ASSERT_EQ(rest["objects"].size(), 2u);
  EXPECT_EQ(rest["objects"].items()[0]["key"].as_string(), keys[1]);
  EXPECT_EQ(json(ask("GET", "/v1/caches/none/objects?folder=segments/"))["objects"].size(), 0u);

  EXPECT_EQ(json(ask("GET", "/v1/caches"))["caches"].size(), 0u) << "no index yet: no cache";
  EXPECT_EQ(ask("GET", "/v1/caches/team").status, 404);
  cache::ShareIndex index;
  index.generation = 4;
  index.segments = {{std::string(64, 'a'), 100, 3}, {std::string(64, 'b'), 50, 4}};
  ASSERT_EQ(ask("PUT", at("index.json"), cache::encode_index(index), "*").status, 201);
  const Json caches = json(ask("GET", "/v1/caches"));
  EXPECT_EQ(caches["caches"].items().at(0).as_string(), "team");
  const Json team = json(ask("GET", "/v1/caches/team"));
  EXPECT_EQ(team["generation"].as_int(), 4);
  EXPECT_EQ(team["records"].as_int(), 7);
  EXPECT_EQ(team["bytes"].as_int(), 150);
}

// The first answer may have been lost before the object's name was safe on the disk.
TEST_F(CacheApiTest, ARepeatedPutIsToldWhatIsDurable) {
  const std::string bytes = bundle();
  ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
  FileFaults faults;
  EXPECT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 412);
  EXPECT_TRUE(faults.synced(join_path(root_, "team/segments")));
  faults.sync_folder = EIO;
  EXPECT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 500);
}

// At each sync of the server, what a power cut would leave holds every object that was
// acknowledged.
TEST_F(CacheApiTest, WhatIsAcknowledgedSurvivesAPowerCut) {
  std::map<std::string, std::string> acknowledged;
  std::set<std::string> indexes;
  DroppingDisk disk(root_);
  const std::string after = make_temporary_directory("purlin-power-cut").value();
  int points = 0;
  disk.at_each_point = [&] {
    const std::string to = join_path(after, std::to_string(points++));
    disk.cut_power(to);
    std::unique_ptr<CacheApi> at_work = std::move(api_);
    api_ = CacheApi::open({to, 0}, clock_).value();
    for (const auto& [key, bytes] : acknowledged)
      EXPECT_EQ(ask("GET", at(key)).body, bytes) << "power cut at point " << points;
    const HttpAnswer index = ask("GET", at("index.json"));
    EXPECT_TRUE(indexes.empty() || indexes.count(index.status == 404 ? "" : index.body) > 0)
        << points << ": " << index.status << " " << index.body;
    api_ = std::move(at_work);
  };
  for (std::uint64_t generation = 1; generation < 4; ++generation) {
    const std::string bytes = bundle();
    ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
    acknowledged[key_of(bytes)] = bytes;
    const HttpAnswer now = ask("GET", at("index.json"));
    const std::string next = index(generation);           // once: it holds the time
    indexes = {now.status == 404 ? "" : now.body, next};  // one of both
    ASSERT_EQ(ask("PUT", at("index.json"), next, now.status == 404 ? "*" : tag_of(now)).status,
              201);
    indexes = {next};
    disk.at_each_point();
    ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 412);
  }
  disk.at_each_point = {};
  EXPECT_GT(points, 10);
  ASSERT_TRUE(remove_tree(after).is_ok());
}

TEST_F(CacheApiTest, AQuotaHoldsAndWhatIsRemovedCountsNoMore) {
  const std::string one = bundle(), two = bundle();
  open(one.size() + two.size() / 2);
  ASSERT_EQ(ask("PUT", at(key_of(one)), one, "*").status, 201);
  EXPECT_EQ(ask("PUT", at(key_of(one)), one, "*").status, 412)
      << "its first answer may have been lost";
  const HttpAnswer over = ask("PUT", at(key_of(two)), two, "*");
  EXPECT_EQ(over.status, 507);
  EXPECT_NE(over.body.find("purlin cache gc --share"), std::string::npos) << over.body;
  EXPECT_EQ(ask("PUT", at("index.json"), index(1), "*").status, 201)
      << "without it nothing could be tidied up";
  EXPECT_EQ(ask("PUT", "/v1/caches/more/objects/index.json", index(1), "*").status, 507)
      << "but no further cache is made";
  EXPECT_EQ(ask("DELETE", at(key_of(one))).status, 200);
  open(one.size() + index(1).size() + two.size() / 2);
  EXPECT_EQ(ask("PUT", at(key_of(two)), two, "*").status, 201);
  open(1);  // a lower one, later: what is there stays
  EXPECT_EQ(api_->stored_bytes(), two.size() + index(1).size());
  EXPECT_EQ(ask("GET", at(key_of(two))).body, two);
}

// The folder is not the server's alone: what others put there or took away is counted in the end.
TEST_F(CacheApiTest, CountsWhatOthersDidToTheFolder) {
  const std::string one = bundle(), two = bundle();
  open(one.size() + two.size() / 2);
  ASSERT_TRUE(make_directories(join_path(root_, "team/segments")).is_ok());
  ASSERT_TRUE(write_atomic(join_path(root_, "team/" + key_of(one)), one).is_ok());
  EXPECT_EQ(ask("DELETE", at(key_of(one))).status, 200);
  EXPECT_EQ(api_->stored_bytes(), 0u) << "it was never counted";
  ASSERT_EQ(ask("PUT", at(key_of(one)), one, "*").status, 201);
  ASSERT_TRUE(remove_tree(join_path(root_, "team")).is_ok());
  EXPECT_EQ(ask("PUT", at(key_of(two)), two, "*").status, 507) << "counted a moment ago";
  clock_.now_ns += std::int64_t{11} * 1'000'000'000;
  EXPECT_EQ(ask("PUT", at(key_of(two)), two, "*").status, 201);
  EXPECT_EQ(api_->stored_bytes(), two.size());
}

TEST_F(CacheApiTest, AnIndexCountsOnce) {
  std::string tag = tag_of(ask("PUT", at("index.json"), index(1), "*"));
  for (std::uint64_t i = 2; i < 12; ++i) {
    EXPECT_EQ(ask("PUT", at("index.json"), index(i), "\"0000\"").status, 412);
    tag = tag_of(ask("PUT", at("index.json"), index(i), tag));
    ASSERT_FALSE(tag.empty());
    EXPECT_EQ(api_->stored_bytes(), index(i).size());
  }
}

TEST_F(CacheApiTest, ARepeatedSegmentIsCountedOnce) {
  const std::string bytes = bundle();
  ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
  EXPECT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 412);
  EXPECT_EQ(api_->stored_bytes(), bytes.size());
  // Somebody else's that came after the first look, as a link to nowhere seems to.
  const std::string other = bundle(), path = join_path(root_, "team/" + key_of(other));
  ASSERT_EQ(::symlink("nowhere", path.c_str()), 0);
  EXPECT_EQ(ask("PUT", at(key_of(other)), other, "*").status, 412);
  EXPECT_EQ(api_->stored_bytes(), bytes.size());
}

// Segments come and go, and a cache's index is swapped, while all is counted.
TEST_F(CacheApiTest, CountingBesideWritersCountsWhatIsThere) {
  constexpr int kWriters = 3, kRounds = 15;
  ASSERT_EQ(ask("PUT", at("index.json"), index(0), "*").status, 201);
  std::vector<std::string> kept(kWriters);
  for (std::string& bytes : kept) {
    bytes = bundle();
    ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
  }
  // So many that a count takes as long as the requests that run at the same time.
  for (int i = 0; i < 1000; ++i)
    ASSERT_NE(::close(::creat(join_path(root_, fmt::format("team/segments/{}", i)).c_str(), 0600)),
              -1);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (std::string& old : kept)
      threads.emplace_back([&, this] {
        const std::string bytes = bundle();
        EXPECT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
        const HttpAnswer now = ask("GET", at("index.json"));
        ask("PUT", at("index.json"), index(std::uint64_t{1} << (3 * round)), tag_of(now));
        EXPECT_EQ(ask("DELETE", at(key_of(old))).status, 200);
        old = bytes;
      });
    threads.emplace_back([this] {
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(api_->tend().is_ok());
    });
    for (std::thread& thread : threads) thread.join();
    const std::uint64_t alone = CacheApi::open({root_, 0}, clock_).value()->stored_bytes();
    ASSERT_EQ(api_->stored_bytes(), alone) << round;
  }
}

// A cache's index is not stored between the look at it and the removal of what it does not list.
TEST_F(CacheApiTest, ASegmentIsListedOrRemovedNotBoth) {
  cache::ShareIndex index;
  // Long, for there must be time between the two.
  for (int i = 0; i < 4000; ++i) index.segments.push_back({sha256_hex(fmt::format("{}", i)), 1, 1});
  std::string tag = "*";
  for (int round = 0; round < 10; ++round) {
    const std::string bytes = bundle(), path = join_path(root_, "team/" + key_of(bytes));
    ASSERT_EQ(ask("PUT", at(key_of(bytes)), bytes, "*").status, 201);
    index.generation = static_cast<std::uint64_t>(round);
    const HttpAnswer first = ask("PUT", at("index.json"), cache::encode_index(index), tag);
    ASSERT_EQ(first.status, 201) << first.body;
    index.segments.push_back({sha256_hex(bytes), bytes.size(), 0});
    const std::string with = cache::encode_index(index);
    index.segments.pop_back();
    bool there_when_listed = false;
    std::thread lister([&] {
      const HttpAnswer listed = ask("PUT", at("index.json"), with, tag_of(first));
      EXPECT_EQ(listed.status, 201) << listed.body;
      tag = tag_of(listed);
      there_when_listed = file_exists(path);
    });
    // The PUT, too, reads its index first: what follows looks when that is about to be stored.
    EXPECT_TRUE(cache::decode_index(with).is_ok());
    const bool gone = ask("DELETE", at(key_of(bytes))).status == 200;
    lister.join();
    EXPECT_EQ(file_exists(path), !gone);
    EXPECT_EQ(there_when_listed, !gone) << "removed after it was listed";
  }
}

// An index is read again after every replacement, also by another program.
TEST_F(CacheApiTest, WhatTheIndexListsIsLookedAtAnew) {
  const std::string one = bundle(), two = bundle();
  cache::ShareIndex index;
  index.segments = {{sha256_hex(one), one.size(), 0}};
  const std::string with_one = cache::encode_index(index);
  index.segments = {{sha256_hex(two), two.size(), 0}};
  const std::string with_two = cache::encode_index(index);
  for (const std::string* bytes : {&one, &two})
    ASSERT_EQ(ask("PUT", at(key_of(*bytes)), *bytes, "*").status, 201);
  const HttpAnswer first = ask("PUT", at("index.json"), with_one, "*");
  EXPECT_EQ(ask("DELETE", at(key_of(one))).status, 409);
  ASSERT_EQ(ask("PUT", at("index.json"), with_two, tag_of(first)).status, 201);
  EXPECT_EQ(ask("DELETE", at(key_of(two))).status, 409);
  ASSERT_TRUE(write_atomic(join_path(root_, "team/index.json"), with_one + " ").is_ok());
  EXPECT_EQ(ask("DELETE", at(key_of(one))).status, 409);
  EXPECT_EQ(ask("DELETE", "/v1/caches/other/objects/" + key_of(one)).status, 200) << "of none";
  EXPECT_EQ(ask("DELETE", at(key_of(two))).status, 200);
}

TEST_F(CacheApiTest, WritersAtOnceLoseNoUpdate) {
  constexpr int kWriters = 6, kRounds = 25;
  ASSERT_EQ(ask("PUT", at("index.json"), index(0), "*").status, 201);
  const auto writer = [&] {
    for (int done = 0; done < kRounds;) {
      const HttpAnswer now = ask("GET", at("index.json"));
      const std::uint64_t generation = cache::decode_index(now.body)->generation;
      if (ask("PUT", at("index.json"), index(generation + 1), tag_of(now)).status == 201) ++done;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) threads.emplace_back(writer);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache::decode_index(ask("GET", at("index.json")).body)->generation,
            static_cast<std::uint64_t>(kWriters * kRounds));
}

TEST_F(CacheApiTest, AFolderThatCannotBeWrittenIsSaid) {
  ASSERT_TRUE(write_atomic(join_path(root_, "team"), "a file where a folder should be").is_ok());
  const HttpAnswer answer = ask("PUT", at("probe-1"), "a", "*");
  EXPECT_EQ(answer.status, 500) << answer.body;
  EXPECT_EQ(json(answer)["schema"].as_string(), "purlin.error/1");
  EXPECT_EQ(answer.body.find(root_), std::string::npos) << "where it is, no client need know";
  EXPECT_EQ(api_->stored_bytes(), 0u);
}

// Another user's lock, say: no want of room, which 507 is.
TEST_F(CacheApiTest, ALockThatCannotBeOpenedIsSaid) {
  const HttpAnswer first = ask("PUT", at("index.json"), index(1), "*");
  ASSERT_TRUE(make_directories(join_path(root_, "team/.lock")).is_ok());
  const HttpAnswer answer = ask("PUT", at("index.json"), index(2), tag_of(first));
  EXPECT_EQ(answer.status, 500) << answer.body;
  EXPECT_NE(answer.body.find("cannot open the lock 'team/.lock'"), std::string::npos)
      << answer.body;
}

TEST_F(CacheApiTest, ADiskThatIsFullIsSaid) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const HttpAnswer answer = ask("PUT", at("probe-1"), "a", "*");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(answer.status, 507) << answer.body;
  EXPECT_EQ(api_->stored_bytes(), 0u);
}

}  // namespace
}  // namespace purlin::fleet
