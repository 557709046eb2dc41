// SPDX-License-Identifier: Apache-2.0
#include "measure/worker_server.h"

#include "base/files.h"
#include "base/hash.h"
#include "gpu/registry.h"
#include "measure/binary_cache.h"
#include "measure/workbench.h"
#include "measure/worker_protocol.h"
#include "model/spec/spec.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace purlin::measure {
namespace {

// A parent ends a child by closing the pipe. An idle child ends long before this time.
constexpr std::int64_t kGraceNs = 2'000'000'000;

// Ends the process once the other end of `fd` is closed, even if the main thread is blocked.
void watch_parent(int fd) {
  std::thread([fd] {
    pollfd watched{fd, 0, 0};  // no events: wakes on hang-up only
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    system_clock().sleep_ns(kGraceNs);
    if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);  // compilers the driver has started, too
    ::_exit(1);
  }).detach();
}

class Server {
 public:
  Server(int in_fd, int out_fd, const OpenDevice& open_device)
      : in_(in_fd), out_(out_fd), open_device_(open_device) {}

  int serve() {
    std::string line;
    while (!lost_ && read_line(line)) {
      const Result<Json> request = Json::parse(line, {kMaxRequestBytes, 32});
      const std::int64_t number = request.is_ok() ? (*request)["id"].as_int(-1) : -1;
      number_ = number;
      Json reply = request.is_ok() ? answer(*request) : failure(request.status());
      reply.set("id", number);
      if (!write_line(reply)) return 1;
    }
    return too_long_ ? 1 : 0;
  }

 private:
  Json answer(const Json& request) {
    const std::string& op = request["op"].as_string();
    Result<Json> reply = op == "start"      ? start(request)
                         : op == "open"     ? open(request)
                         : op == "compile"  ? compile(request)
                         : op == "evaluate" ? evaluate(request)
                         : op == "repeat"   ? evaluate(request)
                         : op == "count"    ? count(request)
                         : op == "library_space"
                             ? library_space(request)
                             : error(Code::kInvalid, "unknown request '{}'", op);
    return reply.is_ok() ? std::move(reply).value() : failure(reply.status());
  }

  static Json failure(const Status& status) {
    return Json::object({{"error", Json::object({{"code", code_name(status.code())},
                                                 {"message", status.message()}})}});
  }

  Result<Json> start(const Json& request) {
    if (request["protocol"].as_int() != kProtocol)
      return error(Code::kInvalid, "worker protocol {} is not {}; the two purlin binaries differ",
                   request["protocol"].as_int(), kProtocol);
    if (device_ != nullptr) return error(Code::kInvalid, "the device is open already");
    PURLIN_ASSIGN(device_, open_device_(request["device"].as_string()));
    compile_only_ = request["compile_only"].as_bool();
    if (const std::string& directory = request["binary_cache"].as_string(); !directory.empty()) {
      PURLIN_TRY(make_directories(directory).with_context(
          "the cache of compiled kernels (below $XDG_CACHE_HOME, else ~/.cache)"));
      binaries_.emplace(directory);
    }
    Json reply =
        Json::object({{"device", to_json(device_->info())}, {"executes", device_->executes()}});
    if (const Status counts = compile_only_ ? Status::ok() : device_->energy_mj().status();
        !counts.is_ok())
      reply.set("energy_problem", counts.message());
    return reply;
  }

  Result<Json> open(const Json& request) {
    if (device_ == nullptr) return error(Code::kInvalid, "no device is open");
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(request["spec"].as_string()));
    ProblemShape problem = spec.problem;
    if (request["problem"].size() > 0) {
      PURLIN_ASSIGN(problem, shape_from_json(request["problem"]));
    }
    Workbench::Options options;
    options.verify = request["verify"].as_bool(true);
    options.compile_only = compile_only_;
    options.seed = static_cast<std::uint64_t>(request["seed"].as_int());
    options.binaries = binaries_ ? &*binaries_ : nullptr;
    options.on_step = [this](std::string_view step) {
      write_line(Json::object({{"id", number_}, {"step", step}}));
    };
    const std::int64_t bench = request["bench"].as_int(-1);
    if (bench < 0 || bench >= kMaxBenches)
      return error(Code::kInvalid, "bench {} is not below {}", bench, kMaxBenches);
    if (benches_.size() <= static_cast<std::size_t>(bench))
      benches_.resize(static_cast<std::size_t>(bench) + 1);
    PURLIN_ASSIGN(benches_[static_cast<std::size_t>(bench)],
                  Workbench::create(*device_, spec, problem, std::move(options)));
    return Json::object({{"opened", bench}});
  }

  Result<Workbench*> bench_of(const Json& request) const {
    const std::int64_t bench = request["bench"].as_int(-1);
    if (bench >= 0 && bench < static_cast<std::int64_t>(benches_.size()))
      if (Workbench* found = benches_[static_cast<std::size_t>(bench)].get()) return found;
    return error(Code::kInvalid, "bench {} is not open", bench);
  }

  Result<Json> compile(const Json& request) {
    PURLIN_ASSIGN(Workbench * bench, bench_of(request));
    PURLIN_ASSIGN(const Config config, config_from_json(request["config"]));
    return Json::object({{"evaluation", to_json(bench->compile(config))}});
  }

  Result<Json> evaluate(const Json& request) {
    PURLIN_ASSIGN(Workbench * bench, bench_of(request));
    if (compile_only_) return error(Code::kInvalid, "this worker only compiles");
    PURLIN_ASSIGN(const Config config, config_from_json(request["config"]));
    PURLIN_ASSIGN(const Policy policy, policy_from_json(request["policy"]));
    const bool again = request["op"].as_string() == "repeat";
    Json reply = Json::object({{"evaluation", to_json(again ? bench->repeat(config, policy)
                                                            : bench->evaluate(config, policy))}});
    lost_ = bench->device_lost();
    if (lost_) reply.set("lost", true);
    return reply;
  }

  Result<Json> count(const Json& request) {
    PURLIN_ASSIGN(Workbench * bench, bench_of(request));
    PURLIN_ASSIGN(const Config config, config_from_json(request["config"]));
    PURLIN_ASSIGN(const Policy policy, policy_from_json(request["policy"]));
    PURLIN_ASSIGN(const auto counters, bench->count(config, policy));
    Json json = Json::object();
    for (const auto& [name, value] : counters) json.set(name, value);
    return Json::object({{"counters", std::move(json)}});
  }

  // Listing takes seconds, so the space is stored for the next session.
  Result<Json> library_space(const Json& request) {
    PURLIN_ASSIGN(Workbench * bench, bench_of(request));
    const KernelSpec& spec = bench->spec();
    if (!spec.library) return error(Code::kInvalid, "{} has no [library]", spec.file);
    PURLIN_ASSIGN(const std::string version, device_->library_version(spec.library->library));
    const std::string path = library_space_path(version, spec, bench->problem());
    if (!path.empty()) {
      if (const Result<std::string> text = read_file(path, kMaxReplyBytes); text.is_ok()) {
        Result<Json> kept = Json::parse(*text, {kMaxReplyBytes, 32});
        if (kept.is_ok() && gpu::library_space_from_json(*kept).is_ok())
          return Json::object({{"space", *std::move(kept)}});
      }
    }
    PURLIN_ASSIGN(const gpu::LibrarySpace space,
                  device_->library_space(*spec.library, bench->problem()));
    Json json = gpu::to_json(space);
    // A space that cannot be stored, or that ran out of time, is listed again later.
    if (!path.empty() && space.complete) static_cast<void>(write_atomic(path, json.dump()));
    return Json::object({{"space", std::move(json)}});
  }

  std::string library_space_path(const std::string& version, const KernelSpec& spec,
                                 const ProblemShape& problem) const {
    if (!binaries_) return "";
    const DeviceInfo& info = device_->info();
    FieldHasher hasher;
    hasher.add("purlin.library-space/1").add(info.name).add(info.arch).add(info.driver);
    hasher.add(version).add(spec.library->text()).add(problem.text());
    const std::string folder = join_path(binaries_->directory(), "libraries");
    if (!make_directories(folder).is_ok()) return "";
    return join_path(folder, hasher.hex() + ".json");
  }

  bool read_line(std::string& line) {
    while (true) {
      if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
        line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return true;
      }
      if (unread_.size() > kMaxRequestBytes) return too_long_ = true, false;
      char buffer[1 << 14];
      const ssize_t got = ::read(in_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      unread_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  bool write_line(const Json& reply) const {
    const std::string line = reply.dump() + "\n";
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t put = ::write(out_, rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

  const int in_, out_;
  const OpenDevice& open_device_;
  // Destroyed in reverse: the benches' buffers before the device.
  std::unique_ptr<gpu::Device> device_;
  std::optional<BinaryCache> binaries_;
  std::vector<std::unique_ptr<Workbench>> benches_;
  std::string unread_;
  std::int64_t number_ = -1;
  bool compile_only_ = false, lost_ = false, too_long_ = false;
};

}  // namespace

int serve_worker(int in_fd, int out_fd, const OpenDevice& open_device) {
  return Server(in_fd, out_fd, open_device).serve();
}

int worker_main() {
  return worker_main([](std::string_view name) { return gpu::open_device(name); });
}

int worker_main(const OpenDevice& open_device) {
  ::signal(SIGPIPE, SIG_IGN);
  const int in_fd = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  const int out_fd = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in_fd < 0 || out_fd < 0 || null < 0 || ::dup2(null, 0) < 0 || ::dup2(2, 1) < 0) {
    std::perror("purlin worker: cannot set up its streams");
    return 2;
  }
  watch_parent(in_fd);
  const int code = serve_worker(in_fd, out_fd, open_device);
  // Exit handlers of some drivers hang or crash after a device was lost, and there is nothing left
  // to save.
  std::fflush(nullptr);
  // Under capture the process ends normally, so that its profile is sealed.
  if (!environment_variable("PURLIN_SPOOL").empty()) std::exit(code);
  ::_exit(code);
}

}  // namespace purlin::measure
