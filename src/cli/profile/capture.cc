// SPDX-License-Identifier: Apache-2.0
// `purlin capture`: starts, stops or extends the capture of a running program, of this machine or
// through a server.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/profile/window_request.h"
#include "profile/control_client.h"
#include "profile/torch/request.h"

#include <algorithm>
#include <functional>
#include <future>
#include <system_error>

namespace purlin::cli {
namespace {

using profile::ControlRequest;

constexpr std::size_t kMostProcesses = 256;  // each has a thread

std::string state_text(const Json& answer) {
  const std::string state = answer["state"].as_string();
  if (state != "waiting") return state;
  const double window = answer["waiting_window_ns"].as_double();
  return "waiting for the program's first CUDA context" +
         (window > 0 ? fmt::format(", a window of {} then", format_ns(window)) : "");
}

std::string state_line(std::int64_t pid, const Json& answer) {
  const double governed = answer["governed_ns"].as_double();
  return fmt::format("{}: {}, {}, {:.1f} % of {} recorded, {} taken from the program\n", pid,
                     state_text(answer), counted(answer["windows"].as_double(), "window"),
                     governed > 0 ? 100 * answer["recorded_ns"].as_double() / governed : 0.0,
                     format_ns(governed), format_ns(answer["overhead_ns"].as_double()));
}

std::string trace_line(std::int64_t pid, const Json& answer) {
  const double length = answer["length_ns"].as_double(), steps = answer["steps"].as_double();
  const std::string what =  // libkineto's daemon protocol tells no times
      length > 0 ? fmt::format("{}{}, for {} more of the program's time",
                               steps > 0 ? counted(steps, "step") + ", " : "", format_ns(length),
                               format_ns(answer["cost_ns"].as_double()))
                 : "a trace";
  return fmt::format("{}: PyTorch's profiler recorded {}; it will be in the profile\n", pid, what);
}

// All at the same time: each answers within half a second, so the windows of ranks overlap.
std::vector<Result<Json>> ask_all(const std::vector<std::int64_t>& processes,
                                  const std::function<Result<Json>(std::int64_t pid)>& ask) {
  std::vector<std::future<Result<Json>>> asked;
  for (const std::int64_t pid : processes) {
    const auto one = [&ask, pid] { return ask(pid); };
    try {
      asked.push_back(std::async(std::launch::async, one));
    } catch (const std::system_error&) {  // no more threads are allowed: this one comes later
      asked.push_back(std::async(std::launch::deferred, one));
    }
  }
  std::vector<Result<Json>> answers;
  for (std::future<Result<Json>>& each : asked) answers.push_back(each.get());
  return answers;
}

class CaptureCommand : public Command {
 public:
  std::string_view name() const override { return "capture"; }
  std::string_view summary() const override {
    return "Start, stop or extend the capture of a running program";
  }
  VerbText text() const override {
    return {.description =
                "Controls each process PID, a program that runs under `purlin profile` or with the "
                "variables of `purlin env`. Only the user who started the program may do so. A "
                "window records every launch for the time of --for, without the overhead limit. "
                "Of OpenCL programs, status and window are possible.",
            .more =
                "The answer comes within half a second, the first time after CUPTI was "
                "initialised. Windows and stops are in the coverage of the profile.\n\nSeveral "
                "processes, such as the ranks of a job, are asked at the same time. Each has a "
                "line, in the order given. One that cannot be controlled has an error, and the "
                "others go on. With --json, several processes are a list, and the member `error` "
                "is such an error.\n\nAfter "
                "--idle or --windows, nothing is recorded before the first CUDA context of the "
                "program. A window that is requested earlier begins with that context.\n\nWith "
                "--server, a window is requested of the captured processes of a node. Its "
                "collector takes the request with its next batch and sends the timeline as a raw "
                "profile, which is fetched. The token needs the scope write.",
            .examples = {{"purlin profile --idle -o run.plprof -- python3 serve.py &"},
                         {"purlin capture window --for 2s $(pgrep -n -f serve.py)",
                          "-n selects the newest process, not purlin itself"},
                         {"purlin capture window --for 2s $(pgrep -f 'python3 -u train.py')",
                          "The ranks that torchrun started, at the same time"},
                         {"purlin capture window --torch 4711",
                          "Ops and shapes of a PyTorch program's next steps"},
                         {"purlin capture window --server https://fleet:8717 --node gpu07 --job "
                          "4711 --for 10s -o now.plprof",
                          "The processes of a job on a node of the fleet"}},
            .exit_codes = {{0, "Done"},
                           {2, "Error, of one process at least"},
                           {3, "With --server: the timeline did not arrive in time"}},
            .see = {"docs/guide/profiling.md", "docs/guide/fleet.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals(
        "ACTION PID", words_,
        {"status, start, stop or window, then the process of the program, or several",
         "",
         {{"status", "Show the state of the capture and its overhead so far"},
          {"start", "Start the capture, after --idle or stop"},
          {"stop", "Stop the capture"},
          {"window", "Record every launch for the time of --for, then continue as before"}}});
    flags.option("--for", length_, "Length of a window", "TIME");
    flags.option("--server", order_.server, "URL of `purlin serve`: a window of a node", "URL");
    flags.option("--node", order_.node, "The node, as the server names it");
    flags.option("--job", order_.job, "Of the node, the processes of this job");
    flags.option("--wait", wait_, "With --server: time until the timeline has arrived", "TIME");
    flags.option("-o,--output", order_.output, "With --server: file of the timeline", "FILE");
    flags.flag("--torch", torch_, "With window: a trace of a PyTorch program's next steps");
    flags.flag("--json", json_, "Print the answer as JSON, those of several processes as a list");
  }

  Result<int> run(Context& context) override {
    if (!order_.server.empty()) return through_server(context);
    if (words_.size() < 2)
      return error(Code::kInvalid,
                   "give an action and a process or several, such as: purlin capture status 4711");
    ControlRequest request;
    PURLIN_TRY(parse(words_[0], request));
    PURLIN_ASSIGN(const std::vector<std::int64_t> processes, processes_of(words_));
    if (torch_ && request.verb != ControlRequest::Verb::kWindow)
      return error(Code::kInvalid, "--torch belongs to window: purlin capture window --torch {}",
                   processes.front());
    const std::vector<Result<Json>> answers = ask_all(
        processes, [&](std::int64_t pid) { return torch_ ? trace(pid) : ask(pid, request); });
    // Of one process: the answer, or the error of the verb.
    if (answers.size() == 1) PURLIN_TRY(answers.front().status());
    return print(context, processes, answers);
  }

 private:
  Result<int> through_server(Context& context) {
    order_.json = json_;
    const std::string action = words_.empty() ? "" : words_[0];
    if (action == "status" && words_.size() == 1) return list_windows(context, order_);
    const std::optional<std::int64_t> pid = words_.size() == 2 ? parse_int(words_[1]) : 0;
    if (action != "window" || words_.size() > 2 || !pid || *pid < 0 || order_.node.empty() ||
        torch_)
      return error(Code::kInvalid,
                   "with --server give window, --node and at most one process, such as: purlin "
                   "capture window --server {} --node gpu07 --job 4711; or status",
                   order_.server);
    ControlRequest request;
    PURLIN_TRY(parse(action, request));
    const std::optional<double> wait = parse_duration_s(wait_);
    if (!wait) return error(Code::kInvalid, "--wait '{}' is not a time such as 10m", wait_);
    order_.pid = *pid;
    order_.length_ns = request.length_ns;
    order_.wait_s = *wait;
    return request_window(context, order_);
  }
  // Each once, in the order given. All are read before one is asked.
  static Result<std::vector<std::int64_t>> processes_of(const std::vector<std::string>& words) {
    std::vector<std::int64_t> processes;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::optional<std::int64_t> pid = parse_int(words[i]);
      if (!pid || *pid <= 0)
        return error(Code::kInvalid, "'{}' is no process: give its number", words[i]);
      if (std::find(processes.begin(), processes.end(), *pid) == processes.end())
        processes.push_back(*pid);
    }
    if (processes.size() > kMostProcesses)
      return error(Code::kInvalid, "{} processes are more than {}: give fewer at a time",
                   processes.size(), kMostProcesses);
    return processes;
  }

  static Result<Json> ask(std::int64_t pid, const ControlRequest& request) {
    PURLIN_ASSIGN(const Json made, profile::ask_capture(pid, request));
    Json answer = Json::object({{"pid", pid}});
    for (const Json::Member& member : made.members())
      if (member.key != "pid") answer.set(member.key, member.value);
    return answer;
  }

  static Result<Json> trace(std::int64_t pid) {
    PURLIN_ASSIGN(const profile::TorchNote note, profile::request_torch_trace(pid));
    return Json::object({{"pid", pid},
                         {"steps", note.steps},
                         {"length_ns", static_cast<double>(note.end_ns - note.start_ns)},
                         {"cost_ns", note.cost_ns}});
  }

  // A line for each process: of those that answered on the output, of the others an error.
  Result<int> print(Context& context, const std::vector<std::int64_t>& processes,
                    const std::vector<Result<Json>>& answers) const {
    Json list = Json::array();
    std::string text;
    bool failed = false;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].is_ok()) {
        failed = true;
        context.log.error("{}", answers[i].status().message());
        list.push(Json::object({{"pid", processes[i]}, {"error", answers[i].status().message()}}));
        continue;
      }
      const Json& answer = *answers[i];
      if (const std::string warning = answer["warning"].as_string(); !warning.empty())
        context.log.warn("process {}: {}", processes[i], warning);
      text += torch_ ? trace_line(processes[i], answer) : state_line(processes[i], answer);
      list.push(answer);
    }
    cli::answer(context, json_, answers.size() == 1 ? list.items().front() : list, text);
    return failed ? kExitError : kExitOk;
  }

  Status parse(const std::string& action, ControlRequest& request) const {
    if (action == "status") {
      request.verb = ControlRequest::Verb::kStatus;
    } else if (action == "start") {
      request.verb = ControlRequest::Verb::kStart;
    } else if (action == "stop") {
      request.verb = ControlRequest::Verb::kStop;
    } else if (action == "window") {
      request.verb = ControlRequest::Verb::kWindow;
      const std::optional<double> length = parse_duration_s(length_);
      if (!length || *length < 0.001 || *length > 3600)
        return error(Code::kInvalid, "--for '{}': give a time from 1ms to 1h", length_);
      request.length_ns = static_cast<std::int64_t>(*length * 1e3) * 1'000'000;
    } else {
      return error(Code::kInvalid, "'{}' is no action: give status, start, stop or window", action);
    }
    return Status::ok();
  }

  std::vector<std::string> words_;
  WindowOrder order_;
  std::string length_ = "2s", wait_ = "10m";
  bool json_ = false, torch_ = false;
};

}  // namespace

std::unique_ptr<Command> make_capture_command() { return std::make_unique<CaptureCommand>(); }

}  // namespace purlin::cli
