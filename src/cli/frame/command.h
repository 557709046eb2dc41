// SPDX-License-Identifier: Apache-2.0
// Command: one verb of the command line, one file each (cli/VERB.cc). A verb with sub-verbs, such
// as `cache get`, is one Command per sub-verb.
//
// A verb declares its flags, then runs with them parsed. It writes data to Context::out and
// everything else through Context::log. A Status that is not ok is printed, with exit code 2.
#pragma once

#include "base/log.h"
#include "base/output/escaped.h"
#include "base/output/terminal.h"
#include "base/status.h"
#include "cli/frame/flags.h"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

// Exit codes of every verb.
constexpr int kExitOk = 0;
constexpr int kExitRegression = 1;
constexpr int kExitError = 2;
constexpr int kExitInconclusive = 3;

struct Context {
  std::FILE* out;     // data
  Terminal terminal;  // of `out`
  Terminal error_terminal;
  Log& log;
  bool quiet = false;
  // A text for people, or JSON: without what a terminal or a job's log would obey.
  void print(std::string_view text) const { write(shown_text(text, terminal.color())); }
  // Data in another format, such as CSV: only without control characters.
  void print_data(std::string_view text) const { write(shown_data(text)); }
  // Bytes, unchanged.
  void write(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), out); }
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;     // "tune", "cache get"
  virtual std::string_view summary() const = 0;  // one line
  // The description, examples and exit codes, for --help, the man page and the reference.
  virtual VerbText text() const { return {}; }
  virtual bool hidden() const { return false; }
  virtual void declare(Flags& flags) = 0;
  virtual Result<int> run(Context& context) = 0;
};

// Every verb, in the order --help lists them. Each make_… is defined in the verb's file.
std::vector<std::unique_ptr<Command>> all_commands();

// The texts of every verb that is not hidden, without the user's settings: they are the same on
// each machine.
Manual manual();

// The whole program: parses argv, runs, returns the exit code.
int run_cli(int argc, const char* const* argv);

}  // namespace purlin::cli
