// SPDX-License-Identifier: Apache-2.0
// `purlin capture`: starts, stops or extends the capture of a running program.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "profile/control_client.h"
#include "profile/torch/request.h"

namespace purlin::cli {
namespace {

using profile::ControlRequest;

std::string state_text(const Json& answer) {
  const std::string state = answer["state"].as_string();
  if (state != "waiting") return state;
  const double window = answer["waiting_window_ns"].as_double();
  return "waiting for the program's first CUDA context" +
         (window > 0 ? fmt::format(", a window of {} then", format_ns(window)) : "");
}

class CaptureCommand : public Command {
 public:
  std::string_view name() const override { return "capture"; }
  std::string_view summary() const override {
    return "Start, stop or extend the capture of a running program";
  }
  VerbText text() const override {
    return {.description =
                "Controls process PID, a CUDA program that runs under `purlin profile`. Only the "
                "user who started the program may do so. A window records every launch for the "
                "time of --for, without the overhead limit.",
            .more =
                "The answer comes within half a second, the first time after CUPTI was "
                "initialised. Windows and stops are in the coverage of the profile.\n\nAfter "
                "--idle or --windows, nothing is recorded before the first CUDA context of the "
                "program. A window that is requested earlier begins with that context.",
            .examples = {{"purlin profile --idle -o run.plprof -- python3 serve.py &"},
                         {"purlin capture window --for 2s $(pgrep -n -f serve.py)",
                          "-n selects the newest process, not purlin itself"},
                         {"purlin capture window --torch 4711",
                          "Ops and shapes of a PyTorch program's next steps"}},
            .exit_codes = {{0, "Done"}, {2, "Error"}},
            .see = {"docs/guide/profiling.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals(
        "ACTION PID", words_,
        {"status, start, stop or window, then the process of the program",
         "",
         {{"status", "Show the state of the capture and its overhead so far"},
          {"start", "Start the capture, after --idle or stop"},
          {"stop", "Stop the capture"},
          {"window", "Record every launch for the time of --for, then continue as before"}}});
    flags.option("--for", length_, "Length of a window", "TIME");
    flags.flag("--torch", torch_, "With window: a trace of a PyTorch program's next steps");
    flags.flag("--json", json_, "Print the answer as JSON");
  }

  Result<int> run(Context& context) override {
    if (words_.size() != 2)
      return error(Code::kInvalid,
                   "give an action and one process, such as: purlin capture status 4711{}",
                   words_.size() > 2
                       ? fmt::format("; there are {} words: {}", words_.size(), join(words_, " "))
                       : "");
    ControlRequest request;
    PURLIN_TRY(parse(words_[0], request));
    const std::optional<std::int64_t> pid = parse_int(words_[1]);
    if (!pid || *pid <= 0)
      return error(Code::kInvalid, "'{}' is no process: give its number", words_[1]);
    if (torch_) return trace(*pid, request, context);
    PURLIN_ASSIGN(const Json answer, profile::ask_capture(*pid, request));
    if (const std::string warning = answer["warning"].as_string(); !warning.empty())
      context.log.warn("process {}: {}", *pid, warning);
    if (json_) {
      context.print(answer.dump(2) + "\n");
      return 0;
    }
    const double governed = answer["governed_ns"].as_double();
    context.print(
        fmt::format("{}: {}, {}, {:.1f} % of {} recorded, {} taken from the program\n", *pid,
                    state_text(answer), counted(answer["windows"].as_double(), "window"),
                    governed > 0 ? 100 * answer["recorded_ns"].as_double() / governed : 0.0,
                    format_ns(governed), format_ns(answer["overhead_ns"].as_double())));
    return 0;
  }

 private:
  Result<int> trace(std::int64_t pid, const ControlRequest& request, Context& context) const {
    if (request.verb != ControlRequest::Verb::kWindow)
      return error(Code::kInvalid, "--torch belongs to window: purlin capture window --torch {}",
                   pid);
    PURLIN_ASSIGN(const profile::TorchNote note, profile::request_torch_trace(pid));
    const double length = static_cast<double>(note.end_ns - note.start_ns);
    if (json_) {
      Json answer = Json::object();
      answer.set("pid", pid);
      answer.set("steps", note.steps);
      answer.set("length_ns", length);
      answer.set("cost_ns", note.cost_ns);
      context.print(answer.dump(2) + "\n");
      return 0;
    }
    context.print(
        fmt::format("{}: PyTorch's profiler recorded {}{}, for {} more of the program's "
                    "time; the trace will be in the profile\n",
                    pid, note.steps > 0 ? counted(note.steps, "step") + ", " : "",
                    format_ns(length), format_ns(note.cost_ns)));
    return 0;
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
  std::string length_ = "2s";
  bool json_ = false, torch_ = false;
};

}  // namespace

std::unique_ptr<Command> make_capture_command() { return std::make_unique<CaptureCommand>(); }

}  // namespace purlin::cli
