// SPDX-License-Identifier: Apache-2.0
// Shared by the guard verbs that run kernels: their flags, the open suite and device, progress, and
// the output of a report. Owned by the verb's Command. One thread.
#pragma once

#include "base/output/terminal.h"
#include "base/random.h"
#include "cli/frame/command.h"
#include "cli/frame/events.h"
#include "cli/guard/device.h"
#include "guard/check/check.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cli {

// "guard: screening 12, 40/96 done, 0:12, 0:17 left"
std::string guard_progress_line(const guard::PairProgress& progress);
void write_progress(Events& events, const guard::PairProgress& progress);

// The order of the two sides must not depend on the compared code: the test relies on it.
Random unguessable_random();

class SuiteRun {
 public:
  void declare(Flags& flags);
  // Loads the suite and opens its device. With kRefused, a suite with commands is an error, because
  // the verb cannot treat commands as kernels.
  enum class Commands { kRefused, kTaken };
  Status open(Context& context, Commands commands = Commands::kRefused);
  guard::GuardRun& run() { return *run_; }
  const guard::Suite& suite() const { return suite_; }
  const guard::ResolvedDevice& device() const { return device_; }
  void end_progress() { progress_.reset(); }
  // Progress goes there too; before open().
  void follow(Events& events) { events_ = &events; }
  const std::string& suite_path() const { return suite_path_; }
  // The default path of the baseline: NAME.baseline.json next to the suite.
  std::string default_baseline() const;

 private:
  std::string suite_path_, device_name_, cache_;
  std::vector<std::string> tags_;
  guard::Suite suite_;
  guard::ResolvedDevice device_;
  std::unique_ptr<guard::Runner> runner_;
  Random random_{0};
  std::optional<Progress> progress_;
  Events* events_ = nullptr;
  GuardDevice watched_;
  std::optional<guard::GuardRun> run_;
};

// The outputs of a report: stdout, and files for CI systems.
class GuardOutputs {
 public:
  void declare(Flags& flags);
  // With --json-lines, the first line; later the verb writes its progress to events().
  Status begin(Context& context, std::string_view verb) {
    return events_.begin(context, verb, json_);
  }
  Events& events() { return events_; }
  // The folder for profiles of regressions; "" = take none.
  std::string profiles() const;
  // Writes every requested output and returns the exit code of the verdict. `next`: the words of
  // the command that follows.
  Result<int> write(Context& context, const guard::Report& report,
                    const std::vector<std::string>& next);

 private:
  Events events_;
  bool json_ = false, github_ = false, no_profiles_ = false;
  std::string profiles_;
  std::string junit_, sarif_, otlp_, markdown_, action_benchmark_, bencher_;
};

}  // namespace purlin::cli
