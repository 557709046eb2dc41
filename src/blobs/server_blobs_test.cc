// SPDX-License-Identifier: Apache-2.0
#include "blobs/server_blobs.h"

#include "base/files.h"
#include "blobs/testing.h"

#include <gtest/gtest.h>

namespace purlin::blobs {
namespace {

HttpResponse told(int status, const std::string& message) {
  return answer(status,
                "{\"schema\":\"purlin.error/1\",\"error\":{\"message\":\"" + message + "\"}}");
}

class ServerBlobs : public testing::Test {
 protected:
  ServerBlobs() { open("a-token"); }
  void open(const std::string& token) {
    ServerConfig config = parse_server_target("http://build7:8717/team").value();
    config.token = token;
    store_ = make_server_blobs(config, std::make_unique<ScriptedHttp>(script_), clock_, 1);
  }
  Script script_;
  FakeClock clock_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(ServerBlobs, ReadsAndWritesUnderConditions) {
  script_.answers = {answer(200, "bytes", {{"etag", "\"7\""}}), answer(201), answer(201),
                     told(412, "it is there"), told(404, "it is not")};
  const Blob blob = store_->get("segments/a", 100).value();
  EXPECT_EQ(blob.bytes, "bytes");
  EXPECT_EQ(blob.tag, "\"7\"");
  EXPECT_EQ(store_->put_if_absent("b", "x").value(), Put::kStored);
  EXPECT_EQ(store_->put_if_match("b", "x", blob.tag).value(), Put::kStored);
  EXPECT_EQ(store_->put_if_absent("b", "x").value(), Put::kConflict);
  EXPECT_EQ(store_->get("c", 100).status().code(), Code::kNotFound);
  EXPECT_EQ(script_.asked[0], "GET http://build7:8717/v1/caches/team/objects/segments/a");
  EXPECT_EQ(script_.asked[1], "PUT http://build7:8717/v1/caches/team/objects/b");
  EXPECT_EQ(script_.header(0, "Authorization"), "Bearer a-token");
  EXPECT_EQ(script_.header(1, "If-None-Match"), "*");
  EXPECT_EQ(script_.header(2, "If-Match"), "\"7\"");
  EXPECT_EQ(store_->name(), "http://build7:8717/team");
}

TEST_F(ServerBlobs, ListsPageAfterPage) {
  const auto page = [](const std::string& objects, bool more) {
    return answer(200, "{\"schema\":\"purlin.objects/1\",\"objects\":[" + objects +
                           "],\"more\":" + (more ? "true" : "false") + "}");
  };
  script_.answers = {page("{\"key\":\"s/a\",\"bytes\":1,\"modified_ns\":7}", true),
                     page("{\"key\":\"s/b\",\"bytes\":2,\"modified_ns\":8}", false)};
  const auto found = store_->list("s/").value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].key, "s/b");
  EXPECT_EQ(found[1].size, 2u);
  EXPECT_EQ(found[1].modified_ns, 8);
  EXPECT_EQ(script_.asked[1], "GET http://build7:8717/v1/caches/team/objects?folder=s/&after=s/a");

  script_.answers = {page("", true)};
  EXPECT_NE(store_->list("s/").status().message().find("without end"), std::string::npos);
  script_.answers = {page("{\"key\":\"../etc/passwd\"}", false)};
  EXPECT_EQ(store_->list("s/").status().code(), Code::kInvalid);
}

TEST_F(ServerBlobs, ReckonsTimesByThisMachinesClock) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  clock_.now_ns = 10 * kHour;
  const auto page = [](std::int64_t modified, const std::string& now) {
    return answer(200, fmt::format("{{\"schema\":\"purlin.objects/1\",\"objects\":[{{\"key\":"
                                   "\"s/a\",\"bytes\":1,\"modified_ns\":{}}}],\"more\":false{}}}",
                                   modified, now));
  };
  script_.answers = {page(6 * kHour, fmt::format(",\"now_ns\":{}", 7 * kHour)), page(6 * kHour, ""),
                     page(0, fmt::format(",\"now_ns\":{}", 7 * kHour)),
                     page(6 * kHour, ",\"now_ns\":\"soon\"")};
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, 9 * kHour)
      << "an hour old, as the server says";
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, 6 * kHour) << "an older server";
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, 0) << "unknown";
  EXPECT_EQ(store_->list("s/").value()[0].modified_ns, 6 * kHour);
}

TEST_F(ServerBlobs, MalformedListsAreNotBelieved) {
  for (const char* body :
       {"", "[]", "{\"schema\":\"purlin.objects/2\",\"objects\":[],\"more\":false}",
        "{\"objects\":[]}",
        "{\"schema\":\"purlin.objects/1\",\"objects\":[{\"key\":7}],\"more\":false}",
        "{\"schema\":\"purlin.objects/1\",\"objects\":[7],\"more\":false}",
        "{\"schema\":\"purlin.objects/1\",\"objects\":[{\"key\":\"t/a\"}],\"more\":false}",
        "{\"schema\":\"purlin.objects/1\",\"objects\":[{\"key\":\"s/a\"}]"}) {
    script_.answers = {answer(200, body, {{"content-type", "application/json"}})};
    EXPECT_EQ(store_->list("s/").status().code(), Code::kInvalid) << body;
  }
  script_.answers = {answer(200,
                            "{\"schema\":\"purlin.objects/1\",\"objects\":[{\"key\":\"s/a\","
                            "\"bytes\":-5,\"modified_ns\":\"x\"}]}")};
  const auto found = store_->list("s/").value();
  ASSERT_EQ(found.size(), 1u) << "no 'more' is no more";
  EXPECT_EQ(found[0].size, 0u);
  EXPECT_EQ(found[0].modified_ns, 0);
}

TEST_F(ServerBlobs, WhatAProxyAnswersForItselfIsSaidSo) {
  const auto page = [](int status) { return answer(status, "<html>", {{"server", "nginx"}}); };
  script_.answers = {page(413)};
  const Status large = store_->put_if_absent("a", "x").status();
  EXPECT_EQ(large.code(), Code::kInvalid);
  EXPECT_NE(large.message().find("client_max_body_size 64m"), std::string::npos) << large.message();
  script_.answers = {page(407)};
  EXPECT_NE(store_->get("a", 1).status().message().find("proxy's address"), std::string::npos);
  script_.answers = {page(429), page(429), page(429), page(429), page(429), page(429)};
  const Status busy = store_->get("a", 1).status();
  EXPECT_EQ(busy.code(), Code::kUnavailable);
  EXPECT_NE(busy.message().find("try again later"), std::string::npos) << busy.message();
  script_.answers = {page(502), page(502), page(502), page(502), page(502), page(502)};
  const Status gone = store_->get("a", 1).status();
  EXPECT_EQ(gone.code(), Code::kUnavailable);
  EXPECT_NE(gone.message().find("is `purlin serve` running"), std::string::npos) << gone.message();
  script_.answers = {page(429), told(404, "it is not")};
  EXPECT_EQ(store_->get("a", 1).status().code(), Code::kNotFound) << "it was only busy";
  script_.answers = {told(413, "a segment has at most 64 MiB")};
  EXPECT_NE(store_->put_if_absent("a", "x").status().message().find("at most 64 MiB"),
            std::string::npos);
}

TEST_F(ServerBlobs, RemovingWhatIsGoneIsNoError) {
  script_.answers = {answer(200), told(404, "gone"), told(403, "may not")};
  EXPECT_TRUE(store_->remove("a").is_ok());
  EXPECT_TRUE(store_->remove("a").is_ok());
  EXPECT_EQ(store_->remove("a").code(), Code::kInvalid);
}

TEST_F(ServerBlobs, IsPatientWithWhatPasses) {
  script_.answers = {told(503, "busy"), error(Code::kUnavailable, "refused"),
                     error(Code::kTimeout, "slow"), answer(201)};
  EXPECT_EQ(store_->put_if_absent("a", "x").value(), Put::kStored);
  EXPECT_EQ(script_.asked.size(), 4u);
  EXPECT_GT(clock_.now_ns, 1'300'000'000) << "0.1, 0.2 and 0.4 s at least";

  script_.answers.clear();
  const Status status = store_->get("a", 1).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("does not answer (6 attempts)"), std::string::npos);
}

TEST_F(ServerBlobs, SaysWhatTheServerSaidAndWhatToDo) {
  script_.answers = {told(401, "this server wants a token"), told(507, "the quota is used up")};
  std::string text = store_->get("a", 1).status().message();
  EXPECT_NE(text.find("this server wants a token"), std::string::npos);
  EXPECT_NE(text.find("the token in use is that of PURLIN_SERVER_TOKEN"), std::string::npos);
  const Status full = store_->put_if_absent("a", "x").status();
  EXPECT_NE(full.message().find("HTTP 507: the quota is used up"), std::string::npos);
  EXPECT_EQ(script_.asked.size(), 2u) << "neither is worth a retry";
  open("");
  script_.answers = {told(401, "this server wants a token")};
  text = store_->get("a", 1).status().message();
  EXPECT_NE(text.find("set PURLIN_SERVER_TOKEN"), std::string::npos);
  EXPECT_EQ(script_.header(2, "Authorization"), "");
}

TEST_F(ServerBlobs, WhatIsNoPurlinServerIsNotBelieved) {
  const auto page = [](int status) {
    return answer(status, "<html>log in</html>", {{"content-type", "text/html"}});
  };
  script_.answers = {page(200), page(404), page(403), page(200)};
  for (const char* key : {"a", "b", "c"}) {
    const Status status = store_->get(key, 1).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << key << ": an empty cache would be made of it";
    EXPECT_NE(status.message().find("does not answer as a Purlin server"), std::string::npos);
  }
  EXPECT_EQ(store_->list("s/").status().code(), Code::kInvalid);
}

TEST(ServerTarget, IsAnAddressAndAName) {
  const ServerConfig plain = parse_server_target("http://10.0.0.7:8717/team").value();
  EXPECT_EQ(plain.server, "http://10.0.0.7:8717");
  EXPECT_EQ(plain.cache, "team");
  const ServerConfig behind =
      parse_server_target("https://corp.example/tools/purlin/team/").value();
  EXPECT_EQ(behind.server, "https://corp.example/tools/purlin");
  EXPECT_EQ(behind.cache, "team");
  EXPECT_EQ(parse_server_target("http://Build7:80/Tools/team").value().server,
            "http://build7/Tools");
  for (const char* target :
       {"http://", "http:///team", "http://host", "http://host/", "http://user:pass@host/team",
        "http://host/team?x=1", "http://host/a/../team", "http://host//team", "ftp://host/team",
        "http://host/te am", "http://host/..", "http://host/a%2f"}) {
    const Status status = parse_server_target(target).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << target;
    EXPECT_NE(status.message().find("is not http://HOST:PORT/NAME"), std::string::npos) << target;
  }
}

TEST(ServerTarget, TheAddressOfAServerHasASchemeAndAHost) {
  EXPECT_EQ(parse_server_address("https://Fleet:443/").value(), "https://fleet");
  EXPECT_EQ(parse_server_address("http://h:1/a/b").value(), "http://h:1/a/b");
  for (const char* text : {"", "localhost:8717", "ftp://host", "https://", "http://h/?a=b"})
    EXPECT_EQ(parse_server_address(text).status().code(), Code::kInvalid) << text;
}

// Two lines in a header would be another request.
TEST(ServerTarget, AFileOfATokenHoldsOneWord) {
  const std::string root = make_temporary_directory("purlin-token").value();
  const std::string file = join_path(root, "token");
  ASSERT_TRUE(write_atomic(file, " secret-word \n").is_ok());
  EXPECT_EQ(read_token(file).value(), "secret-word");
  for (const char* text : {"", "\n", "a-secret b-secret", "a-secret\nb-secret\n", "\xFF\xFE"}) {
    ASSERT_TRUE(write_atomic(file, text).is_ok());
    const Status status = read_token(file).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << text;
    EXPECT_NE(status.message().find(file), std::string::npos) << text;
    EXPECT_EQ(status.message().find("secret"), std::string::npos) << text;
  }
  EXPECT_FALSE(read_token(join_path(root, "absent")).is_ok());
  ASSERT_TRUE(remove_tree(root).is_ok());
}

TEST(ServerTarget, TakesTheTokenFromTheEnvironmentOrAFile) {
  const std::string root = make_temporary_directory("purlin-token").value();
  const std::string file = join_path(root, "token");
  ASSERT_TRUE(write_atomic(file, "  of-the-file\n").is_ok());
  ::unsetenv("PURLIN_SERVER_TOKEN");
  ::setenv("PURLIN_SERVER_TOKEN_FILE", file.c_str(), 1);
  EXPECT_EQ(load_server_config("http://h:1/t").value().token, "of-the-file");
  ::setenv("PURLIN_SERVER_TOKEN", "of-the-environment", 1);
  EXPECT_EQ(load_server_config("http://h:1/t").value().token, "of-the-environment");
  ::setenv("PURLIN_SERVER_TOKEN", "two\r\nlines", 1);
  EXPECT_EQ(load_server_config("http://h:1/t").status().code(), Code::kInvalid);
  ::unsetenv("PURLIN_SERVER_TOKEN");
  ::setenv("PURLIN_SERVER_TOKEN_FILE", "/no/such/file", 1);
  EXPECT_NE(load_server_config("http://h:1/t").status().message().find("/no/such/file"),
            std::string::npos);
  ::unsetenv("PURLIN_SERVER_TOKEN_FILE");
  EXPECT_EQ(load_server_config("http://h:1/t").value().token, "");
  ASSERT_TRUE(remove_tree(root).is_ok());
}

TEST(ServerTarget, TheTokenIsForPurlinServerAlone) {
  ::setenv("PURLIN_SERVER_TOKEN", "secret", 1);
  ::setenv("PURLIN_SERVER", "https://Corp.example:443/tools/purlin/", 1);
  for (const char* target :
       {"https://corp.example/tools/purlin/team", "https://CORP.example:443/tools/purlin/team/",
        "https://corp.example/tools/purlin/more/team"}) {
    const ServerConfig config = load_server_config(target).value();
    EXPECT_EQ(config.token, "secret") << target;
    EXPECT_EQ(config.token_is_for, "") << target;
  }
  for (const char* target :
       {"http://corp.example/tools/purlin/team", "https://corp.example:8443/tools/purlin/team",
        "https://corp.example/tools/purlinx/team", "https://corp.example/tools/team",
        "https://corp.example.org/tools/purlin/team", "https://corp.example/Tools/purlin/team"}) {
    const ServerConfig config = load_server_config(target).value();
    EXPECT_EQ(config.token, "") << target;
    EXPECT_EQ(config.token_is_for, "https://corp.example/tools/purlin") << target;
  }
  Script script;
  FakeClock clock;
  script.answers = {told(401, "this server wants a token")};
  auto store = make_server_blobs(load_server_config("http://other/team").value(),
                                 std::make_unique<ScriptedHttp>(script), clock, 1);
  const std::string text = store->get("a", 1).status().message();
  EXPECT_NE(text.find("yours is for PURLIN_SERVER, 'https://corp.example/tools/purlin'"),
            std::string::npos)
      << text;
  EXPECT_EQ(script.header(0, "Authorization"), "");
  for (const char* none : {"build7:8717", "http://", "https://u:p@h", "http://h/../x"}) {
    ::setenv("PURLIN_SERVER", none, 1);
    EXPECT_EQ(load_server_config("http://h/team").status().code(), Code::kInvalid) << none;
  }
  ::setenv("PURLIN_SERVER", "", 1);
  EXPECT_EQ(load_server_config("http://h/team").value().token, "secret") << "empty is not set";
  ::unsetenv("PURLIN_SERVER");
  ::unsetenv("PURLIN_SERVER_TOKEN");
}

}  // namespace
}  // namespace purlin::blobs
