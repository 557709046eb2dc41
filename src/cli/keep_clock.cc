// SPDX-License-Identifier: Apache-2.0
// `purlin keep-clock UUID`: gives a GPU's clock back when the process that locked it is gone.
#include "cli/commands.h"
#include "cli/frame/command.h"
#include "gpu/clock_lock.h"

namespace purlin::cli {
namespace {

class KeepClock : public Command {
 public:
  std::string_view name() const override { return "keep-clock"; }
  std::string_view summary() const override {
    return "Release the GPU clock after another purlin process has ended";
  }
  VerbText text() const override {
    return {
        .description =
            "Waits for the end of stdin, which a kill of its writer causes, too. It then unlocks "
            "the clock of the GPU with this UUID. `purlin guard --lock-clocks` starts it."};
  }
  bool hidden() const override { return true; }
  void declare(Flags& flags) override { flags.positional("UUID", uuid_, "The GPU"); }
  Result<int> run(Context&) override {
    PURLIN_ASSIGN(const std::unique_ptr<gpu::Monitor> monitor, gpu::open_monitor(uuid_));
    PURLIN_TRY(gpu::keep_clock(*monitor));
    return kExitOk;
  }

 private:
  std::string uuid_;
};

}  // namespace

std::unique_ptr<Command> make_keep_clock_command() { return std::make_unique<KeepClock>(); }

}  // namespace purlin::cli
