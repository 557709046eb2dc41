// SPDX-License-Identifier: Apache-2.0
// Endpoints: the one table of what a server answers: method, path, scope, bounds, handler, and the
// texts from which docs/formats/openapi.json is made.
//
// A path has fixed parts, `{name}` for one part and, last, `{name...}` for the rest. Immutable once
// the server runs, so [MT]. Failure: kNotFound (no such path), kInvalid (a known path used
// wrongly). Paths and queries are foreign text.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "fleet/http.h"
#include "fleet/tokens.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::fleet {

using NamedValues = std::vector<std::pair<std::string, std::string>>;
// "" where absent.
const std::string& value_of(const NamedValues& values, std::string_view name);

struct Request {
  const HttpHead& head;
  const std::string& body;
  NamedValues path{};    // of `{name}`
  NamedValues query{};   // decoded, each name once
  std::string holder{};  // of the token
};

struct Parameter {
  std::string_view name, type, text;  // type: "string", "integer", "number"
};

struct Endpoint {
  std::string_view method, path;
  Scope scope = Scope::kRead;
  std::string_view kind;     // "get_object": for metrics
  std::string_view summary;  // for OpenAPI
  std::string_view answer;   // its schema: "purlin.fleet.top/1"; "" = no JSON
  std::vector<Parameter> parameters{};
  std::uint64_t max_body = 0;
  std::function<HttpAnswer(const Request&)> handle{};
  // Of a head alone, before the body: what the body may have, less than max_body. Optional.
  std::function<Result<std::uint64_t>(const HttpHead&)> limit{};
  bool is_query = false;  // may take long: few are answered at once
};

class Endpoints {
 public:
  void add(Endpoint endpoint) { all_.push_back(std::move(endpoint)); }
  void add(std::vector<Endpoint> more);

  struct Match {
    const Endpoint* endpoint = nullptr;  // null: the path has other methods, named in `allow`
    NamedValues path{};
    std::string allow{};
  };
  Result<Match> find(std::string_view method, std::string_view target) const;
  const std::vector<Endpoint>& all() const { return all_; }
  Json openapi() const;

 private:
  std::vector<Endpoint> all_;
};

// "%2F" and "+" are decoded. kInvalid: a malformed one, one that comes twice, or one that the
// endpoint does not take.
Result<NamedValues> parse_query(std::string_view target, const Endpoint& endpoint);

// "GET" for HEAD, whose body the server leaves out.
std::string_view plain_method(std::string_view method);

}  // namespace purlin::fleet
