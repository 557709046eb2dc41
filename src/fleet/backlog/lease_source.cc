// SPDX-License-Identifier: Apache-2.0
#include "fleet/backlog/lease_source.h"

#include "base/files.h"

namespace purlin::fleet {
namespace {

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

class LeaseFile : public LeaseSource {
 public:
  LeaseFile(std::string path, backlog::Leases leases, Clock& clock)
      : path_(std::move(path)), leases_(std::move(leases)), clock_(clock) {}

  Result<std::optional<backlog::Lease>> take(const std::string& worker,
                                             const std::vector<std::string>& devices,
                                             double seconds) override {
    return leases_.take(worker, devices, nanoseconds(seconds), clock_.wall_ns());
  }
  Status heartbeat(const std::string& id, std::int64_t token, double seconds) override {
    return leases_.heartbeat(id, token, nanoseconds(seconds), clock_.wall_ns()).status();
  }
  Status end(const std::string& id, std::int64_t token, TaskEnd how, const std::string& outcome,
             double gpu_s) override {
    if (how == TaskEnd::kDone) return leases_.finish(id, token, outcome, gpu_s, clock_.wall_ns());
    return leases_.give_back(id, token, outcome, how == TaskEnd::kFailed, gpu_s, clock_.wall_ns());
  }
  std::string name() const override { return path_; }

 private:
  const std::string path_;
  backlog::Leases leases_;
  Clock& clock_;
};

class LeaseServer : public LeaseSource {
 public:
  explicit LeaseServer(std::unique_ptr<ServerClient> client) : client_(std::move(client)) {}

  // A request that arrives twice takes two tasks: the first lease ends by itself.
  Result<std::optional<backlog::Lease>> take(const std::string& worker,
                                             const std::vector<std::string>& devices,
                                             double seconds) override {
    PURLIN_ASSIGN(const Json answer,
                  post("lease", Json::object({{"worker", worker},
                                              {"devices", Json::array_of(devices)},
                                              {"duration_s", seconds}})));
    const Json& json = answer["lease"];
    std::optional<backlog::Lease> lease;
    if (json.is_null()) return lease;
    lease.emplace();
    lease->ranked = backlog::ranked_from_json(json["task"]);
    PURLIN_ASSIGN(lease->token, json.int_at("token"));
    const std::optional<std::int64_t> until_ns = parse_rfc3339(json["until"].as_string());
    if (!until_ns) return error(Code::kUnavailable, "{}: a lease without an end", name());
    lease->until_ns = *until_ns;
    lease->attempt = static_cast<int>(json["attempt"].as_int(1));
    return lease;
  }
  Status heartbeat(const std::string& id, std::int64_t token, double seconds) override {
    return post("heartbeat", Json::object({{"id", id}, {"token", token}, {"duration_s", seconds}}))
        .status();
  }
  Status end(const std::string& id, std::int64_t token, TaskEnd how, const std::string& outcome,
             double gpu_s) override {
    return post("done", Json::object({{"id", id},
                                      {"token", token},
                                      {"given_back", how != TaskEnd::kDone},
                                      {"failed", how == TaskEnd::kFailed},
                                      {"outcome", outcome},
                                      {"gpu_s", gpu_s}}))
        .status();
  }
  std::string name() const override { return client_->server(); }

 private:
  Result<Json> post(const std::string& verb, const Json& json) {
    return client_->post("/v1/backlog/" + verb, json);
  }

  const std::unique_ptr<ServerClient> client_;
};

}  // namespace

std::string lease_path(const std::string& cache_directory) {
  return join_path(cache_directory, "leases.db");
}

Result<std::unique_ptr<LeaseSource>> open_lease_file(const std::string& path, Clock& clock) {
  PURLIN_ASSIGN(backlog::Leases leases, backlog::Leases::open(path));
  std::unique_ptr<LeaseSource> source = std::make_unique<LeaseFile>(path, std::move(leases), clock);
  return source;
}

Result<std::unique_ptr<LeaseSource>> open_lease_server(std::unique_ptr<ServerClient> client) {
  std::unique_ptr<LeaseSource> source = std::make_unique<LeaseServer>(std::move(client));
  return source;
}

}  // namespace purlin::fleet
