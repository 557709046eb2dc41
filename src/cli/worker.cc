// SPDX-License-Identifier: Apache-2.0
// `purlin worker`: the process a Worker starts. Hidden, for it talks to programs only.
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "measure/worker_server.h"

namespace purlin::cli {
namespace {

class WorkerCommand : public Command {
 public:
  std::string_view name() const override { return "worker"; }
  std::string_view summary() const override {
    return "Compile, verify and measure kernels for another purlin process";
  }
  VerbText text() const override {
    return {.description =
                "Reads requests from stdin and writes replies to stdout, one JSON document a line, "
                "until stdin ends. `purlin tune` and `purlin guard` start it.",
            .see = {"docs/formats/worker.md"}};
  }
  bool hidden() const override { return true; }
  void declare(Flags&) override {}
  Result<int> run(Context&) override { return measure::worker_main(); }
};

}  // namespace

std::unique_ptr<Command> make_worker_command() { return std::make_unique<WorkerCommand>(); }

}  // namespace purlin::cli
