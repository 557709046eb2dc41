// SPDX-License-Identifier: Apache-2.0
#include "fleet/route.h"

#include "base/text.h"
#include "blobs/blob_store.h"
#include "fleet/percent.h"

#include <algorithm>
#include <optional>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxTarget = 2048;

Status read_query(std::string_view query, Route* route) {
  for (const std::string& part : split(query, '&')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const auto value =
        percent_decoded(std::string_view(part).substr(std::min(equals + 1, part.size())));
    if (!value || (name != "folder" && name != "after"))
      return error(Code::kInvalid, "a list takes 'folder' and 'after', no other parameters");
    (name == "folder" ? route->folder : route->after) = *value;
  }
  if (!ends_with(route->folder, "/") ||
      !blobs::check_key(route->folder.substr(0, route->folder.size() - 1)).is_ok())
    return error(Code::kInvalid, "'folder' names a folder of objects: segments/");
  if (!route->after.empty()) PURLIN_TRY(blobs::check_key(route->after));
  return Status::ok();
}

Result<Action> only(std::string_view method, Action action) {
  if (method == "GET") return action;
  return error(Code::kInvalid, "this path takes GET and HEAD alone");
}

}  // namespace

bool is_cache_name(std::string_view name) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 64 && alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

Result<Route> parse_route(std::string_view method, std::string_view target) {
  if (method == "HEAD") method = "GET";  // the server leaves the body out
  if (target.size() > kMaxTarget)
    return error(Code::kInvalid, "a path may have {} bytes at most", kMaxTarget);
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  const bool asks = question < target.size();
  Route route;
  if (path == "/v1/caches") {
    PURLIN_ASSIGN(route.action, only(method, Action::kListCaches));
    return route;
  }
  constexpr std::string_view kCaches = "/v1/caches/", kObjects = "/objects";
  if (!starts_with(path, kCaches)) return error(Code::kNotFound, "there is no such path here");
  const std::string_view rest = path.substr(kCaches.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  route.cache = rest.substr(0, slash);
  if (!is_cache_name(route.cache))
    return error(Code::kInvalid,
                 "a cache's name has up to 64 of a-z, 0-9, '.', '_' and '-', and begins with a "
                 "letter or a digit");
  const std::string_view below = rest.substr(slash);
  if (below.empty()) {
    PURLIN_ASSIGN(route.action, only(method, Action::kDescribeCache));
    return route;
  }
  if (below == kObjects) {
    PURLIN_ASSIGN(route.action, only(method, Action::kListObjects));
    PURLIN_TRY(read_query(asks ? target.substr(question + 1) : "", &route));
    return route;
  }
  if (!starts_with(below, "/objects/")) return error(Code::kNotFound, "there is no such path here");
  route.key = below.substr(kObjects.size() + 1);
  PURLIN_TRY(blobs::check_key(route.key));
  if (method == "GET")
    route.action = Action::kGetObject;
  else if (method == "PUT")
    route.action = Action::kPutObject;
  else if (method == "DELETE")
    route.action = Action::kDeleteObject;
  else
    return error(Code::kInvalid, "an object takes GET, HEAD, PUT and DELETE");
  return route;
}

}  // namespace purlin::fleet
