// SPDX-License-Identifier: Apache-2.0
// Purlin's C++ interface for programs that tune their own kernel: a thin layer over tuner.h. C++17,
// header only.
//
//   purlin::Tuner tuner({"scale"});
//   tuner.parameter("BLOCK", {64, 128, 256}, 128).parameter("UNROLL", {1, 2, 4}, 1);
//   tuner.constraint("BLOCK * UNROLL <= 1024");
//   tuner.start();
//   for (auto& batch : batches)
//     tuner.call([&](const purlin::TuningConfig& config) { return scale_ms(batch, config); },
//                [&](const purlin::TuningConfig&) { return is_right(batch); });
//
// The kernel is a callable that runs it once with a config and returns milliseconds by the device's
// clock; it throws purlin::Rejected when that config cannot run. Thread-safety: a Tuner belongs to
// one thread at a time. Failure: purlin::Error.
#pragma once

#include <cstdint>
#include <memory>
#include <purlin/purlin.hpp>
#include <purlin/tuner.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace purlin {

// One assignment of the parameters. Refers to its Tuner: good for the run it was given to.
class TuningConfig {
 public:
  explicit TuningConfig(const purlin_config* config) : config_(config) {}
  std::int64_t integer(const char* name, std::int64_t fallback = 0) const noexcept {
    return purlin_config_int(config_, name, fallback);
  }
  double real(const char* name, double fallback = 0) const noexcept {
    return purlin_config_double(config_, name, fallback);
  }
  const char* text(const char* name, const char* fallback = "") const noexcept {
    return purlin_config_text(config_, name, fallback);
  }
  bool flag(const char* name, bool fallback = false) const noexcept {
    return purlin_config_int(config_, name, fallback ? 1 : 0) != 0;
  }
  // "-DBLOCK=64 -DUNROLL=4"
  std::string options() const {
    std::string text(purlin_config_options(config_, nullptr, 0), '\0');
    purlin_config_options(config_, text.data(), text.size() + 1);
    return text;
  }
  const purlin_config* handle() const noexcept { return config_; }

 private:
  const purlin_config* config_;
};

// Thrown by a program's kernel for a config that cannot run.
class Rejected : public std::runtime_error {
 public:
  explicit Rejected(const std::string& why, purlin_rejection how = PURLIN_NO_LAUNCH)
      : std::runtime_error(why), how_(how) {}
  purlin_rejection how() const noexcept { return how_; }

 private:
  purlin_rejection how_;
};

struct TunerOptions {
  std::string kernel;
  std::string op, strategy, budget, session, device;  // "" = as in tuner.h
  std::uint64_t seed = 1;
  int warmups = 1, finals_rounds = 3;
  int lookahead = 0;  // configs that announced() names before their runs, at most
};

class Tuner {
 public:
  explicit Tuner(const TunerOptions& options) : tuner_(nullptr, purlin_tuner_close) {
    const auto stated = [](const std::string& text) {
      return text.empty() ? nullptr : text.c_str();
    };
    purlin_tuner_desc desc = PURLIN_TUNER_DESC_INIT;
    desc.kernel = options.kernel.c_str();
    desc.op = stated(options.op);
    desc.strategy = stated(options.strategy);
    desc.budget = stated(options.budget);
    desc.session = stated(options.session);
    desc.device = stated(options.device);
    desc.seed = options.seed;
    desc.warmups = options.warmups;
    desc.finals_rounds = options.finals_rounds;
    desc.lookahead = options.lookahead;
    purlin_tuner* opened = nullptr;
    check(purlin_tuner_open(&desc, &opened));
    tuner_.reset(opened);
  }

  Tuner& parameter(const std::string& name, const std::vector<std::int64_t>& values,
                   std::int64_t preset) {
    check(purlin_tuner_add_ints(handle(), name.c_str(), values.data(), values.size(), preset));
    return *this;
  }
  Tuner& real_parameter(const std::string& name, const std::vector<double>& values, double preset) {
    check(purlin_tuner_add_doubles(handle(), name.c_str(), values.data(), values.size(), preset));
    return *this;
  }
  Tuner& text_parameter(const std::string& name, const std::vector<std::string>& values,
                        const std::string& preset) {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    check(
        purlin_tuner_add_texts(handle(), name.c_str(), texts.data(), texts.size(), preset.c_str()));
    return *this;
  }
  Tuner& flag_parameter(const std::string& name, bool preset) {
    check(purlin_tuner_add_bool(handle(), name.c_str(), preset ? 1 : 0));
    return *this;
  }
  Tuner& constraint(const std::string& expression) {
    check(purlin_tuner_add_constraint(handle(), expression.c_str()));
    return *this;
  }
  Tuner& dimension(const std::string& name, std::int64_t extent,
                   const std::string& bucket = "exact") {
    check(purlin_tuner_add_dimension(handle(), name.c_str(), extent, bucket.c_str()));
    return *this;
  }
  // Starts from results of this kernel in a cache; see purlin_tuner_transfer.
  Tuner& transfer(const std::string& directory, const purlin_op_desc& desc) {
    check(purlin_tuner_transfer(handle(), directory.empty() ? nullptr : directory.c_str(), &desc));
    return *this;
  }
  void start() { check(purlin_tuner_start(handle())); }

  // Runs the program's kernel once: the next candidate while there is budget, the winner then. When
  // `right` says that a candidate's output is wrong, or the kernel throws Rejected, the candidate
  // is out and the best one runs in its place, so that the output is right when call() returns. A
  // kernel that changes its inputs must put them back itself. Rejected is thrown on where the
  // default or the winner cannot run.
  template <class Kernel, class Right>
  void call(Kernel&& kernel, Right&& right) {
    const TuningConfig config = next();
    if (over()) {
      kernel(config);
      return;
    }
    std::string why = "its output differs from the reference";
    purlin_rejection how = PURLIN_WRONG;
    try {
      const double time_ms = kernel(config);
      if (right(config)) {
        report(time_ms);
        return;
      }
    } catch (const Rejected& rejected) {
      why = rejected.what();
      how = rejected.how();
    }
    reject(how, why);
    kernel(best());
  }
  template <class Kernel>
  void call(Kernel&& kernel) {
    call(kernel, [](const TuningConfig&) { return true; });
  }
  // Calls until it is over; the winner.
  template <class Kernel, class Right>
  TuningConfig tune(Kernel&& kernel, Right&& right) {
    while (!over()) call(kernel, right);
    return best();
  }
  template <class Kernel>
  TuningConfig tune(Kernel&& kernel) {
    return tune(kernel, [](const TuningConfig&) { return true; });
  }

  // The steps of call(), for programs with their own loop.
  TuningConfig next() {
    const purlin_config* config = nullptr;
    check(purlin_tuner_next(handle(), &config));
    return TuningConfig(config);
  }
  // A config of a later run, to compile ahead; its handle() is NULL without one. Good until the
  // next call.
  TuningConfig announced() {
    const purlin_config* config = nullptr;
    check(purlin_tuner_announced(handle(), &config));
    return TuningConfig(config);
  }
  // How long the program waited for the compilation of the config that it is to run.
  void waited(double seconds) { check(purlin_tuner_waited(handle(), seconds)); }
  void report(double time_ms) { check(purlin_tuner_report(handle(), time_ms)); }
  void reject(purlin_rejection how, const std::string& why) {
    check(purlin_tuner_reject(handle(), how, why.c_str()));
  }

  bool over() const noexcept { return purlin_tuner_is_over(handle()) != 0; }
  TuningConfig best() const noexcept { return TuningConfig(purlin_tuner_best(handle())); }
  double best_time_ms() const noexcept { return purlin_tuner_best_time_ms(handle()); }
  double default_time_ms() const noexcept { return purlin_tuner_default_time_ms(handle()); }
  std::uint64_t space_size() const noexcept { return purlin_tuner_space_size(handle()); }
  std::uint64_t evaluations() const noexcept { return purlin_tuner_evaluations(handle()); }

  // Keeps the winner where lookups of any program find it; see purlin_tuner_store.
  void store(const std::string& directory, const purlin_op_desc& desc, bool verified) {
    check(purlin_tuner_store(handle(), directory.empty() ? nullptr : directory.c_str(), &desc,
                             verified ? 1 : 0));
  }
  purlin_tuner* handle() const noexcept { return tuner_.get(); }

 private:
  static void check(purlin_status status) {
    if (status != PURLIN_OK) throw Error(status);
  }
  std::unique_ptr<purlin_tuner, void (*)(purlin_tuner*)> tuner_;
};

}  // namespace purlin
