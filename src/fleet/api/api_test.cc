// SPDX-License-Identifier: Apache-2.0
// Every endpoint by its table: scopes, bounds, OpenAPI; and what batches and questions answer.
#include "backlog/leases.h"
#include "base/files.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/api/backlog_api.h"
#include "fleet/api/fleet_api.h"
#include "fleet/api/ingest_api.h"
#include "fleet/api/memory_store_testing.h"
#include "fleet/api/query_api.h"
#include "fleet/api/query_filter.h"
#include "fleet/api/raw_kernel_api.h"
#include "fleet/api/window_api.h"
#include "fleet/cache_api.h"
#include "fleet/service.h"
#include "profile/format/file.h"
#include "store/zstd_frame.h"

#include <gtest/gtest.h>

#include <thread>

namespace purlin::fleet {
namespace {

constexpr const char* kScopedTokens =
    "ingest 0000000000000000-ingest agent\n"
    "read 0000000000000000-read reader\n"
    "write 0000000000000000-write writer\n"
    "admin 0000000000000000-admin owner\n"
    "read 0000000000000000-one some-cache team\n";

store::Batch made_batch(std::uint64_t sequence, const std::string& kernel = "gemm",
                        int launches = 3) {
  store::Batch batch;
  batch.node = "gpu07";
  batch.boot = "boot";
  batch.sequence = sequence;
  batch.begin_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(sequence) * 10'000'000'000;
  batch.end_ns = batch.sent_ns = batch.begin_ns + 10'000'000'000;
  batch.devices = {{.uuid = "GPU-1", .model = "NVIDIA H200"}};
  batch.runs = {store::BatchRun{.build = "v1"}};
  store::BatchRow row;
  row.hour_ns = batch.begin_ns / store::kHourNs * store::kHourNs;
  row.kernel = kernel;
  row.role = "matmul";
  for (int i = 0; i < launches; ++i) row.duration.add(1000 + i);
  row.recorded = launches;
  batch.rows.push_back(row);
  batch.coverage.push_back({.hour_ns = row.hour_ns,
                            .busy_ns = 3000,
                            .seen_ns = 3000,
                            .launches_seen = static_cast<double>(launches)});
  return batch;
}

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-api").value();
    caches_ = CacheApi::open({join_path(root_, "caches"), 0}, clock_).value();
    leases_.emplace(backlog::Leases::open(join_path(root_, "backlog.sqlite")).value());
    clock_.now_ns = 1'700'000'100'000'000'000;
    gate_.emplace(std::make_unique<MemoryStore>(facts_));
    shelf_.emplace(join_path(root_, "raws"));
    windows_ = WindowRequests::open(join_path(root_, "windows.json")).value();
    audit_ = AuditLog::open(join_path(root_, "audit.log")).value();
    open("");
  }
  void TearDown() override {
    service_.reset();
    gate_.reset();
    leases_.reset();
    ASSERT_TRUE(remove_tree(root_).is_ok());
  }
  void open(const std::string& tokens) {
    ServiceOptions options;
    if (!tokens.empty()) options.tokens = Tokens::parse(tokens, "t").value();
    std::vector<Endpoint> all;
    for (std::vector<Endpoint> some :
         {ingest_endpoints(*gate_, clock_, windows_.get()), query_endpoints(*gate_, clock_),
          node_endpoints(*gate_),
          raw_endpoints(
              *shelf_, *gate_, clock_,
              [this](const std::string& hash) { return windows_->arrived(hash, clock_.now_ns); }),
          raw_kernel_endpoints(*shelf_, *gate_, clock_),
          window_endpoints(*windows_, *shelf_, clock_), guard_endpoints(*gate_, clock_),
          backlog_endpoints(*leases_, clock_), store_endpoints(*gate_, clock_),
          cache_endpoints(*caches_)})
      all.insert(all.end(), some.begin(), some.end());
    service_.emplace(std::move(options), std::move(all), log_, audit_.get(), clock_);
  }
  HttpAnswer ask(const std::string& method, const std::string& target, const std::string& body = "",
                 std::vector<std::pair<std::string, std::string>> headers = {}) {
    HttpHead head{method, target, std::move(headers)};
    head.headers.emplace_back("host", "127.0.0.1:8717");
    head.body_bytes = body.size();
    head.peer = "10.0.0.7";
    if (std::optional<HttpAnswer> early = service_->early(head)) return *early;
    return service_->answer(head, body);
  }
  HttpAnswer post(const std::string& bytes, const std::string& hash = "") {
    return ask("POST", "/v1/batches", bytes,
               {{"x-purlin-batch", hash.empty() ? sha256_hex(bytes) : hash},
                {"x-purlin-sent", std::to_string(clock_.now_ns)}});
  }
  static std::string header(const HttpAnswer& answer, std::string_view name) {
    for (const auto& [key, value] : answer.headers)
      if (key == name) return value;
    return "";
  }
  Json get(const std::string& target) {
    const HttpAnswer answer = ask("GET", target);
    EXPECT_EQ(answer.status, 200) << target << answer.body;
    return Json::parse(answer.body).value_or(Json());
  }

  std::string root_;
  FakeClock clock_;
  Log log_{Level::kSilent};
  std::unique_ptr<CacheApi> caches_;
  std::optional<backlog::Leases> leases_;
  std::shared_ptr<MemoryFacts> facts_ = std::make_shared<MemoryFacts>();
  std::optional<StoreGate> gate_;
  std::optional<RawShelf> shelf_;
  std::unique_ptr<WindowRequests> windows_;
  std::unique_ptr<AuditLog> audit_;
  std::optional<Service> service_;
};

// A path of an endpoint, with its parts filled in.
std::string path_of(const Endpoint& endpoint) {
  std::string path(endpoint.path);
  const auto fill = [&](std::string_view part, std::string_view value) {
    if (const std::size_t at = path.find(part); at != path.npos)
      path.replace(at, part.size(), value);
  };
  fill("{cache}", "other");
  fill("{key...}", "probe-1");
  fill("{sha256}", std::string(64, 'a'));
  fill("{node}", "gpu07");
  return path;
}

TEST_F(ApiTest, EachEndpointOpensForItsScopeAndNoOther) {
  open(kScopedTokens);
  const struct {
    const char* token;
    unsigned scopes;
  } holders[] = {{"0000000000000000-ingest", 1},
                 {"0000000000000000-read", 2},
                 {"0000000000000000-write", 6},
                 {"0000000000000000-admin", 15},
                 {"0000000000000000-one", 0}};
  for (const Endpoint& endpoint : service_->endpoints().all()) {
    const std::string target = path_of(endpoint);
    const auto early = [&](const std::string& token) {
      HttpHead head{std::string(endpoint.method), target};
      if (!token.empty()) head.headers = {{"authorization", "Bearer " + token}};
      const std::optional<HttpAnswer> answer = service_->early(head);
      return answer ? answer->status : 0;
    };
    const auto scope = static_cast<unsigned>(endpoint.scope);
    EXPECT_EQ(early(""), scope == 0 ? 200 : 401) << endpoint.method << " " << target;
    EXPECT_EQ(early("0000000000000000-unknown"), scope == 0 ? 200 : 401);
    for (const auto& holder : holders) {
      const bool may = (holder.scopes & scope) == scope;
      const int status = early(holder.token);
      EXPECT_EQ(status == 403, !may)
          << endpoint.method << " " << target << " " << holder.token << " " << status;
    }
  }
}

TEST_F(ApiTest, ARequestedWindowIsInTheAnswerToTheNodesNextBatchAndInTheAuditLog) {
  EXPECT_EQ(header(post(store::encode(made_batch(1)).value()), "X-Purlin-Windows"), "");
  const std::string ask_for = "/v1/windows?id=ab12&node=gpu07&job=4711&length_s=5";
  EXPECT_EQ(ask("POST", ask_for).status, 201);
  EXPECT_EQ(ask("POST", ask_for).status, 201) << "the same request twice is one";
  EXPECT_EQ(get("/v1/windows")["windows"].items().size(), 1U);
  EXPECT_EQ(header(post(store::encode(made_batch(2)).value()), "X-Purlin-Windows"), "true");
  const std::string take = R"({"node": "gpu07", "claimer": "c1", "reports": []})";
  const auto exchange = [&](const std::string& body) {
    const HttpAnswer answer = ask("POST", "/v1/windows/exchange", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body).value_or(Json());
  };
  EXPECT_EQ(exchange(take)["windows"].items().size(), 1U);
  EXPECT_EQ(exchange(R"({"node": "gpu07", "claimer": "c2"})")["windows"].items().size(), 0U)
      << "one collector has it";
  EXPECT_EQ(exchange(take)["windows"].items().size(), 1U) << "its answer may have been lost";
  const std::string bytes = "a profile", hash = sha256_hex(bytes);
  const std::string sending =
      R"({"node": "gpu07", "claimer": "c1", "reports": [{"id": "ab12", "state": "sending", )"
      R"("detail": ")" +
      hash + R"("}]})";
  EXPECT_EQ(exchange(sending)["windows"].items().size(), 0U);
  EXPECT_EQ(get("/v1/windows?id=ab12")["windows"].items()[0]["state"].as_string(), "sending");
  EXPECT_EQ(ask("PUT", "/v1/raw/" + hash, bytes).status, 204);
  const Json done = get("/v1/windows?id=ab12")["windows"].items()[0];
  EXPECT_EQ(done["state"].as_string(), "arrived");
  EXPECT_EQ(ask("GET", done["url"].as_string()).body, bytes);
  EXPECT_EQ(header(post(store::encode(made_batch(3)).value()), "X-Purlin-Windows"), "");
  EXPECT_NE(read_file(join_path(root_, "audit.log"))->find("id=ab12&node=gpu07&job=4711"),
            std::string::npos);
  for (const char* bad :
       {"/v1/windows?id=ab12zz&node=n", "/v1/windows?id=ab", "/v1/windows?id=a&node=n&length_s=61",
        "/v1/windows?id=a&node=n&length_s=nan", "/v1/windows?id=a&node=n&pid=x",
        "/v1/windows?id=a&node=n&expires_s=4000"})
    EXPECT_EQ(ask("POST", bad).status, 400) << bad;
}

TEST_F(ApiTest, NoEndpointTakesALargerBodyThanItsOwn) {
  for (const Endpoint& endpoint : service_->endpoints().all()) {
    HttpHead head{std::string(endpoint.method), path_of(endpoint), {{"host", "localhost"}}};
    head.body_bytes = endpoint.max_body + 1;
    const std::optional<HttpAnswer> answer = service_->early(head);
    ASSERT_TRUE(answer) << endpoint.path;
    // A cache's list has its own bounds first: without `folder` it is no request.
    const bool list = endpoint.kind == "list_objects";
    EXPECT_EQ(answer->status, list ? 400 : 413) << endpoint.path;
  }
}

// docs/formats/openapi.json is what the table says: PURLIN_UPDATE_GOLDEN=1 writes it.
TEST_F(ApiTest, OpenApiIsThatOfTheTable) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, "docs/formats/openapi.json");
  const std::string text = service_->endpoints().openapi().dump(1) + "\n";
  if (!environment_variable("PURLIN_UPDATE_GOLDEN").empty()) {
    ASSERT_TRUE(write_atomic(path, text).is_ok());
  }
  EXPECT_EQ(read_file(path).value_or(""), text);
  const Json json = Json::parse(text).value();
  std::size_t operations = 0;
  for (const Json::Member& entry : json["paths"].members()) operations += entry.value.size();
  EXPECT_EQ(operations, service_->endpoints().all().size()) << "no two of one method and path";
}

TEST_F(ApiTest, ABatchIsStoredOnce) {
  const std::string bytes = store::encode(made_batch(1)).value();
  HttpAnswer answer = post(bytes);
  EXPECT_EQ(answer.status, 204) << answer.body;
  EXPECT_EQ(header(answer, "X-Purlin-Duplicate"), "");
  EXPECT_EQ(header(answer, "X-Purlin-Time"), std::to_string(clock_.now_ns));
  answer = post(bytes);
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(header(answer, "X-Purlin-Duplicate"), "true");
  EXPECT_EQ(facts_->launches["gemm"], 3);
}

TEST_F(ApiTest, WhatIsNoBatchIsRefusedForGood) {
  EXPECT_EQ(ask("POST", "/v1/batches", "x").status, 400) << "without its hash";
  EXPECT_EQ(post("x").status, 422);
  EXPECT_EQ(post("").status, 422);
  EXPECT_EQ(post(std::string(1 << 20, '\xff')).status, 422);
  const std::string bytes = store::encode(made_batch(1)).value();
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_EQ(post(bytes.substr(0, cut)).status, 422) << cut;
  std::string changed = bytes;
  changed[changed.size() / 2] ^= 1;
  EXPECT_EQ(post(changed, sha256_hex(bytes)).status, 412) << "damaged on its way: sent again";
  EXPECT_TRUE(facts_->batches.empty());
}

// 8 MiB of zstd can state any size: no more than the limit is ever allocated.
TEST_F(ApiTest, AZipBombIsRefusedByItsHead) {
  const std::string bomb = store::zstd_frame(std::string(std::size_t{200} << 20, '\0')).value();
  EXPECT_LT(bomb.size(), 64U << 10);
  EXPECT_EQ(post(bomb).status, 422);
  const std::string nested =
      store::zstd_frame(store::zstd_frame(std::string(1 << 20, 'x')).value()).value();
  EXPECT_EQ(post(nested).status, 422);
}

TEST_F(ApiTest, AStoreThatIsDownIsTriedAgain) {
  const std::string bytes = store::encode(made_batch(1)).value();
  const struct {
    Code code;
    int status;
  } cases[] = {
      {Code::kUnavailable, 503}, {Code::kTimeout, 503}, {Code::kIo, 507}, {Code::kCorrupt, 500}};
  for (const auto& c : cases) {
    facts_->fails = c.code;
    const HttpAnswer answer = post(bytes);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_NE(header(answer, "Retry-After"), "") << c.status;
  }
  facts_->fails = Code::kOk;
  EXPECT_EQ(post(bytes).status, 204);
}

TEST_F(ApiTest, TheClockOfANodeIsThatOfItsRequest) {
  store::Batch old = made_batch(1);
  old.sent_ns -= std::int64_t{48} * store::kHourNs;  // it waited for two days
  const std::string bytes = store::encode(old).value();
  ask("POST", "/v1/batches", bytes,
      {{"x-purlin-batch", sha256_hex(bytes)},
       {"x-purlin-sent", std::to_string(clock_.now_ns - 5'000'000'000)}});
  ASSERT_EQ(facts_->batches.size(), 1U);
  EXPECT_EQ(facts_->batches[0].skew_ns, 5'000'000'000);
}

TEST_F(ApiTest, BatchesThatWaitTogetherAreOneCommit) {
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 64; ++i)
    threads.emplace_back([this, i] {
      EXPECT_TRUE(gate_->ingest({fmt::format("{:064x}", i), made_batch(i)}).is_ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(facts_->launches["gemm"], 64 * 3);
  EXPECT_LE(facts_->commits.load(), 64);
}

TEST_F(ApiTest, QuestionsHaveTheirCoverageAndFilters) {
  post(store::encode(made_batch(1, "gemm")).value());
  post(store::encode(made_batch(2, "flash")).value());
  const Json top = get("/v1/query/top?limit=1&gpu=GPU-1&begin=-1d");
  EXPECT_EQ(top["schema"].as_string(), "purlin.fleet.top/1");
  EXPECT_EQ(top["kernels"].size(), 1U);
  EXPECT_EQ(top["kernel_count"].as_int(), 2);
  EXPECT_EQ(top["coverage"]["launches_seen"].as_double(), 6);
  EXPECT_EQ(top["filter"]["gpu"].as_string(), "GPU-1");
  EXPECT_EQ(get("/v1/query/history?by=kernel&step=hour")["points"].size(), 2U);
  const Json whole = get("/v1/query/history?by=kernel&histogram=1")["points"].items().at(0);
  double counted = 0;
  for (const Json& bin : whole["histogram"]["count"].items()) counted += bin.as_double();
  EXPECT_EQ(counted, 3);
  EXPECT_EQ(get("/v1/query/coverage")["cells"].size(), 2U);
  EXPECT_EQ(get("/v1/nodes")["nodes"].size(), 1U);
  EXPECT_TRUE(get("/v1/query/values?dimension=kernel")["values"].is_array());
  EXPECT_TRUE(get("/v1/query/stragglers")["coverage"].is_object());
}

TEST_F(ApiTest, RoofsAreUnknownWhereTheShapeIs) {
  store::Batch batch = made_batch(1, "nvjet_tst_128x256_64x4_1x2_h_bz_TNT");
  batch.rows[0].shape = "M=16384,N=4096,K=4096", batch.rows[0].dtype = "bf16";
  batch.rows[0].duration = Sketch();
  batch.rows[0].duration.add(1e6);
  store::BatchRow& shapeless = batch.rows.emplace_back(batch.rows[0]);
  shapeless.kernel = "my_kernel", shapeless.shape = "";
  ASSERT_EQ(post(store::encode(batch).value()).status, 204);
  const Json answer = get("/v1/query/roofs");
  EXPECT_EQ(answer["schema"].as_string(), "purlin.fleet.roofs/1");
  EXPECT_TRUE(answer["coverage"].is_object());
  ASSERT_EQ(answer["roofs"].size(), 2U);
  for (const Json& row : answer["roofs"].items()) {
    const bool known = row["kernel"].as_string() != "my_kernel";
    EXPECT_EQ(row["utilization"].is_null(), !known);
    EXPECT_EQ(row["headroom"].is_null(), !known);
    EXPECT_EQ(row["bound"].as_string(), known ? "compute" : "unknown");
    EXPECT_EQ(row["unknown"].as_string(), known ? "" : "no problem shape was recorded");
  }
  EXPECT_EQ(get("/v1/query/roofs?limit=1")["roofs"].size(), 1U);
  const Json shapes = get("/v1/query/roofs?by=shape&kernel=my_kernel");
  EXPECT_EQ(shapes["roofs"].items().at(0)["gpu"].as_string(), "NVIDIA H200");
}

TEST_F(ApiTest, AConclusionIsRefusedWhereTooLittleWasSeen) {
  post(store::encode(made_batch(1)).value());
  const Json compared = get("/v1/query/compare?by=build&before=v1&after=v2");
  EXPECT_TRUE(compared["refused"].is_object() || compared["kernels"].items().empty() ||
              compared["kernels"].items()[0]["refused"].is_object())
      << compared.dump();
}

TEST_F(ApiTest, AMalformedQuestionIsRefused) {
  for (const char* target :
       {"/v1/query/top?limit=0", "/v1/query/top?limit=x", "/v1/query/top?unknown=1",
        "/v1/query/top?kernel=%zz", "/v1/query/top?begin=yesterday",
        "/v1/query/top?begin=-1d&end=-2d", "/v1/query/top?model=a&model=b",
        "/v1/query/history?step=week", "/v1/query/history?by=kernel,nothing", "/v1/query/values",
        "/v1/query/compare?by=build", "/v1/query/compare?by=x&before=a&after=b",
        "/v1/query/compare?by=time&before=1&after=2", "/v1/query/roofs?by=node",
        "/v1/query/roofs?limit=0", "/v1/raw/abc"})
    EXPECT_EQ(ask("GET", target).status, 400) << target;
  EXPECT_EQ(ask("GET", "/v1/query/top?kernel=" + std::string(13000, 'a')).status, 400);
  EXPECT_EQ(ask("POST", "/v1/guard", std::string(100'000, '[')).status, 422);
  EXPECT_EQ(ask("POST", "/v1/backlog/lease", std::string(60'000, '[')).status, 400);
}

TEST_F(ApiTest, ManyQueriesLeaveRoomForBatches) {
  ServiceOptions options;
  options.max_queries = 0;
  service_.emplace(std::move(options), query_endpoints(*gate_, clock_), log_, nullptr, clock_);
  const HttpAnswer answer = ask("GET", "/v1/query/top");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(header(answer, "Retry-After"), "1");
}

TEST_F(ApiTest, TokensHaveLimits) {
  open("read 0000000000000000-slow slow requests=1 body=10\n");
  const std::pair<std::string, std::string> token{"authorization", "Bearer 0000000000000000-slow"};
  int limited = 0;
  HttpAnswer last;
  for (int i = 0; i < 12; ++i) {
    last = ask("GET", "/v1/nodes", "", {token});
    limited += last.status == 429 ? 1 : 0;
  }
  EXPECT_EQ(limited, 2);
  EXPECT_NE(header(last, "Retry-After"), "");
  clock_.now_ns += 1'000'000'000;
  EXPECT_EQ(ask("GET", "/v1/nodes", "", {token}).status, 200);
}

TEST_F(ApiTest, WritesAreInTheAuditLogWithWhoAndWhat) {
  open(kScopedTokens);
  const std::vector<std::pair<std::string, std::string>> writer = {
      {"authorization", "Bearer 0000000000000000-write"}};
  const std::string run = R"({"schema": "purlin.guard/1", "verdict": "pass", "suite": "s"})";
  EXPECT_EQ(ask("POST", "/v1/guard", run, writer).status, 201);
  EXPECT_EQ(ask("GET", "/v1/guard", "", writer).status, 200);
  const std::vector<std::string> lines =
      split(read_file(join_path(root_, "audit.log")).value(), '\n');
  ASSERT_EQ(lines.size(), 2U);
  const Json line = Json::parse(lines[0]).value();
  EXPECT_EQ(line["token"].as_string(), "writer");
  EXPECT_EQ(line["kind"].as_string(), "post_guard");
  EXPECT_EQ(line["status"].as_int(), 201);
  EXPECT_EQ(line["peer"].as_string(), "10.0.0.7");
}

TEST_F(ApiTest, ARawProfileIsItsHash) {
  const std::string bytes = "a profile", hash = sha256_hex(bytes);
  EXPECT_EQ(ask("GET", "/v1/raw/" + hash).status, 404);
  EXPECT_EQ(ask("PUT", "/v1/raw/" + hash, bytes).status, 204);
  EXPECT_EQ(ask("PUT", "/v1/raw/" + hash, bytes).status, 204);
  EXPECT_EQ(ask("PUT", "/v1/raw/" + hash, "another").status, 412);
  EXPECT_EQ(ask("GET", "/v1/raw/" + hash).body, bytes);
}

TEST_F(ApiTest, RawProfilesAreFoundByTheKernelsOfTheirNodes) {
  store::Batch batch = made_batch(1, "gemm");
  batch.raws = {{std::string(64, 'a'), 10, batch.begin_ns, batch.end_ns, "profile", 0, ""}};
  ASSERT_EQ(post(store::encode(batch).value()).status, 204);
  const Json all = get("/v1/raws");
  EXPECT_EQ(all["raws_in_all"].as_int(), 1);
  EXPECT_EQ(all["raws"].items().at(0)["url"].as_string(), "/v1/raw/" + std::string(64, 'a'));
  EXPECT_EQ(all["raws"].items().at(0)["build"].as_string(), "v1");
  EXPECT_EQ(get("/v1/raws?kernel=gemm")["raws"].size(), 1U);
  EXPECT_EQ(get("/v1/raws?kernel=softmax")["raws"].size(), 0U);
  EXPECT_EQ(ask("GET", "/v1/raws?limit=0").status, 400);
}

std::string raw_profile(const std::string& kernel, const std::vector<Counter>& counters) {
  Profile profile;
  DeviceInfo device;
  device.name = "NVIDIA H200";
  profile.environment.devices = {device};
  for (const double ns : {1000.0, 9000.0}) {
    KernelRow row;
    row.name = ns > 5000 ? kernel : "another";
    row.counters = counters;
    row.duration.add(ns);
    profile.kernels.push_back(row);
  }
  return profile::encode_profile(profile);
}

TEST_F(ApiTest, AKernelHasWhatTheNewestRawProfilesHoldOfIt) {
  const std::string name = "<img src=x>";
  const std::vector<std::string> bytes = {
      "no profile", raw_profile("other", {{"dram__bytes.sum", 4, 1}}), raw_profile(name, {}),
      raw_profile(name, {{"smsp__pcsamp_warps_issue_stalled_long_scoreboard", 30, 2}})};
  store::Batch batch = made_batch(1, name);
  for (const std::string& one : bytes) {
    const std::string hash = sha256_hex(one);
    batch.raws.push_back({hash, one.size(), batch.begin_ns, batch.end_ns, "profile", 0, ""});
    ASSERT_EQ(ask("PUT", "/v1/raw/" + hash, one).status, 204);
  }
  // One that did not arrive, beyond those that are read.
  batch.raws.push_back({std::string(64, 'a'), 1, batch.begin_ns, batch.end_ns, "profile", 0, ""});
  ASSERT_EQ(post(store::encode(batch).value()).status, 204);
  const std::string ask_for = "/v1/raws/kernel?kernel=%3Cimg%20src%3Dx%3E";
  for (int twice = 0; twice < 2; ++twice) {
    const Json json = get(ask_for);
    EXPECT_EQ(json["raws_in_all"].as_int(), 5);
    EXPECT_EQ(json["raws_read"].as_int(), 4);
    ASSERT_EQ(json["unread"].size(), 1U);
    EXPECT_EQ(json["unread"].items()[0]["sha256"].as_string(), sha256_hex(bytes[0]));
    EXPECT_NE(json["unread"].items()[0]["why"].as_string(), "");
    EXPECT_EQ(json["row"]["from"]["sha256"].as_string(), sha256_hex(bytes[2]));
    EXPECT_EQ(json["row"]["from"]["build"].as_string(), "v1");
    EXPECT_EQ(json["row"]["kernel"]["count"].as_double(), 1);
    EXPECT_EQ(json["row"]["kernel"]["namesakes"].as_int(), 1);
    EXPECT_EQ(json["advice"]["from"], json["row"]["from"]);
    EXPECT_TRUE(json["advice"]["interventions"].is_array());
    EXPECT_EQ(json["counters"]["from"]["sha256"].as_string(), sha256_hex(bytes[3]));
    EXPECT_EQ(json["counters"]["counters"].size(), 1U);
    EXPECT_EQ(json["stalls"]["stalls"]["reasons"].items().at(0)["reason"].as_string(),
              "long_scoreboard");
  }
  EXPECT_TRUE(get(ask_for + "&model=NVIDIA%20L40S")["row"].is_null());
  EXPECT_TRUE(get("/v1/raws/kernel?kernel=absent")["row"].is_null());
  EXPECT_EQ(ask("GET", "/v1/raws/kernel").status, 400);
}

TEST_F(ApiTest, LeasesGoToOneWorkerAtATime) {
  backlog::RankedTask task;
  task.task.key = {"tune", "gemm", "M=1", "NVIDIA H200", "", ""};
  task.gpu_time_ns = 1e9;
  ASSERT_TRUE(leases_->put({{task, false}}, clock_.now_ns).is_ok());
  EXPECT_EQ(get("/v1/backlog")["tasks"].size(), 1U);
  const Json lease =
      Json::parse(ask("POST", "/v1/backlog/lease", R"({"worker": "w1"})").body).value()["lease"];
  EXPECT_TRUE(lease.is_object());
  EXPECT_TRUE(Json::parse(ask("POST", "/v1/backlog/lease", R"({"worker": "w2"})").body)
                  .value()["lease"]
                  .is_null());
  const std::string of = fmt::format("{{\"id\": \"{}\", \"token\": {}",
                                     lease["task"]["id"].as_string(), lease["token"].as_int());
  EXPECT_EQ(ask("POST", "/v1/backlog/heartbeat", of + "}").status, 200);
  EXPECT_EQ(ask("POST", "/v1/backlog/done", of + ", \"outcome\": \"1.2x\", \"gpu_s\": 5}").status,
            200);
  EXPECT_EQ(ask("POST", "/v1/backlog/heartbeat", of + "}").status, 410);
  EXPECT_EQ(get("/v1/backlog")["tasks"].items().at(0)["state"].as_string(), "done");
}

TEST(QueryFilter, ReadsTimesAndRoundsToHours) {
  const std::int64_t now = 1'700'000'000'000'000'000;
  EXPECT_EQ(parse_time("1970-01-01T01:00:00Z", now).value(), store::kHourNs);
  EXPECT_EQ(parse_time("3600", now).value(), store::kHourNs);
  EXPECT_EQ(parse_time("-1h", now).value(), now - store::kHourNs);
  for (const char* text : {"", "-", "x", "1e99", "-1e99s", "nan", "inf", "-inf"})
    EXPECT_FALSE(parse_time(text, now).is_ok()) << text;
  const store::Filter filter = parse_filter({{"begin", "3601"}, {"end", "3602"}}, now).value();
  EXPECT_EQ(filter.begin_ns, store::kHourNs);
  EXPECT_EQ(filter.end_ns, 2 * store::kHourNs) << "the hour that has it counts whole";
}

}  // namespace
}  // namespace purlin::fleet
