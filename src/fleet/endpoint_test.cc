// SPDX-License-Identifier: Apache-2.0
#include "fleet/endpoint.h"

#include "fleet/percent.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

Endpoints made_endpoints() {
  const auto none = [](const Request&) { return HttpAnswer(); };
  Endpoints endpoints;
  endpoints.add(
      {"GET", "/v1/things", Scope::kRead, "list", "", "", {{"a", "string", ""}}, 0, none});
  endpoints.add({"GET", "/v1/things/{name}", Scope::kRead, "get", "", "", {}, 0, none});
  endpoints.add({"PUT", "/v1/things/{name}", Scope::kWrite, "put", "", "", {}, 9, none});
  endpoints.add(
      {"GET", "/v1/things/{name}/files/{path...}", Scope::kRead, "file", "", "", {}, 0, none});
  return endpoints;
}

TEST(Endpoints, AreFoundByMethodAndPath) {
  const Endpoints all = made_endpoints();
  const auto kind = [&](const char* method, const char* target) -> std::string {
    const auto match = all.find(method, target);
    if (!match.is_ok()) return "none";
    return match->endpoint == nullptr ? "allow " + match->allow
                                      : std::string(match->endpoint->kind);
  };
  EXPECT_EQ(kind("GET", "/v1/things"), "list");
  EXPECT_EQ(kind("HEAD", "/v1/things?a=1"), "list");
  EXPECT_EQ(kind("GET", "/v1/things/x"), "get");
  EXPECT_EQ(kind("PUT", "/v1/things/x"), "put");
  EXPECT_EQ(kind("GET", "/v1/things/x/files/a/b"), "file");
  EXPECT_EQ(kind("DELETE", "/v1/things/x"), "allow GET, HEAD, PUT");
  for (const char* target :
       {"", "/", "x", "*", "/v1", "/v1/things/", "/v1/things//", "/v1/thingsx", "/v1/things/x/",
        "/v1/things/x/files", "/v1/things/x/files/", "//v1/things", "http://h/v1/things"})
    EXPECT_EQ(kind("GET", target), "none") << target;
  const auto match = all.find("GET", "/v1/things/x%2F/files/a/../b?c");
  EXPECT_EQ(value_of(match->path, "name"), "x%2F");
  EXPECT_EQ(value_of(match->path, "path"), "a/../b") << "as sent: the handler judges it";
  EXPECT_FALSE(all.find("GET", "/" + std::string(20'000, 'a')).is_ok());
}

TEST(Endpoints, TakeTheirOwnParametersOnce) {
  const Endpoints all = made_endpoints();
  const Endpoint& list = all.all()[0];
  EXPECT_EQ(value_of(parse_query("/v1/things?a=x%26y+z%2B", list).value(), "a"), "x&y z+");
  EXPECT_TRUE(parse_query("/v1/things?", list)->empty());
  EXPECT_EQ(value_of(parse_query("/v1/things?a", list).value(), "a"), "");
  for (const char* target : {"/v1/things?b=1", "/v1/things?a=1&a=2", "/v1/things?a=%",
                             "/v1/things?a=%2", "/v1/things?a=%gg", "/v1/things?=1"})
    EXPECT_FALSE(parse_query(target, list).is_ok()) << target;
}

TEST(Percent, IsTheInverseOfItself) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
  EXPECT_EQ(percent_encoded("a b/ü"), "a%20b%2F%C3%BC");
}

}  // namespace
}  // namespace purlin::fleet
