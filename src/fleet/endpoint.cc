// SPDX-License-Identifier: Apache-2.0
#include "fleet/endpoint.h"

#include "base/text.h"
#include "fleet/percent.h"

#include <algorithm>
#include <map>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxTargetBytes = 12 * 1024;
constexpr std::string_view kRest = "...}";

std::string_view path_of(std::string_view target) {
  return target.substr(0, std::min(target.find('?'), target.size()));
}

// The next part of a path, which goes on after it.
std::string_view next_part(std::string_view& path) {
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return part;
}

bool fits(std::string_view pattern, std::string_view path, NamedValues& values) {
  if (path.empty() || path[0] != '/') return false;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  while (!pattern.empty()) {
    if (path.empty()) return false;
    const std::string_view wanted = next_part(pattern);
    if (ends_with(wanted, kRest)) {
      values.emplace_back(wanted.substr(1, wanted.size() - 1 - kRest.size()), path);
      return true;
    }
    const bool last = path.find('/') == path.npos;
    const std::string_view part = next_part(path);
    if (starts_with(wanted, "{"))
      values.emplace_back(wanted.substr(1, wanted.size() - 2), part);
    else if (wanted != part)
      return false;
    if (part.empty() || (pattern.empty() && !last)) return false;
  }
  return path.empty();
}

Json text_schema(std::string_view type) { return Json::object({{"type", type}}); }

Json parameter_json(std::string_view name, std::string_view place, std::string_view type,
                    std::string_view text) {
  Json json = Json::object({{"name", name}, {"in", place}, {"required", place == "path"}});
  if (!text.empty()) json.set("description", text);
  json.set("schema", text_schema(type));
  return json;
}

Json answers_json(const Endpoint& endpoint) {
  Json good =
      Json::object({{"description", endpoint.answer.empty() ? std::string("done")
                                                            : std::string(endpoint.answer)}});
  if (!endpoint.answer.empty())
    good.set(
        "content",
        Json::object({{"application/json", Json::object({{"schema", text_schema("object")}})}}));
  Json bad = Json::object({{"description", "purlin.error/1"}});
  Json answers = Json::object({{"2XX", std::move(good)}});
  answers.set("default", std::move(bad));
  return answers;
}

Json operation(const Endpoint& endpoint) {
  Json json = Json::object({{"operationId", endpoint.kind}, {"summary", endpoint.summary}});
  json.set("x-scope", scope_name(endpoint.scope));
  Json parameters = Json::array();
  for (std::string_view rest = endpoint.path.substr(1); !rest.empty();) {
    const std::string_view part = next_part(rest);
    if (!starts_with(part, "{")) continue;
    const std::size_t tail = ends_with(part, kRest) ? kRest.size() : 1;
    parameters.push(parameter_json(part.substr(1, part.size() - 1 - tail), "path", "string", ""));
  }
  for (const Parameter& parameter : endpoint.parameters)
    parameters.push(parameter_json(parameter.name, "query", parameter.type, parameter.text));
  if (parameters.size() > 0) json.set("parameters", std::move(parameters));
  if (endpoint.max_body > 0) {
    Json body = Json::object({{"required", true}});
    body.set("description", fmt::format("at most {} bytes", endpoint.max_body));
    body.set("content", Json::object({{"application/octet-stream", Json::object()}}));
    json.set("requestBody", std::move(body));
  }
  Json security = Json::array();
  if (endpoint.scope != Scope::kNone) security.push(Json::object({{"bearer", Json::array()}}));
  json.set("security", std::move(security));
  json.set("responses", answers_json(endpoint));
  return json;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

}  // namespace

const std::string& value_of(const NamedValues& values, std::string_view name) {
  static const std::string kNone;
  for (const auto& [known, value] : values)
    if (known == name) return value;
  return kNone;
}

std::string_view plain_method(std::string_view method) { return method == "HEAD" ? "GET" : method; }

void Endpoints::add(std::vector<Endpoint> more) {
  for (Endpoint& endpoint : more) add(std::move(endpoint));
}

Result<Endpoints::Match> Endpoints::find(std::string_view method, std::string_view target) const {
  if (target.size() > kMaxTargetBytes)
    return error(Code::kInvalid, "a target may have {} bytes at most", kMaxTargetBytes);
  Match match;
  for (const Endpoint& endpoint : all_) {
    NamedValues values;
    if (!fits(endpoint.path, path_of(target), values)) continue;
    if (endpoint.method == plain_method(method)) {
      match.endpoint = &endpoint;
      match.path = std::move(values);
      return match;
    }
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += endpoint.method == "GET" ? "GET, HEAD" : std::string(endpoint.method);
  }
  if (match.allow.empty()) return error(Code::kNotFound, "there is no such path here");
  return match;
}

Result<NamedValues> parse_query(std::string_view target, const Endpoint& endpoint) {
  NamedValues values;
  const std::size_t question = target.find('?');
  if (question == target.npos) return values;
  for (std::string part : split(target.substr(question + 1), '&')) {
    if (part.empty()) continue;
    std::replace(part.begin(), part.end(), '+', ' ');
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const auto known =
        std::find_if(endpoint.parameters.begin(), endpoint.parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
    if (known == endpoint.parameters.end()) {
      std::vector<std::string> names;
      for (const Parameter& parameter : endpoint.parameters) names.emplace_back(parameter.name);
      return error(Code::kInvalid, "this path takes the parameters: {}", join(names, ", "));
    }
    const auto value =
        percent_decoded(std::string_view(part).substr(std::min(equals + 1, part.size())));
    if (!value)
      return error(Code::kInvalid, "the value of '{}' is not percent-encoded", known->name);
    if (!value_of(values, name).empty())
      return error(Code::kInvalid, "the parameter '{}' is there twice", known->name);
    values.emplace_back(name, *value);
  }
  return values;
}

Json Endpoints::openapi() const {
  Json json = Json::object({{"openapi", "3.0.3"}});
  json.set("info", Json::object({{"title", "purlin serve"}, {"version", "1"}}));
  Json paths = Json::object();
  std::map<std::string, Json> by_path;
  for (const Endpoint& endpoint : all_) {
    std::string path(endpoint.path);
    if (const std::size_t rest = path.find(kRest); rest != path.npos) path.erase(rest, 3);
    Json& methods = by_path.try_emplace(path, Json::object()).first->second;
    methods.set(lower(endpoint.method), operation(endpoint));
  }
  for (auto& [path, methods] : by_path) paths.set(path, std::move(methods));
  json.set("paths", std::move(paths));
  Json bearer = Json::object({{"type", "http"}, {"scheme", "bearer"}});
  json.set("components",
           Json::object({{"securitySchemes", Json::object({{"bearer", std::move(bearer)}})}}));
  return json;
}

}  // namespace purlin::fleet
