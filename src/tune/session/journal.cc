// SPDX-License-Identifier: Apache-2.0
#include "tune/session/journal.h"

#include "model/document.h"

namespace purlin::tune {
namespace {

Json to_json(const RematchRound& round) {
  Json all = Json::array();
  for (const Rematch& each : round) {
    Json one = Json::object({{"config", purlin::to_json(each.config)}});
    if (each.problem.empty())
      one.set("time_ms", each.time_ms);
    else
      one.set("problem", each.problem);
    all.push(std::move(one));
  }
  return all;
}

Result<RematchRound> round_from_json(const Json& json) {
  RematchRound round;
  for (const Json& one : json.items()) {
    Rematch made;
    PURLIN_ASSIGN(made.config, config_from_json(one["config"]));
    made.problem = one["problem"].as_string();
    if (made.problem.empty()) {
      PURLIN_ASSIGN(made.time_ms, one.double_at("time_ms"));
      if (!is_time_ms(made.time_ms))
        return error(Code::kInvalid, "{:g} ms is no time of a launch", made.time_ms);
    }
    round.push_back(std::move(made));
  }
  return round;
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const Json& header) {
  Result<JsonLines> file = JsonLines::open(path);
  if (!file.is_ok() && file.status().code() == Code::kUnavailable)
    return error(Code::kUnavailable,
                 "another process is running this session (it holds '{}'); wait for it, or give "
                 "another --seed",
                 path);
  const auto damaged = [](const std::string& what) {
    return error(Code::kCorrupt, "{}; --fresh starts the session again", what);
  };
  if (!file.is_ok())
    return file.status().code() == Code::kCorrupt ? damaged(file.status().message())
                                                  : file.status();
  Journal journal(std::move(file).value(), header);
  std::size_t number = 0;
  for (const Json& line : journal.file_.take_lines())
    if (const Status status = journal.take(line, ++number); !status.is_ok())
      return damaged(fmt::format("'{}' line {}: {}", path, number, status.message()));
  if (number == 0) PURLIN_TRY(journal.file_.append(journal.header_));
  return journal;
}

Status Journal::take(const Json& line, std::size_t number) {
  if (number == 1) return check_schema(line, "purlin.session", 1);
  if (const Json* reason = line.find("finished")) {
    finished_ = reason->as_string();
    finished_budget_ = line["budget"].as_string();
    return Status::ok();
  }
  if (const Json* round = line.find("rematch")) {
    PURLIN_ASSIGN(RematchRound made, round_from_json(*round));
    rematches_.push_back(std::move(made));
    return Status::ok();
  }
  const Json* evaluation = line.find("evaluation");
  if (evaluation == nullptr) return Status::ok();  // of a newer Purlin, and not needed here
  PURLIN_ASSIGN(Evaluation made, evaluation_from_json(*evaluation));
  records_.push_back({std::move(made), line["elapsed_s"].as_double()});
  finished_.clear();
  return Status::ok();
}

Status Journal::append(const Evaluation& evaluation, double elapsed_s) {
  return write(
      Json::object({{"evaluation", purlin::to_json(evaluation)}, {"elapsed_s", elapsed_s}}));
}

void Journal::note(const RematchRound& round) {
  noted_.push_back(Json::object({{"rematch", to_json(round)}}));
}

Status Journal::write(Json line) {
  std::vector<Json> lines = std::exchange(noted_, {});
  lines.push_back(std::move(line));
  return file_.append(lines);
}

Status Journal::finish(std::string_view reason, std::string_view budget) {
  finished_ = reason;
  finished_budget_ = budget;
  return write(Json::object({{"finished", reason}, {"budget", budget}}));
}

Status Journal::restart() {
  records_.clear();
  rematches_.clear();
  noted_.clear();
  finished_.clear();
  PURLIN_TRY(file_.clear());
  return file_.append(header_);
}

}  // namespace purlin::tune
