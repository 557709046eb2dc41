// SPDX-License-Identifier: Apache-2.0
// libpurlin: the dispatcher of include/purlin/purlin.h.
#include "runtime/c_api/support.h"
#include "runtime/dispatcher.h"

#include <algorithm>
#include <cstring>

using purlin::Code;
using purlin::error;
using purlin::Result;
using purlin::Status;
using purlin::runtime::CacheSession;
using purlin::runtime::Choice;
using purlin::runtime::Dispatcher;
using purlin::runtime::fail;
using purlin::runtime::guarded;
using purlin::runtime::text_or_empty;

struct purlin_dispatcher {
  std::shared_ptr<CacheSession> session;
  std::unique_ptr<Dispatcher> dispatcher;
};

namespace {

Result<purlin::KernelSpec> spec_of(const purlin_dispatcher_desc& desc) {
  const std::string name = text_or_empty(desc.spec);
  if (desc.spec_text == nullptr) return purlin::load_spec(name);
  return purlin::parse_spec(
      desc.spec_text, name, [&](const std::string& path) -> Result<std::string> {
        // The reader is given paths relative to the spec's own folder, where it has one.
        for (std::size_t i = 0; i < desc.source_count; ++i) {
          const purlin_source& source = desc.sources[i];
          if (source.path == nullptr || source.text == nullptr) continue;
          const std::string_view given = source.path;
          if (path == given ||
              (path.size() > given.size() &&
               path.compare(path.size() - given.size(), given.size(), given) == 0 &&
               path[path.size() - given.size() - 1] == '/'))
            return std::string(source.text);
        }
        return error(Code::kNotFound, "'{}' is not among the {} sources given", path,
                     desc.source_count);
      });
}

Result<std::unique_ptr<purlin::gpu::AppContext>> app_context_of(
    const purlin_dispatcher_desc& desc) {
  const std::string backend = desc.backend;
  if (backend == "cuda") return purlin::gpu::open_cuda_app_context();
  if (backend == "opencl") return purlin::gpu::open_opencl_app_context(desc.context, desc.device);
  return error(Code::kInvalid, "backend '{}' is neither cuda nor opencl", backend);
}

bool shape_fits(const purlin_dispatcher* dispatcher, const int64_t* extents, size_t count) {
  return dispatcher != nullptr && extents != nullptr &&
         count == dispatcher->dispatcher->dimensions().size();
}

purlin_status wrong_shape(const char* where, const purlin_dispatcher* dispatcher,
                          size_t count) noexcept {
  return guarded([&] {
    if (dispatcher == nullptr) return fail(PURLIN_INVALID, "the dispatcher is NULL");
    return fail(error(Code::kInvalid, "{}: {} extents; the kernel's shape has {}", where, count,
                      dispatcher->dispatcher->dimensions().size()));
  });
}

}  // namespace

purlin_status purlin_dispatcher_open(purlin_cache* cache, const purlin_dispatcher_desc* desc,
                                     purlin_dispatcher** dispatcher) {
  if (dispatcher != nullptr) *dispatcher = nullptr;
  if (cache == nullptr || desc == nullptr || dispatcher == nullptr)
    return fail(PURLIN_INVALID, "purlin_dispatcher_open: an argument is NULL");
  if (!PURLIN_HAS(desc, purlin_dispatcher_desc, shadow_interval))
    return fail(PURLIN_INVALID,
                "purlin_dispatcher_open: set the desc to PURLIN_DISPATCHER_DESC_INIT first");
  if (desc->backend == nullptr || (desc->spec == nullptr && desc->spec_text == nullptr) ||
      (desc->source_count > 0 && desc->sources == nullptr))
    return fail(PURLIN_INVALID,
                "purlin_dispatcher_open: the backend and a spec, or its text and sources, must be "
                "given");
  return guarded([&]() -> purlin_status {
    auto spec = spec_of(*desc);
    if (!spec.is_ok()) return fail(spec.status());
    auto device = app_context_of(*desc);
    if (!device.is_ok()) return fail(device.status());
    purlin::runtime::DispatcherOptions options;
    options.binaries = text_or_empty(desc->binaries);
    options.policy = text_or_empty(desc->policy);
    options.compile_ahead_only = (desc->flags & PURLIN_COMPILE_AHEAD_ONLY) != 0;
    options.allow_transferred = (desc->flags & PURLIN_ALLOW_TRANSFERRED) != 0;
    options.refuse_stale = (desc->flags & PURLIN_REFUSE_STALE) != 0;
    options.shadow_every = static_cast<int>(std::min(desc->shadow_interval, 1'000'000'000u));
    auto opened = Dispatcher::open(cache->session, std::move(spec).value(),
                                   std::move(device).value(), std::move(options));
    if (!opened.is_ok()) return fail(opened.status());
    *dispatcher = new purlin_dispatcher{cache->session, std::move(opened).value()};
    return PURLIN_OK;
  });
}

void purlin_dispatcher_close(purlin_dispatcher* dispatcher) { delete dispatcher; }

size_t purlin_dispatcher_dimension_count(const purlin_dispatcher* dispatcher) {
  return dispatcher == nullptr ? 0 : dispatcher->dispatcher->dimensions().size();
}

const char* purlin_dispatcher_dimension(const purlin_dispatcher* dispatcher, size_t index) {
  if (index >= purlin_dispatcher_dimension_count(dispatcher)) return "";
  return dispatcher->dispatcher->dimensions()[index].c_str();
}

size_t purlin_dispatcher_argument_count(const purlin_dispatcher* dispatcher) {
  return dispatcher == nullptr ? 0 : dispatcher->dispatcher->arguments().size();
}

const char* purlin_dispatcher_argument(const purlin_dispatcher* dispatcher, size_t index) {
  if (index >= purlin_dispatcher_argument_count(dispatcher)) return "";
  return dispatcher->dispatcher->arguments()[index].name.c_str();
}

purlin_status purlin_prepare(purlin_dispatcher* dispatcher, const int64_t* extents, size_t count) {
  if (!shape_fits(dispatcher, extents, count))
    return wrong_shape("purlin_prepare", dispatcher, count);
  return guarded([&]() -> purlin_status {
    const Status status = dispatcher->dispatcher->prepare(extents);
    return status.is_ok() ? PURLIN_OK : fail(status);
  });
}

purlin_status purlin_dispatch(purlin_dispatcher* dispatcher, const purlin_launch* launch) {
  if (launch == nullptr || !PURLIN_HAS(launch, purlin_launch, event))
    return fail(PURLIN_INVALID, "purlin_dispatch: set the launch to PURLIN_LAUNCH_INIT first");
  if (!shape_fits(dispatcher, launch->extents, launch->extent_count))
    return wrong_shape("purlin_dispatch", dispatcher, launch->extent_count);
  if (launch->arguments == nullptr ||
      launch->argument_count != dispatcher->dispatcher->arguments().size())
    return fail(PURLIN_INVALID,
                "purlin_dispatch: as many arguments must be given as the spec has "
                "(purlin_dispatcher_argument_count)");
  return guarded([&]() -> purlin_status {
    const Status status = dispatcher->dispatcher->dispatch(
        launch->extents, {launch->queue, launch->arguments, launch->argument_count,
                          launch->wait_list, launch->wait_count, launch->event});
    return status.is_ok() ? PURLIN_OK : fail(status);
  });
}

purlin_status purlin_dispatcher_choice(purlin_dispatcher* dispatcher, const int64_t* extents,
                                       size_t count, purlin_choice* choice) {
  if (!shape_fits(dispatcher, extents, count))
    return wrong_shape("purlin_dispatcher_choice", dispatcher, count);
  if (choice == nullptr || choice->size == 0)
    return fail(PURLIN_INVALID, "purlin_dispatcher_choice: set it to PURLIN_CHOICE_INIT first");
  return guarded([&]() -> purlin_status {
    const Choice found = dispatcher->dispatcher->choice(extents);
    if (!found.problem.is_ok()) return fail(found.problem);
    purlin_choice result = PURLIN_CHOICE_INIT;
    result.size = choice->size;
    result.outcome = purlin::runtime::outcome_of(found.outcome);
    result.demoted = found.demoted ? 1 : 0;
    result.entry = found.entry == nullptr ? "" : found.entry->id.c_str();
    result.options = found.variant->options.c_str();
    if (!found.reason.empty()) result.reason = dispatcher->session->keep(found.reason);
    std::copy_n(found.shape.grid.begin(), 3, result.grid);
    std::copy_n(found.shape.block.begin(), 3, result.block);
    for (const Choice::Rival& rival : found.rivals) {
      const auto figures = dispatcher->dispatcher->figures(*rival.duel);
      if (figures.samples <= result.shadow_samples) continue;
      result.shadow_samples = figures.samples;
      result.shadow_ratio = figures.ratio;
    }
    std::memcpy(choice, &result, std::min(choice->size, sizeof result));
    return PURLIN_OK;
  });
}
