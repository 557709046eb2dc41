// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/sample_pipeline.h"

#include "base/random.h"
#include "base/text.h"
#include "cache/store/store.h"

namespace purlin::sample {

struct Pipeline::Prepared {
  std::unique_ptr<gpu::Kernel> kernel;
  std::vector<std::unique_ptr<gpu::Buffer>> buffers;
  gpu::Launch launch;
};

Pipeline::~Pipeline() = default;

namespace {

// The tuned config of a kernel, or its default and the reason.
Stage choose(const KernelSpec& spec, const ProblemShape& problem, const gpu::Device& device,
             cache::Store* store) {
  Stage stage{spec.name, default_config(spec), false, "no cache"};
  if (store == nullptr) return stage;
  const Result<cache::CacheKey> key = cache::make_key(spec, problem, device.info(), false);
  if (!key.is_ok()) {
    stage.explain = key.status().message();
    return stage;
  }
  cache::Lookup found = store->get(*key, problem);
  if (found.outcome == cache::Outcome::kExact || found.outcome == cache::Outcome::kBucket) {
    stage.config = found.entry->config;
    stage.tuned = true;
  }
  stage.explain = join(found.explain, "; ");
  return stage;
}

Status fill_input(gpu::Device& device, gpu::Buffer& buffer, Dtype dtype, std::size_t elements,
                  std::uint64_t seed) {
  Random random(seed);
  std::string data(elements * size_of(dtype), '\0');
  for (std::size_t i = 0; i < elements; ++i)
    store_element(dtype, data.data() + i * size_of(dtype), random.uniform(-1, 1));
  return device.write(buffer, 0, data.data(), data.size());
}

}  // namespace

Result<std::unique_ptr<Pipeline::Prepared>> Pipeline::prepare(gpu::Device& device,
                                                              const KernelSpec& spec,
                                                              const ProblemShape& problem,
                                                              const Config& config) {
  auto prepared = std::make_unique<Prepared>();
  const Scope scope = config_scope(spec, problem, config, device.info());
  const SourceText& source = spec.sources.at(std::string(device.language()));
  const gpu::CompileRequest request{source.file,    source.text, spec.entry,
                                    source.options, {},          config};
  PURLIN_ASSIGN(const gpu::Binary binary, device.compile(request));
  PURLIN_ASSIGN(prepared->kernel, device.load(binary));
  prepared->launch.kernel = prepared->kernel.get();
  PURLIN_ASSIGN(prepared->launch.shape, resolve_launch(spec.launch, scope, device.info()));
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    const Argument& argument = spec.arguments[i];
    gpu::KernelArgument bound;
    if (argument.role == Argument::Role::kScalar) {
      PURLIN_ASSIGN(const double value, argument.value.expression.evaluate_double(scope.lookup()));
      bound.scalar.resize(size_of(argument.dtype));
      store_element(argument.dtype, bound.scalar.data(), value);
    } else {
      std::int64_t elements = 1;
      for (const SpecExpression& extent : argument.shape) {
        PURLIN_ASSIGN(const std::int64_t value, extent.expression.evaluate_int(scope.lookup()));
        elements *= value;
      }
      bound.bytes = static_cast<std::size_t>(elements) * size_of(argument.dtype);
      PURLIN_ASSIGN(auto buffer, device.allocate(bound.bytes));
      const bool input =
          argument.role == Argument::Role::kInput || argument.role == Argument::Role::kInOut;
      if (input) {
        PURLIN_TRY(
            fill_input(device, *buffer, argument.dtype, static_cast<std::size_t>(elements), i + 1));
      } else {
        PURLIN_TRY(device.fill(*buffer, 0, 0, bound.bytes));
      }
      bound.buffer = buffer.get();
      prepared->buffers.push_back(std::move(buffer));
    }
    prepared->launch.arguments.push_back(std::move(bound));
  }
  return prepared;
}

Result<std::unique_ptr<Pipeline>> Pipeline::create(gpu::Device& device, const Options& options) {
  auto pipeline = std::unique_ptr<Pipeline>(new Pipeline);
  pipeline->device_ = &device;
  std::optional<cache::Store> store;
  if (options.use_cache) {
    const std::string directory =
        options.cache.empty() ? cache::Store::default_directory() : options.cache;
    PURLIN_ASSIGN(store, cache::Store::open(directory));
  }
  for (const std::string& file : options.spec_files) {
    PURLIN_ASSIGN(const KernelSpec spec, load_spec(file));
    if (spec.sources.count(std::string(device.language())) == 0)
      return error(Code::kInvalid, "{}: has no {} source", file, device.language());
    const bool has_preset = spec.presets.count(options.preset) > 0;
    PURLIN_ASSIGN(const ProblemShape problem,
                  resolve_shape(spec, has_preset ? options.preset : ""));
    Stage stage = choose(spec, problem, device, store ? &*store : nullptr);
    Result<std::unique_ptr<Prepared>> prepared = prepare(device, spec, problem, stage.config);
    if (!prepared.is_ok()) return prepared.status().with_context(spec.name);
    pipeline->stages_.push_back(std::move(stage));
    pipeline->prepared_.push_back(std::move(prepared).value());
  }
  return pipeline;
}

Status Pipeline::step() {
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    if (const Status status = device_->run(prepared_[i]->launch); !status.is_ok())
      return status.with_context(stages_[i].kernel);
  }
  return Status::ok();
}

}  // namespace purlin::sample
