// SPDX-License-Identifier: Apache-2.0
// The C interface of include/purlin/tuner.h over ProgramTuner.
#include "base/text.h"
#include "cache/store/store.h"
#include "gpu/launching.h"
#include "runtime/c_api/support.h"
#include "runtime/program_tuner.h"
#include "runtime/settings.h"

#include <algorithm>
#include <cstring>
#include <purlin/tuner.h>

using purlin::Config;
using purlin::EvaluationStatus;
using purlin::Result;
using purlin::Status;
using purlin::Value;
using purlin::runtime::copy_text;
using purlin::runtime::fail;
using purlin::runtime::guarded;
using purlin::runtime::ProgramTuner;
using purlin::runtime::text_or_empty;

struct purlin_tuner {
  ProgramTuner tuner;
};

namespace {

const purlin_config* handle(const Config* config) {
  return reinterpret_cast<const purlin_config*>(config);
}
const Config* config_of(const purlin_config* config) {
  return reinterpret_cast<const Config*>(config);
}
const Value* value_of(const purlin_config* config, const char* name) {
  return config == nullptr || name == nullptr ? nullptr : config_of(config)->find(name);
}

purlin_status done(const Status& status) { return status.is_ok() ? PURLIN_OK : fail(status); }

// Runs `body` on a tuner, when there is one.
template <class Body>
purlin_status on(purlin_tuner* tuner, const char* function, Body body) noexcept {
  if (tuner == nullptr)
    return guarded([&] {
      return fail(PURLIN_INVALID, (std::string(function) + ": the tuner is NULL").c_str());
    });
  return guarded([&] { return body(tuner->tuner); });
}

template <class Number>
purlin_status add_numbers(purlin_tuner* tuner, const char* function, const char* name,
                          const Number* values, size_t count, Number preset) {
  return on(tuner, function, [&](ProgramTuner& made) {
    if (name == nullptr || (values == nullptr && count > 0))
      return fail(PURLIN_INVALID, (std::string(function) + ": an argument is NULL").c_str());
    return done(made.add_parameter(name, std::vector<Value>(values, values + count), preset));
  });
}

EvaluationStatus status_of(purlin_rejection how) {
  switch (how) {
    case PURLIN_NO_COMPILE:
      return EvaluationStatus::kCompile;
    case PURLIN_NO_LAUNCH:
      return EvaluationStatus::kLaunch;
    case PURLIN_OUT_OF_TIME:
      return EvaluationStatus::kTimeout;
    case PURLIN_UNFIT:
      return EvaluationStatus::kInvalid;
    default:
      return EvaluationStatus::kWrong;
  }
}

// The device that an op is of, as far as entries name it.
Result<purlin::DeviceInfo> device_of(const purlin_op_desc* desc, const char* function) {
  if (desc == nullptr || !PURLIN_HAS(desc, purlin_op_desc, flags) || desc->device == nullptr)
    return purlin::error(purlin::Code::kInvalid,
                         "{}: set the desc to PURLIN_OP_DESC_INIT and give its device", function);
  const purlin_device& facts = *desc->device;
  if (!PURLIN_HAS(&facts, purlin_device, driver) || facts.backend == nullptr ||
      facts.arch == nullptr)
    return purlin::error(purlin::Code::kInvalid,
                         "{}: the device must state its backend and arch; purlin_cache_device "
                         "fills them in",
                         function);
  purlin::DeviceInfo device;
  device.backend = facts.backend;
  device.arch = facts.arch;
  device.name = text_or_empty(facts.model);
  device.toolkit = text_or_empty(facts.toolkit);
  device.driver = text_or_empty(facts.driver);
  return device;
}

std::string cache_directory(const char* directory) {
  const std::string path = text_or_empty(directory);
  return path.empty() ? purlin::cache::Store::default_directory() : path;
}

}  // namespace

purlin_status purlin_tuner_open(const purlin_tuner_desc* desc, purlin_tuner** tuner) {
  if (tuner != nullptr) *tuner = nullptr;
  if (desc == nullptr || tuner == nullptr)
    return fail(PURLIN_INVALID, "purlin_tuner_open: an argument is NULL");
  if (!PURLIN_HAS(desc, purlin_tuner_desc, finals_rounds))
    return fail(PURLIN_INVALID, "purlin_tuner_open: set the desc to PURLIN_TUNER_DESC_INIT first");
  if (desc->kernel == nullptr || *desc->kernel == '\0')
    return fail(PURLIN_INVALID, "purlin_tuner_open: the kernel must have a name");
  return guarded([&] {
    purlin::runtime::ProgramTunerOptions options;
    options.kernel = desc->kernel;
    options.op = text_or_empty(desc->op);
    if (desc->strategy != nullptr) options.strategy = desc->strategy;
    if (desc->budget != nullptr) options.budget = desc->budget;
    options.session = text_or_empty(desc->session);
    options.device = text_or_empty(desc->device);
    options.seed = desc->seed;
    options.warmups = desc->warmups;
    options.finals_rounds = desc->finals_rounds;
    if (PURLIN_HAS(desc, purlin_tuner_desc, lookahead))
      options.lookahead = static_cast<std::size_t>(std::clamp(desc->lookahead, 0, 1024));
    *tuner = new purlin_tuner{ProgramTuner(std::move(options))};
    return PURLIN_OK;
  });
}

void purlin_tuner_close(purlin_tuner* tuner) { delete tuner; }

purlin_status purlin_tuner_add_ints(purlin_tuner* tuner, const char* name, const int64_t* values,
                                    size_t count, int64_t preset) {
  return add_numbers<std::int64_t>(tuner, "purlin_tuner_add_ints", name, values, count, preset);
}

purlin_status purlin_tuner_add_doubles(purlin_tuner* tuner, const char* name, const double* values,
                                       size_t count, double preset) {
  return add_numbers<double>(tuner, "purlin_tuner_add_doubles", name, values, count, preset);
}

purlin_status purlin_tuner_add_texts(purlin_tuner* tuner, const char* name,
                                     const char* const* values, size_t count, const char* preset) {
  return on(tuner, "purlin_tuner_add_texts", [&](ProgramTuner& made) {
    std::vector<Value> texts;
    if (name == nullptr || preset == nullptr || (values == nullptr && count > 0))
      return fail(PURLIN_INVALID, "purlin_tuner_add_texts: an argument is NULL");
    for (size_t i = 0; i < count; ++i) {
      if (values[i] == nullptr)
        return fail(PURLIN_INVALID, "purlin_tuner_add_texts: a value is NULL");
      texts.emplace_back(std::string(values[i]));
    }
    return done(made.add_parameter(name, std::move(texts), std::string(preset)));
  });
}

purlin_status purlin_tuner_add_bool(purlin_tuner* tuner, const char* name, int preset) {
  return on(tuner, "purlin_tuner_add_bool", [&](ProgramTuner& made) {
    return done(made.add_parameter(text_or_empty(name), {false, true}, preset != 0));
  });
}

purlin_status purlin_tuner_add_constraint(purlin_tuner* tuner, const char* expression) {
  return on(tuner, "purlin_tuner_add_constraint", [&](ProgramTuner& made) {
    return done(made.add_constraint(text_or_empty(expression)));
  });
}

purlin_status purlin_tuner_add_dimension(purlin_tuner* tuner, const char* name, int64_t extent,
                                         const char* bucket) {
  return on(tuner, "purlin_tuner_add_dimension", [&](ProgramTuner& made) {
    return done(made.add_dimension(text_or_empty(name), extent, text_or_empty(bucket)));
  });
}

purlin_status purlin_tuner_start(purlin_tuner* tuner) {
  return on(tuner, "purlin_tuner_start", [](ProgramTuner& made) { return done(made.start()); });
}

purlin_status purlin_tuner_next(purlin_tuner* tuner, const purlin_config** config) {
  if (config != nullptr) *config = nullptr;
  return on(tuner, "purlin_tuner_next", [&](ProgramTuner& made) {
    if (config == nullptr) return fail(PURLIN_INVALID, "purlin_tuner_next: config is NULL");
    const Result<const Config*> next = made.next();
    if (!next.is_ok()) return fail(next.status());
    *config = handle(*next);
    return PURLIN_OK;
  });
}

purlin_status purlin_tuner_waited(purlin_tuner* tuner, double seconds) {
  return on(tuner, "purlin_tuner_waited",
            [&](ProgramTuner& made) { return done(made.waited(seconds)); });
}

purlin_status purlin_tuner_report(purlin_tuner* tuner, double time_ms) {
  return on(tuner, "purlin_tuner_report",
            [&](ProgramTuner& made) { return done(made.report(time_ms)); });
}

purlin_status purlin_tuner_reject(purlin_tuner* tuner, purlin_rejection how, const char* why) {
  return on(tuner, "purlin_tuner_reject", [&](ProgramTuner& made) {
    return done(made.reject(status_of(how), text_or_empty(why)));
  });
}

int purlin_tuner_is_over(const purlin_tuner* tuner) {
  return tuner != nullptr && tuner->tuner.over() ? 1 : 0;
}
const purlin_config* purlin_tuner_best(const purlin_tuner* tuner) {
  return tuner == nullptr || !tuner->tuner.started() ? nullptr : handle(&tuner->tuner.best());
}
double purlin_tuner_best_time_ms(const purlin_tuner* tuner) {
  return tuner == nullptr ? 0 : tuner->tuner.best_time_ms();
}
double purlin_tuner_default_time_ms(const purlin_tuner* tuner) {
  return tuner == nullptr ? 0 : tuner->tuner.default_time_ms();
}
uint64_t purlin_tuner_space_size(const purlin_tuner* tuner) {
  return tuner == nullptr ? 0 : tuner->tuner.space_size();
}
uint64_t purlin_tuner_evaluations(const purlin_tuner* tuner) {
  return tuner == nullptr ? 0 : tuner->tuner.evaluations();
}

purlin_status purlin_tuner_announced(purlin_tuner* tuner, const purlin_config** config) {
  if (config != nullptr) *config = nullptr;
  return on(tuner, "purlin_tuner_announced", [&](ProgramTuner& made) {
    if (config == nullptr) return fail(PURLIN_INVALID, "purlin_tuner_announced: config is NULL");
    *config = handle(made.announced());
    return PURLIN_OK;
  });
}

purlin_status purlin_tuner_transfer(purlin_tuner* tuner, const char* directory,
                                    const purlin_op_desc* desc) {
  return on(tuner, "purlin_tuner_transfer", [&](ProgramTuner& made) {
    const Result<purlin::DeviceInfo> device = device_of(desc, "purlin_tuner_transfer");
    if (!device.is_ok()) return fail(device.status());
    return done(made.transfer({cache_directory(directory), *device, text_or_empty(desc->dtype),
                               text_or_empty(desc->source_hash)}));
  });
}

purlin_status purlin_tuner_store(purlin_tuner* tuner, const char* directory,
                                 const purlin_op_desc* desc, int verified) {
  return on(tuner, "purlin_tuner_store", [&](ProgramTuner& made) {
    const Result<purlin::DeviceInfo> device = device_of(desc, "purlin_tuner_store");
    if (!device.is_ok()) return fail(device.status());
    Result<purlin::cache::Entry> entry = made.entry(
        *device, text_or_empty(desc->dtype), text_or_empty(desc->source_hash), verified != 0);
    if (!entry.is_ok()) return fail(entry.status());
    if (desc->op != nullptr) entry->key.op = desc->op;
    if (desc->kernel != nullptr) entry->key.kernel = desc->kernel;
    if (desc->policy != nullptr) entry->key.policy = desc->policy;
    if (PURLIN_HAS(desc, purlin_op_desc, layout)) entry->key.layout = text_or_empty(desc->layout);
    auto store = purlin::cache::Store::open(cache_directory(directory));
    if (!store.is_ok()) return fail(store.status());
    const auto stored = made.store(*store, *entry);
    if (!stored.is_ok()) return fail(stored.status());
    purlin::runtime::RuntimeLog log(purlin::runtime::Settings::from_environment());
    for (const std::string& note : stored->notes()) log.info("{}: {}", entry->key.kernel, note);
    return done(made.keep_evaluations());
  });
}

int64_t purlin_config_int(const purlin_config* config, const char* name, int64_t fallback) {
  const Value* value = value_of(config, name);
  if (value == nullptr) return fallback;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  return fallback;
}

double purlin_config_double(const purlin_config* config, const char* name, double fallback) {
  const Value* value = value_of(config, name);
  if (value == nullptr || std::holds_alternative<std::string>(*value)) return fallback;
  return purlin::to_double(*value).value();
}

const char* purlin_config_text(const purlin_config* config, const char* name,
                               const char* fallback) {
  const Value* value = value_of(config, name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? fallback : text->c_str();
}

size_t purlin_config_options(const purlin_config* config, char* buffer, size_t size) {
  if (config == nullptr) return 0;
  size_t length = 0;
  const purlin_status status = guarded([&] {
    length =
        copy_text(purlin::join(purlin::gpu::macro_options(*config_of(config)), " "), buffer, size);
    return PURLIN_OK;
  });
  return status == PURLIN_OK ? length : 0;
}
