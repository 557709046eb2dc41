// SPDX-License-Identifier: Apache-2.0
#include "fleet/route.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

TEST(Route, KnowsItsPaths) {
  const struct {
    const char *method, *target;
    Action action;
  } cases[] = {{"GET", "/v1/caches", Action::kListCaches},
               {"GET", "/v1/caches/team", Action::kDescribeCache},
               {"GET", "/v1/caches/team/objects?folder=segments/", Action::kListObjects},
               {"GET", "/v1/caches/team/objects/index.json", Action::kGetObject},
               {"PUT", "/v1/caches/team/objects/segments/a.bundle", Action::kPutObject},
               {"DELETE", "/v1/caches/team/objects/probe-1", Action::kDeleteObject}};
  for (const auto& c : cases) {
    const Result<Route> route = parse_route(c.method, c.target);
    ASSERT_TRUE(route.is_ok()) << c.target << route.status().message();
    EXPECT_EQ(route->action, c.action) << c.target;
  }
  EXPECT_EQ(parse_route("PUT", "/v1/caches/team/objects/segments/a.bundle")->key,
            "segments/a.bundle");
  const Result<Route> list = parse_route("GET", "/v1/caches/t/objects?folder=a%2Fb/&after=a/b%2fc");
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  EXPECT_EQ(list->folder, "a/b/");
  EXPECT_EQ(list->after, "a/b/c");
  EXPECT_EQ(parse_route("HEAD", "/v1/caches/t/objects/a")->action, Action::kGetObject);
}

TEST(Route, RefusesWhatLeadsElsewhere) {
  for (const char* target :
       {"/v1/caches/../objects/a", "/v1/caches/team/objects/../../x",
        "/v1/caches/team/objects/a//b", "/v1/caches/team/objects/%2e%2e/x",
        "/v1/caches/.hidden/objects/a", "/v1/caches/Team", "/v1/caches//objects/a",
        "/v1/caches/team/objects/", "/v1/caches/team/objects", "/v1/caches/team/objects?folder=../",
        "/v1/caches/team/objects?folder=/", "/v1/caches/team/objects?folder=%2e%2e/",
        "/v1/caches/team/objects?folder=a", "/v1/caches/team/objects?folder=a/&after=../x",
        "/v1/caches/team/objects?folder=a/&x=1", "/v1/caches/team/objects?folder=%zz/",
        "/v1/caches/team/objects?folder=a%2"}) {
    const Result<Route> route = parse_route("GET", target);
    ASSERT_FALSE(route.is_ok()) << target;
    EXPECT_EQ(route.status().code(), Code::kInvalid) << target;
  }
  EXPECT_EQ(parse_route("GET", std::string("/v1/caches/") + std::string(65, 'a')).status().code(),
            Code::kInvalid);
  EXPECT_EQ(parse_route("GET", "/" + std::string(4000, 'a')).status().code(), Code::kInvalid);
  for (const char* target :
       {"", "/", "*", "/v2/caches", "/v1/caches/team/else", "http://host/healthz"})
    EXPECT_EQ(parse_route("GET", target).status().code(), Code::kNotFound) << target;
}

TEST(Route, RefusesOtherMethods) {
  for (const char* target : {"/v1/caches", "/v1/caches/team", "/v1/caches/team/objects?folder=a/",
                             "/v1/caches/team/objects/a"})
    EXPECT_EQ(parse_route("POST", target).status().code(), Code::kInvalid) << target;
}

}  // namespace
}  // namespace purlin::fleet
