// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/raw_api.h"

#include "fleet/answers.h"
#include "fleet/api/query_filter.h"

#include <map>
#include <set>

namespace purlin::fleet {
namespace {

using store::Dimension;

constexpr std::size_t kMaxIdleShelves = 4, kRawsByDefault = 100, kMostRaws = 1000;

HttpAnswer put_one(RawShelf& shelf, const std::string& hash, const std::string& body,
                   const std::function<Status(const std::string&)>& note) {
  if (store::raw_key(hash).empty())
    return error_answer(400, "a raw profile is named by its SHA-256");
  Status stored = shelf.use(
      [&](blobs::BlobStore& blobs) { return store::put_raw(blobs, hash, body).status(); });
  if (stored.is_ok() && note) stored = note(hash);
  if (stored.code() == Code::kInvalid)
    return error_answer(412, stored.message() + "; send it again");
  HttpAnswer answer;
  answer.status = 204;
  if (stored.is_ok()) return answer;
  answer = error_answer(503, "the place of raw profiles takes nothing now");
  answer.headers.emplace_back("Retry-After", "30");
  return answer;
}

HttpAnswer get_one(RawShelf& shelf, const std::string& hash) {
  if (store::raw_key(hash).empty())
    return error_answer(400, "a raw profile is named by its SHA-256");
  HttpAnswer answer;
  const Status read = shelf.use([&](blobs::BlobStore& blobs) -> Status {
    PURLIN_ASSIGN(answer.body, store::get_raw(blobs, hash, shelf.max_bytes()));
    return Status::ok();
  });
  if (read.code() == Code::kNotFound)
    return error_answer(404,
                        "there is no raw profile of this hash: it was removed for its age, or "
                        "never sent");
  if (!read.is_ok()) return error_answer(503, "the place of raw profiles cannot be read now");
  answer.content_type = "application/octet-stream";
  answer.headers = {{"ETag", "\"" + hash + "\""},
                    {"Content-Disposition",
                     fmt::format("attachment; filename=\"{}.plprof\"", hash.substr(0, 16))}};
  return answer;
}

// A raw profile is of a process, with all of its kernels: it may show a kernel that its node ran in
// one of its hours.
using NodesOfHours = std::map<std::int64_t, std::set<std::string>>;
Result<NodesOfHours> nodes_with_kernel(store::Reader& reader, const store::Filter& filter) {
  NodesOfHours nodes;
  PURLIN_ASSIGN(const std::vector<store::Cell> cells,
                reader.cells(filter, {Dimension::kNode}, store::Step::kHour));
  for (const store::Cell& cell : cells)
    if (!cell.values.empty()) nodes[cell.begin_ns].insert(cell.values[0]);
  return nodes;
}

bool may_show(const store::RawInfo& raw, const NodesOfHours& nodes) {
  const auto first =
      nodes.lower_bound(raw.pointer.begin_ns - raw.pointer.begin_ns % store::kHourNs);
  for (auto at = first; at != nodes.end() && at->first <= raw.pointer.end_ns; ++at)
    if (at->second.count(raw.node) > 0) return true;
  return false;
}

HttpAnswer list_raws(StoreGate& gate, Clock& clock, const Request& request) {
  Result<store::Filter> filter = parse_filter(request.query, clock.wall_ns());
  if (!filter.is_ok()) return error_answer(filter.status());
  const Result<std::size_t> limit =
      parse_limit(value_of(request.query, "limit"), kRawsByDefault, kMostRaws);
  if (!limit.is_ok()) return error_answer(limit.status());
  Json json = answer_document("purlin.fleet.raws/1"), list = Json::array();
  std::size_t in_all = 0;
  const Status status = gate.read([&](store::Reader& reader) -> Status {
    PURLIN_ASSIGN(const std::vector<store::RawInfo> raws, raws_for(reader, *filter));
    for (const store::RawInfo& raw : raws)
      if (++in_all <= *limit) list.push(raw_json(raw));
    return Status::ok();
  });
  if (!status.is_ok()) return error_answer(status);
  json.set("raws_in_all", in_all);
  json.set("raws", std::move(list));
  return json_answer(json);
}

}  // namespace

Result<std::vector<store::RawInfo>> raws_for(store::Reader& reader, const store::Filter& filter) {
  store::Filter place;  // what a pointer states itself
  place.begin_ns = filter.begin_ns, place.end_ns = filter.end_ns;
  bool by_cells = false;
  for (int i = 0; i < store::kDimensions; ++i) {
    const auto dimension = static_cast<Dimension>(i);
    if (!filter[dimension]) continue;
    const bool stated = dimension == Dimension::kNode || dimension == Dimension::kBuild ||
                        dimension == Dimension::kJob;
    if (stated) place[dimension] = filter[dimension];
    by_cells = by_cells || !stated;
  }
  PURLIN_ASSIGN(std::vector<store::RawInfo> raws, reader.raws(place));
  if (!by_cells || raws.empty()) return raws;
  PURLIN_ASSIGN(const NodesOfHours nodes, nodes_with_kernel(reader, filter));
  std::erase_if(raws, [&](const store::RawInfo& raw) { return !may_show(raw, nodes); });
  return raws;
}

Json raw_json(const store::RawInfo& raw) {
  Json json = Json::object({{"sha256", raw.pointer.sha256},
                            {"url", "/v1/raw/" + raw.pointer.sha256},
                            {"bytes", raw.pointer.bytes},
                            {"kind", raw.pointer.kind},
                            {"begin", format_rfc3339(raw.pointer.begin_ns)},
                            {"end", format_rfc3339(raw.pointer.end_ns)},
                            {"node", raw.node},
                            {"build", raw.build},
                            {"job", raw.job},
                            {"kept_for", raw.kept_for}});
  if (raw.keep_until_ns > 0) json.set("keep_until", format_rfc3339(raw.keep_until_ns));
  return json;
}

Status RawShelf::use(const std::function<Status(blobs::BlobStore&)>& what) {
  std::unique_ptr<blobs::BlobStore> blobs;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      blobs = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!blobs) {
    PURLIN_ASSIGN(blobs, blobs::open_blobs(target_));
  }
  const Status done = what(*blobs);
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdleShelves) idle_.push_back(std::move(blobs));
  return done;
}

bool RawShelf::has(const std::string& sha256) {
  return !store::raw_key(sha256).empty() &&
         use([&](blobs::BlobStore& blobs) {
           return store::get_raw(blobs, sha256, max_bytes_).status();
         }).is_ok();
}

store::RawPointers pointers_of(StoreGate& gate) {
  store::RawPointers pointers;
  pointers.list = [&gate](const store::Filter& filter) -> Result<std::vector<store::RawInfo>> {
    std::vector<store::RawInfo> raws;
    PURLIN_TRY(gate.read([&](store::Reader& reader) -> Status {
      PURLIN_ASSIGN(raws, reader.raws(filter));
      return Status::ok();
    }));
    return raws;
  };
  pointers.keep = [&gate](const std::string& sha256, std::int64_t until_ns,
                          const std::string& why) {
    return gate.write([&](store::Store& store) { return store.keep_raw(sha256, until_ns, why); });
  };
  pointers.forget = [&gate](const std::string& sha256) {
    return gate.write([&](store::Store& store) { return store.forget_raw(sha256); });
  };
  return pointers;
}

std::vector<Endpoint> raw_endpoints(RawShelf& shelf, StoreGate& gate, Clock& clock,
                                    const std::function<Status(const std::string&)>& stored) {
  return {{.method = "GET",
           .path = "/v1/raws",
           .scope = Scope::kRead,
           .kind = "raws",
           .summary = "Raw profiles, the newest first; those of a kernel's nodes with kernel=",
           .answer = "purlin.fleet.raws/1",
           .parameters = filter_parameters({{"limit", "integer", "100 by default"}}),
           .handle = [&gate,
                      &clock](const Request& request) { return list_raws(gate, clock, request); },
           .is_query = true},
          {.method = "GET",
           .path = "/v1/raw/{sha256}",
           .scope = Scope::kRead,
           .kind = "get_raw",
           .summary = "A raw profile",
           .answer = "",
           .handle =
               [&shelf](const Request& request) {
                 return get_one(shelf, value_of(request.path, "sha256"));
               }},
          {.method = "PUT",
           .path = "/v1/raw/{sha256}",
           .scope = Scope::kIngest,
           .kind = "put_raw",
           .summary = "Stores a raw profile under its hash",
           .answer = "",
           .max_body = shelf.max_bytes(),
           .handle = [&shelf, stored](const Request& request) {
             return put_one(shelf, value_of(request.path, "sha256"), request.body, stored);
           }}};
}

}  // namespace purlin::fleet
