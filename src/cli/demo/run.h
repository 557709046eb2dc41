// SPDX-License-Identifier: Apache-2.0
// DemoRun: what the steps of `purlin demo` share. It holds the device, the folder and the sample
// kernels, runs commands, and writes the demo's text to stderr.
//
// Every command runs in a separate process and is shown first, as a user would type it. Owned by
// the demo's Command; one thread. Failure: a command that ends with another exit code than the
// step expects is kFailed, with its output.
#pragma once

#include "base/json/json.h"
#include "base/output/terminal.h"
#include "base/status.h"
#include "model/device/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

// The stages of the sample program. The demo tunes the one with the largest share of the time.
inline constexpr std::string_view kSampleStages[] = {"layernorm", "gemm", "elementwise", "softmax"};

class DemoRun {
 public:
  DemoRun(Terminal terminal, std::string directory, DeviceInfo device, std::string kernels);

  const DeviceInfo& device() const { return device_; }
  bool on_cpu() const { return device_.kind == "cpu"; }
  const Terminal& terminal() const { return terminal_; }
  const std::string& directory() const { return directory_; }
  std::string path(std::string_view name) const;                  // of a file in the demo's folder
  std::string cache() const { return path("cache"); }             // the demo's config cache
  std::string spec(std::string_view kernel) const;                // of a sample kernel
  std::string preset() const { return on_cpu() ? "" : "large"; }  // "" = the default shape

  std::string purlin() const;
  // The sample program: `extra` goes before the specs of its stages.
  std::vector<std::string> sample(int steps, const std::vector<std::string>& extra = {}) const;

  // One line of text, indented under its step except for titles.
  void title(std::string_view text) const { line(Style::kBold, text); }
  void step(int number, std::string_view text) const;
  void say(std::string_view text, Style style = Style::kPlain) const;
  void show(const std::vector<std::string>& argv) const;

  struct Ran {
    int code = 0;
    std::string out;
  };
  // Runs a command without showing it. Fails unless it exits with one of `wanted`.
  Result<Ran> run_hidden(const std::vector<std::string>& argv,
                         const std::vector<int>& wanted) const;
  // These show the command first. run() and run_json() expect exit code 0.
  Result<Ran> run_any(const std::vector<std::string>& argv, const std::vector<int>& wanted) const;
  Status run(const std::vector<std::string>& argv) const;
  Result<Json> run_json(const std::vector<std::string>& argv) const;

 private:
  void line(Style style, std::string_view text) const;

  Terminal terminal_;
  std::string directory_, kernels_, binaries_;
  DeviceInfo device_;
};

}  // namespace purlin::cli
