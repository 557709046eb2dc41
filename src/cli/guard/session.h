// SPDX-License-Identifier: Apache-2.0
// What the guard's verbs that run kernels share: their flags, the open suite and device, progress.
// Owned by the verb's Command; one thread.
#pragma once

#include "base/random.h"
#include "base/terminal.h"
#include "cli/frame/command.h"
#include "cli/guard/device.h"
#include "guard/check/check.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cli {

// "guard: screening 12, 40/96 done, 0:12, 0:17 left"
std::string guard_progress_line(const guard::PairProgress& progress);

// The coins must not be guessable from what is compared: the order of arms is what the test rests
// on.
Random unguessable_random();

class GuardSession {
 public:
  void declare(Flags& flags);
  // Loads the suite and opens its device. A suite with commands is refused where those could not be
  // treated as its kernels are.
  enum class Commands { kRefused, kTaken };
  Status open(Context& context, Commands commands = Commands::kRefused);
  guard::GuardRun& session() { return *session_; }
  const guard::Suite& suite() const { return suite_; }
  const guard::ResolvedDevice& device() const { return device_; }
  void end_progress() { progress_.reset(); }
  // Where a baseline lies when no option says so: NAME.baseline.json beside the suite.
  std::string default_baseline() const;

 private:
  std::string suite_path_, device_name_, cache_;
  std::vector<std::string> tags_;
  guard::Suite suite_;
  guard::ResolvedDevice device_;
  std::unique_ptr<guard::Runner> runner_;
  Random random_{0};
  std::optional<Progress> progress_;
  GuardDevice watched_;
  std::optional<guard::GuardRun> session_;
};

// How a report leaves the program: stdout, and files for CI systems.
class GuardOutputs {
 public:
  void declare(Flags& flags);
  // Where profiles of regressions go; "" = none are wanted.
  std::string profiles() const;
  // Writes all that was asked for; returns the exit code of the verdict.
  Result<int> write(Context& context, const guard::Report& report) const;

 private:
  bool json_ = false, github_ = false, no_profiles_ = false;
  std::string profiles_;
  std::string junit_, sarif_, markdown_;
};

}  // namespace purlin::cli
