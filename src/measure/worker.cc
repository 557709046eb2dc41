// SPDX-License-Identifier: Apache-2.0
#include "measure/worker.h"

#include "base/files.h"
#include "measure/worker_channel.h"
#include "measure/worker_protocol.h"

namespace purlin::measure {
namespace {

using Answer = WorkerChannel::Answer;

constexpr int kStartAttempts = 3;
// An evaluation under way is worth so long a wait once the session is to stop.
constexpr double kStopGraceS = 1;

Result<std::string> find_executable(const std::string& given) {
  if (!given.empty()) return given;
  const std::string folder = executable_directory();
  for (const std::string& path : {join_path(folder, "purlin"), join_path(folder, "../bin/purlin")})
    if (file_exists(path)) return path;
  return error(Code::kNotFound, "the purlin program is neither in '{}' nor in '{}/../bin'", folder,
               folder);
}

// The error of a reply; ok without one.
Status status_of(const Json& reply) {
  const Json* problem = reply.find("error");
  if (problem == nullptr) return Status::ok();
  const std::string& name = (*problem)["code"].as_string();
  for (const Code code : {Code::kInvalid, Code::kNotFound, Code::kUnavailable, Code::kIo,
                          Code::kCorrupt, Code::kFailed, Code::kTimeout, Code::kCancelled})
    if (code_name(code) == name) return {code, (*problem)["message"].as_string()};
  return {Code::kFailed, (*problem)["message"].as_string()};
}

}  // namespace

Worker::Worker(WorkerSetup setup, bool compile_only)
    : setup_(std::move(setup)), compile_only_(compile_only) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::start(const WorkerSetup& setup, bool compile_only,
                                              const std::atomic<bool>* stop) {
  std::unique_ptr<Worker> worker(new Worker(setup, compile_only));
  worker->stop_ = stop;
  PURLIN_ASSIGN(worker->setup_.executable, find_executable(setup.executable));
  PURLIN_TRY(worker->ensure_open(-1));
  if (!setup.spec_path.empty())
    PURLIN_TRY(worker->open({setup.spec_path, setup.problem, setup.verify, setup.seed}).status());
  return worker;
}

Result<int> Worker::open(const BenchSetup& bench) {
  if (static_cast<std::int64_t>(benches_.size()) >= kMaxBenches)
    return error(Code::kInvalid, "a worker holds at most {} benches", kMaxBenches);
  benches_.push_back(bench);
  opened_.push_back(false);
  const int number = static_cast<int>(benches_.size()) - 1;
  if (const Status status = ensure_open(number); !status.is_ok()) {
    benches_.pop_back();
    opened_.pop_back();
    return status;
  }
  return number;
}

void Worker::report_phase(std::string_view phase) const {
  if (setup_.on_phase) setup_.on_phase(phase);
}

Json Worker::start_request() const {
  return Json::object({{"op", "start"},
                       {"protocol", kProtocol},
                       {"device", setup_.device},
                       {"binary_cache", setup_.binary_cache},
                       {"compile_only", compile_only_}});
}

Json Worker::open_request(int bench) const {
  const BenchSetup& setup = benches_[static_cast<std::size_t>(bench)];
  return Json::object({{"op", "open"},
                       {"bench", bench},
                       {"spec", absolute_path(setup.spec_path)},
                       {"problem", to_json(setup.problem)},
                       {"verify", setup.verify},
                       {"seed", static_cast<std::int64_t>(setup.seed)}});
}

// Where a step of open() took too long: how that depends on the problem. A compilation does not.
std::string Worker::too_long(const std::string& step, const BenchSetup& bench) {
  if (step == "reference")
    return fmt::format(
        ": the reference at {} is too much for this device; a smaller shape takes less",
        bench.problem.text());
  return step.empty() ? fmt::format(": it lays out the arguments at {}", bench.problem.text()) : "";
}

// Starts a child and opens the bench (-1: none) in it, unless that is done. An error that the child
// reports is final. If the child dies, the start is tried a second and a third time.
Status Worker::ensure_open(int bench) {
  std::string why;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    const bool fresh = channel_ == nullptr;
    if (fresh) {
      PURLIN_ASSIGN(channel_, WorkerChannel::start(setup_.executable, setup_.environment));
      opened_.assign(opened_.size(), false);
    } else if (bench < 0 || opened_[static_cast<std::size_t>(bench)]) {
      return Status::ok();
    }
    report_phase(fresh ? fmt::format("starts a worker for {}", setup_.device)
                       : std::string("lays out the arguments"));
    const std::function<void(std::string_view)> on_step = [this](std::string_view step) {
      if (step == "compile reference") report_phase("compiles the reference");
      if (step == "reference") report_phase("runs the reference");
    };
    WorkerChannel::Patience patience;
    patience.timeout_s = setup_.start_timeout_s;
    patience.each_step = true;
    patience.reference_timeout_s = setup_.reference_timeout_s;
    patience.stop = stop_;
    patience.on_step = &on_step;
    const Answer answer = channel_->ask(fresh ? start_request() : open_request(bench), patience);
    if (answer.kind != Answer::Kind::kReply) {
      channel_.reset();
      why = answer.message;
      if (answer.kind == Answer::Kind::kStopped)
        return error(Code::kCancelled, "the worker for {} {}", setup_.device, why);
      if (answer.kind == Answer::Kind::kTimedOut)
        return error(Code::kTimeout, "the worker for {} {}{}", setup_.device, why,
                     fresh ? "" : too_long(answer.step, benches_[static_cast<std::size_t>(bench)]));
      continue;
    }
    if (const Status status = status_of(answer.reply); !status.is_ok()) {
      // A child without a working device cannot be used.
      if (fresh || status.code() == Code::kFailed) channel_.reset();
      return status;
    }
    if (!fresh) {
      opened_[static_cast<std::size_t>(bench)] = true;
      return Status::ok();
    }
    // A later child has the same, and another thread may be reading it.
    if (!is_known_) {
      device_ = device_from_json(answer.reply["device"]);
      executes_ = answer.reply["executes"].as_bool(true);
      energy_problem_ = answer.reply["energy_problem"].as_string();
      is_known_ = true;
    }
    --attempt;  // the start worked, so the bench has all its attempts
  }
  return error(Code::kFailed, "the worker for {} died {} times in a row: it {}", setup_.device,
               kStartAttempts, why);
}

Result<Evaluation> Worker::ask(Json request, const Config& config, double timeout_s, double limit_s,
                               int bench) {
  if (bench < 0 || bench >= static_cast<int>(benches_.size()))
    return error(Code::kInvalid, "the worker has no bench {}", bench);
  PURLIN_TRY(ensure_open(bench));
  const std::int64_t start_ns = system_clock().monotonic_ns();
  request.set("bench", bench).set("config", to_json(config));
  WorkerChannel::Patience patience;
  patience.timeout_s = timeout_s;
  patience.each_step = true;
  patience.limit_s = limit_s;
  patience.stop = stop_;
  patience.grace_s = compile_only_ ? 0 : kStopGraceS;
  const Answer answer = channel_->ask(std::move(request), patience);
  if (answer.kind == Answer::Kind::kReply) {
    PURLIN_TRY(status_of(answer.reply));
    if (answer.reply["lost"].as_bool()) {
      channel_.reset();
      ++restarts_;
    }
    return evaluation_from_json(answer.reply["evaluation"]);
  }
  channel_.reset();
  if (answer.kind == Answer::Kind::kStopped)
    return error(Code::kCancelled, "the evaluation of {} {}", config.text(), answer.message);
  ++restarts_;
  Evaluation evaluation;
  evaluation.config = config;
  const bool timed_out = answer.kind == Answer::Kind::kTimedOut;
  evaluation.status = timed_out ? EvaluationStatus::kTimeout : EvaluationStatus::kCrash;
  evaluation.message = timed_out ? answer.message : "the worker process " + answer.message;
  evaluation.cost_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
  return evaluation;
}

Result<Evaluation> Worker::compile(const Config& config, double timeout_s, int bench) {
  return ask(Json::object({{"op", "compile"}}), config, timeout_s, 0, bench);
}

Result<Evaluation> Worker::evaluate(const Config& config, const Policy& policy, double timeout_s,
                                    int bench) {
  if (compile_only_) return error(Code::kInvalid, "this worker only compiles");
  return ask(Json::object({{"op", "evaluate"}, {"policy", to_json(policy)}}), config, timeout_s,
             policy.limit_s, bench);
}

Result<Evaluation> Worker::repeat(const Config& config, const Policy& policy, double timeout_s,
                                  int bench) {
  if (compile_only_) return error(Code::kInvalid, "this worker only compiles");
  return ask(Json::object({{"op", "repeat"}, {"policy", to_json(policy)}}), config, timeout_s,
             policy.limit_s, bench);
}

Result<std::map<std::string, double>> Worker::count(const Config& config, const Policy& policy,
                                                    double timeout_s, int bench) {
  if (bench < 0 || bench >= static_cast<int>(benches_.size()))
    return error(Code::kInvalid, "the worker has no bench {}", bench);
  PURLIN_TRY(ensure_open(bench));
  const Answer answer = channel_->ask(Json::object({{"op", "count"},
                                                    {"bench", bench},
                                                    {"config", to_json(config)},
                                                    {"policy", to_json(policy)}}),
                                      {.timeout_s = timeout_s, .stop = stop_});
  if (answer.kind != Answer::Kind::kReply) {
    channel_.reset();
    ++restarts_;
    return error(answer.kind == Answer::Kind::kTimedOut  ? Code::kTimeout
                 : answer.kind == Answer::Kind::kStopped ? Code::kCancelled
                                                         : Code::kFailed,
                 "reading the counters of {}: the worker {}", config.text(), answer.message);
  }
  if (const Status status = status_of(answer.reply); !status.is_ok()) {
    if (status.code() == Code::kFailed) {  // the device is lost to that child
      channel_.reset();
      ++restarts_;
    }
    return status;
  }
  std::map<std::string, double> counters;
  for (const auto& [name, value] : answer.reply["counters"].members())
    if (value.is_number()) counters[name] = value.as_double();
  return counters;
}

Result<gpu::LibrarySpace> Worker::library_space(double timeout_s, int bench) {
  if (bench < 0 || bench >= static_cast<int>(benches_.size()))
    return error(Code::kInvalid, "the worker has no bench {}", bench);
  PURLIN_TRY(ensure_open(bench));
  const Answer answer = channel_->ask(Json::object({{"op", "library_space"}, {"bench", bench}}),
                                      {.timeout_s = timeout_s, .stop = stop_});
  if (answer.kind != Answer::Kind::kReply) {
    channel_.reset();
    ++restarts_;
    return error(answer.kind == Answer::Kind::kStopped ? Code::kCancelled : Code::kFailed,
                 "listing the library's algorithms: the worker {}", answer.message);
  }
  PURLIN_TRY(status_of(answer.reply));
  return gpu::library_space_from_json(answer.reply["space"]);
}

}  // namespace purlin::measure
