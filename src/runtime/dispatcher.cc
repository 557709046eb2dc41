// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatcher.h"

#include "backlog/file.h"
#include "base/files.h"
#include "base/text.h"
#include "gpu/launching.h"

#include <cmath>
#include <cstring>
#include <unistd.h>

namespace purlin::runtime {
namespace {

constexpr std::size_t kMaxArguments = 64;

OpOptions op_options(const KernelSpec& spec, const gpu::AppContext& device,
                     const DispatcherOptions& options, const Settings& settings) {
  OpOptions op;
  const DeviceInfo& info = device.info();
  op.wanted.op = spec.op;
  op.wanted.kernel = spec.name;
  op.wanted.dtype = spec.dtype_text();
  op.wanted.backend = info.backend;
  op.wanted.arch = info.arch;
  op.wanted.device = info.name;
  op.wanted.toolkit = info.toolkit;
  op.wanted.driver = info.driver;
  op.wanted.source_hash = spec.source_hash(device.language());
  op.wanted.policy = options.policy;
  op.wanted.layout = spec.layout_text();
  for (const auto& [name, extent] : spec.problem.items()) op.dimensions.push_back(name);
  op.allow_transferred = options.allow_transferred;
  op.serve_stale = settings.serve_stale.value_or(!options.refuse_stale);
  op.spec = spec.file.empty() ? "" : absolute_path(spec.file);
  op.rules = cache::bucket_rules(spec, spec.problem).value_or({});
  return op;
}

// The bytes of a scalar as the kernel takes it.
std::uint64_t scalar_bytes(Dtype dtype, const Value& value) {
  std::uint64_t bytes = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value); integer && !is_floating(dtype))
    bytes = static_cast<std::uint64_t>(*integer);  // little-endian: the low bytes come first
  else
    store_element(dtype, &bytes, to_double(value).value_or(0));
  return bytes;
}

}  // namespace

Dispatcher::Dispatcher(std::shared_ptr<CacheSession> session, KernelSpec spec,
                       std::unique_ptr<gpu::AppContext> device, DispatcherOptions options)
    : session_(std::move(session)),
      spec_(std::move(spec)),
      device_(std::move(device)),
      options_(std::move(options)),
      binaries_(options_.binaries.empty() ? join_path(user_cache_directory(), "binaries")
                                          : options_.binaries),
      default_(default_config(spec_)),
      shadow_(session_->settings().shadow_every.value_or(options_.shadow_every),
              options_.seed != 0 ? options_.seed
                                 : static_cast<std::uint64_t>(system_clock().wall_ns()) ^
                                       (static_cast<std::uint64_t>(::getpid()) << 32)),
      plans_(spec_.problem.items().size()) {
  for (const auto& [name, extent] : spec_.problem.items()) dimensions_.push_back(name);
  for (const Argument& argument : spec_.arguments) {
    sizes_.push_back(argument.role == Argument::Role::kScalar ? size_of(argument.dtype) : 0);
    idempotent_ = idempotent_ && argument.role != Argument::Role::kInOut;
  }
}

Result<std::unique_ptr<Dispatcher>> Dispatcher::open(std::shared_ptr<CacheSession> session,
                                                     KernelSpec spec,
                                                     std::unique_ptr<gpu::AppContext> device,
                                                     DispatcherOptions options) {
  if (spec.library)
    return error(Code::kInvalid,
                 "{}: a dispatcher launches kernels, and this is {}'s; purlin_cublaslt_algo finds "
                 "the algorithm that the program passes to the library",
                 spec.file, spec.library->library);
  if (spec.sources.find(std::string(device->language())) == spec.sources.end())
    return error(Code::kInvalid, "{}: there is no [kernel.{}], and {} compiles nothing else",
                 spec.file, device->language(), device->info().id);
  for (const Argument& argument : spec.arguments)
    if (argument.tensor_map)
      return error(Code::kInvalid,
                   "{}: '{}' is a tensor map, which a dispatcher does not make; look the config up "
                   "(purlin_lookup), encode the map for its box and launch the kernel yourself",
                   spec.file, argument.name);
  if (spec.problem.items().size() > cache::kMaxDimensions)
    return error(Code::kInvalid, "{}: {} dimensions; a dispatcher takes up to {}", spec.file,
                 spec.problem.items().size(), cache::kMaxDimensions);
  if (spec.arguments.size() > kMaxArguments)
    return error(Code::kInvalid, "{}: {} arguments; a dispatcher takes up to {}", spec.file,
                 spec.arguments.size(), kMaxArguments);
  std::unique_ptr<Dispatcher> dispatcher(
      new Dispatcher(std::move(session), std::move(spec), std::move(device), std::move(options)));
  Dispatcher& self = *dispatcher;
  self.op_ = std::make_unique<Op>(
      self.session_,
      op_options(self.spec_, *self.device_, self.options_, self.session_->settings()));
  {
    // What is served when all else fails must be there before anything is.
    const std::lock_guard<std::mutex> lock(self.mutex_);
    const Variant* fallback = self.variant(self.default_, true);
    if (!fallback->problem.is_ok())
      return fallback->problem.with_context(self.spec_.name + ": the default config");
  }
  if (self.shadow_.enabled() && !self.idempotent_)
    self.session_->log().warn("{}: not shadowed: it changes an argument in place", self.spec_.name);
  self.session_->attach(self);
  return dispatcher;
}

Dispatcher::~Dispatcher() {
  session_->detach(*this);
  static_cast<void>(shadow_.poll());
}

ProblemShape Dispatcher::problem_of(const std::int64_t* extents) const {
  ProblemShape problem;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) problem.set(dimensions_[i], extents[i]);
  return problem;
}

Status Dispatcher::build(Variant& variant) {
  const SourceText& source = spec_.sources.find(std::string(device_->language()))->second;
  gpu::CompileRequest request =
      measure::compile_request(spec_, source, spec_.entry, variant.config);
  request.compiler_version = device_->compiler_version(request);
  const std::string key = measure::BinaryCache::key(device_->info(), request);
  std::optional<gpu::Binary> binary;
  if (!key.empty()) binary = binaries_.get(key);
  if (binary) {
    auto kernel = device_->load(*binary, sizes_);
    if (kernel.is_ok()) {
      variant.kernel = std::move(kernel).value();
      return Status::ok();
    }
    session_->log().warn("a kept binary is compiled again: {}", kernel.status().message());
  }
  const std::int64_t start = system_clock().monotonic_ns();
  PURLIN_ASSIGN(const gpu::Binary made, device_->compile(request));
  session_->log().info("{}: compiled {} in {}", spec_.name, variant.options,
                       format_ns(static_cast<double>(system_clock().monotonic_ns() - start)));
  // A cache that cannot be written costs time, not the launch.
  if (!key.empty()) static_cast<void>(binaries_.put(key, made));
  PURLIN_ASSIGN(variant.kernel, device_->load(made, sizes_));
  return Status::ok();
}

const Variant* Dispatcher::variant(const Config& config, bool may_compile) {
  const std::string name = config.text();
  if (const auto found = variants_.find(name); found != variants_.end()) return found->second.get();
  if (!may_compile) return nullptr;
  auto made = std::make_unique<Variant>();
  made->config = config;
  made->options = join(gpu::macro_options(config), " ");
  made->problem = build(*made);
  // Kept also when it failed: it would fail again.
  return variants_.emplace(name, std::move(made)).first->second.get();
}

// What it takes to launch a variant at a shape, or why it cannot be.
Status Dispatcher::fill(Choice& choice, const Variant& variant, const Scope& scope) const {
  PURLIN_TRY(variant.problem);
  PURLIN_TRY(check_constraints(spec_, scope));
  PURLIN_ASSIGN(choice.shape, resolve_launch(spec_.launch, scope, device_->info()));
  PURLIN_TRY(device_->admit(*variant.kernel, choice.shape));
  choice.scalars.clear();
  for (std::size_t i = 0; i < spec_.arguments.size(); ++i) {
    const Argument& argument = spec_.arguments[i];
    if (argument.role != Argument::Role::kScalar) continue;
    bool of_config = false;
    for (const std::string& name : argument.value.expression.names())
      of_config = of_config || variant.config.find(name) != nullptr;
    if (!of_config) continue;
    const Result<Value> value = argument.value.expression.evaluate(scope.lookup());
    if (!value.is_ok()) return value.status().with_context(argument.value.where);
    choice.scalars.emplace_back(i, scalar_bytes(argument.dtype, *value));
  }
  choice.variant = &variant;
  return Status::ok();
}

Result<std::vector<Choice::BufferUse>> Dispatcher::buffer_uses(const Scope& scope) const {
  std::vector<Choice::BufferUse> uses;
  for (const Argument& argument : spec_.arguments) {
    Choice::BufferUse use;
    if (argument.role != Argument::Role::kScalar) {
      double bytes = static_cast<double>(size_of(argument.dtype));
      for (const SpecExpression& extent : argument.shape) {
        PURLIN_ASSIGN(const double value, extent.expression.evaluate_double(scope.lookup()));
        bytes *= value;
      }
      if (!(bytes >= 1 && bytes < 1e15))
        return error(Code::kInvalid, "{}: a buffer of {} bytes", argument.name, bytes);
      use.bytes = static_cast<std::size_t>(bytes);
      use.written = argument.role != Argument::Role::kInput;
    }
    uses.push_back(use);
  }
  return uses;
}

void Dispatcher::add_rivals(Choice& choice, const ProblemShape& problem, bool may_compile) {
  const cache::IndexedEntry& entry = *choice.entry;
  const auto uses =
      buffer_uses(config_scope(spec_, problem, choice.variant->config, device_->info()));
  if (!uses.is_ok()) return;
  for (const Config* config : {&entry.runner_up, static_cast<const Config*>(&default_)}) {
    if (config->empty() || *config == choice.variant->config) continue;
    const Variant* rival = variant(*config, may_compile);
    if (rival == nullptr) continue;
    const Scope scope = config_scope(spec_, problem, *config, device_->info());
    Choice launched;
    if (!fill(launched, *rival, scope).is_ok() || !launched.scalars.empty()) continue;
    // The program's buffers are known to be large enough for what it launches, not for the rival.
    const auto rival_uses = buffer_uses(scope);
    bool fits = rival_uses.is_ok();
    for (std::size_t i = 0; fits && i < uses->size(); ++i)
      fits = (*rival_uses)[i].bytes <= (*uses)[i].bytes;
    if (!fits) continue;
    choice.rivals.push_back(
        {rival, launched.shape, shadow_.duel(entry.id, entry.record, choice.variant, rival)});
  }
  if (!choice.rivals.empty()) choice.buffers = *uses;
}

Choice Dispatcher::make_choice(const std::int64_t* extents, bool may_compile, bool& provisional) {
  provisional = false;
  const ProblemShape problem = problem_of(extents);
  const DeviceInfo& info = device_->info();
  const cache::OpIndex::Hit hit = op_->peek(extents);
  Choice choice;
  choice.outcome = hit.outcome;
  choice.entry = hit.entry;
  if (hit.entry != nullptr) {
    const auto defeated = defeated_.find(hit.entry->record);
    choice.demoted = defeated != defeated_.end();
    const Config& config = choice.demoted ? defeated->second : hit.entry->config;
    const Variant* tuned = variant(config, may_compile);
    if (tuned == nullptr) {
      choice.reason = "it is not compiled yet";
      provisional = true;
    } else if (const Status status =
                   fill(choice, *tuned, config_scope(spec_, problem, config, info));
               !status.is_ok()) {
      choice.reason = status.message();
    } else {
      if (shadow_.enabled() && idempotent_ && choice.scalars.empty())
        add_rivals(choice, problem, may_compile);
      return choice;
    }
  }
  choice.problem =
      fill(choice, *variant(default_, false), config_scope(spec_, problem, default_, info));
  if (!choice.problem.is_ok()) {
    choice.variant = nullptr;
    choice.problem = choice.problem.with_context(
        fmt::format("{} at {}: the default config", spec_.name, problem.text()));
  }
  return choice;
}

void Dispatcher::log_choice(const Choice& choice, const ProblemShape& problem) const {
  RuntimeLog& log = session_->log();
  if (!log.enabled(Level::kInfo)) return;
  const std::string served =
      choice.variant == nullptr ? choice.problem.message() : choice.variant->options;
  const std::string what =
      choice.entry == nullptr ? "no entry, default config"
      : choice.demoted        ? "entry " + choice.entry->id + " was demoted"
      : choice.reason.empty()
          ? fmt::format("{}, entry {}", cache::outcome_name(choice.outcome), choice.entry->id)
          : fmt::format("entry {} not served ({}), default config", choice.entry->id,
                        choice.reason);
  log.info("{} {}: {}: {}, {}", spec_.name, problem.text(), what, served, to_text(choice.shape));
}

// Brings a plan up to date. With the mutex held.
void Dispatcher::settle(Plan& plan, const std::int64_t* extents, bool may_compile) {
  // Acquired: what the index is asked below must not be older than the generation it is noted for.
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  bool provisional = false;
  auto choice = std::make_unique<Choice>(make_choice(extents, may_compile, provisional));
  const Choice* before = plan.choice.load(std::memory_order_relaxed);
  if (before == nullptr || !before->same_as(*choice)) log_choice(*choice, problem_of(extents));
  plans_.choose(plan, std::move(choice));
  // A choice that was made while nothing could be compiled is made again; not so where launches
  // never compile: prepare() asks for itself.
  const bool again = provisional && !options_.compile_ahead_only;
  plan.generation.store(again ? 0 : generation, std::memory_order_release);
}

Status Dispatcher::dispatch_unplanned(const std::int64_t* extents, const gpu::AppLaunch& launch) {
  const bool capturing = device_->capturing(launch.queue);
  if (!capturing) session_->flush_if_due();
  std::unique_lock<std::mutex> lock(mutex_);
  const bool may_compile = !capturing && !options_.compile_ahead_only;
  Plan* plan = plans_.find(extents);
  if (plan == nullptr) plan = plans_.add(extents);
  if (plan == nullptr) {
    // More shapes than are planned for: each launch of the rest works it out again.
    bool provisional = false;
    const Choice choice = make_choice(extents, may_compile, provisional);
    return choice.variant == nullptr ? choice.problem : run(choice, launch);
  }
  if (plan->generation.load(std::memory_order_relaxed) !=
      generation_.load(std::memory_order_relaxed))
    settle(*plan, extents, may_compile);
  const Choice& choice = *plan->choice.load(std::memory_order_relaxed);
  plan->launches.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  return choice.variant == nullptr ? choice.problem : run(choice, launch);
}

Status Dispatcher::prepare(const std::int64_t* extents) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Plan* plan = plans_.find(extents);
  if (plan == nullptr) plan = plans_.add(extents);
  if (plan == nullptr)
    return error(Code::kUnavailable, "{} shapes are planned already; no more are kept",
                 PlanTable::kMaxPlans);
  settle(*plan, extents, true);
  return plan->choice.load(std::memory_order_relaxed)->problem;
}

Choice Dispatcher::choice(const std::int64_t* extents) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Plan* plan = plans_.find(extents);
  if (plan != nullptr && plan->generation.load(std::memory_order_relaxed) ==
                             generation_.load(std::memory_order_relaxed))
    return *plan->choice.load(std::memory_order_relaxed);
  bool provisional = false;
  return make_choice(extents, false, provisional);
}

Status Dispatcher::run_with_scalars(const Choice& choice, const gpu::AppLaunch& launch) {
  void* values[kMaxArguments];
  std::uint64_t scalars[kMaxArguments];
  std::copy_n(launch.values, launch.count, values);
  for (const auto& [index, bytes] : choice.scalars) {
    scalars[index] = bytes;
    values[index] = &scalars[index];
  }
  gpu::AppLaunch patched = launch;
  patched.values = values;
  const int code = device_->launch({choice.variant->kernel.get(), &choice.shape}, patched);
  return code == 0 ? Status::ok() : device_->failure(code, choice.shape);
}

Status Dispatcher::launch_shadowed(const Choice& choice, const gpu::AppLaunch& launch) {
  if (choice.rivals.empty() || device_->capturing(launch.queue)) return run(choice, launch);
  const int code = shadow_.launch(*device_, choice, launch, choice.entry->problem.text());
  act_on(shadow_.poll());
  return code == 0 ? Status::ok() : device_->failure(code, choice.shape);
}

void Dispatcher::act_on(const std::vector<Defeat>& defeats) {
  for (const Defeat& defeat : defeats) {
    const std::string reason = fmt::format("{:.3f}x the time of {} on live launches ({} samples)",
                                           defeat.ratio, defeat.winner->options, defeat.samples);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      defeated_[defeat.record] = defeat.winner->config;
      generation_.fetch_add(1, std::memory_order_release);
    }
    session_->log().warn("{}: entry {} is demoted: {}", spec_.name, defeat.entry, reason);
    const Status kept = op_->demote(defeat.record, defeat.shape, defeat.ratio, reason);
    // In this process the winner is out either way.
    if (!kept.is_ok()) session_->log().warn("not kept for others: {}", kept.message());
  }
}

void Dispatcher::update(const cache::Layers&) {
  // The index is the op's; plans are made again as they are launched.
  generation_.fetch_add(1, std::memory_order_release);
}

void Dispatcher::collect(std::vector<backlog::WorkRow>& rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& plan : plans_.plans()) {
    const std::uint64_t launches = plan->launches.load(std::memory_order_relaxed);
    const Choice* choice = plan->choice.load(std::memory_order_relaxed);
    if (launches == plan->reported || choice == nullptr) continue;
    backlog::WorkRow row = op_->row(plan->extents, choice->entry);
    (choice->entry == nullptr                      ? row.misses
     : choice->entry->match == cache::Match::kSame ? row.hits
                                                   : row.stale) = launches - plan->reported;
    plan->reported = launches;
    rows.push_back(std::move(row));
  }
}

}  // namespace purlin::runtime
