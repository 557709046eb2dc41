// SPDX-License-Identifier: Apache-2.0
// libpurlin: the C interface of include/purlin/purlin.h over the store and its index.
//
// A session is shared by the cache's handle and the handles opened on it, so they may be closed in
// any order. Every change of the session is made under its mutex. Lookups use only the op.
#include "base/version.h"
#include "cache/hot/op_index.h"
#include "gpu/registry.h"
#include "runtime/c_api/support.h"
#include "runtime/op.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <purlin/purlin.h>

namespace {

using purlin::Status;
using purlin::cache::IndexedEntry;
using purlin::cache::OpIndex;
using purlin::runtime::CacheSession;
using purlin::runtime::fail;
using purlin::runtime::guarded;
using purlin::runtime::text_or_empty;

const IndexedEntry* indexed(const purlin_entry* entry) {
  return reinterpret_cast<const IndexedEntry*>(entry);
}

}  // namespace

const char* purlin_version(void) { return purlin::version(); }
int purlin_abi_version(void) { return PURLIN_ABI_VERSION; }
const char* purlin_last_error(void) { return purlin::runtime::last_error(); }

purlin_status purlin_cache_open(const char* directory, purlin_cache** cache) {
  if (cache == nullptr) return fail(PURLIN_INVALID, "purlin_cache_open: cache is NULL");
  *cache = nullptr;
  return guarded([&]() -> purlin_status {
    auto session = CacheSession::open(directory);
    if (!session.is_ok()) return fail(session.status());
    *cache = new purlin_cache{std::move(session).value()};
    return PURLIN_OK;
  });
}

purlin_status purlin_cache_open_layers(const char* const* directories, size_t count,
                                       purlin_cache** cache) {
  if (cache != nullptr) *cache = nullptr;
  if (cache == nullptr || (directories == nullptr && count > 0))
    return fail(PURLIN_INVALID, "purlin_cache_open_layers: an argument is NULL");
  return guarded([&]() -> purlin_status {
    std::vector<std::string> below;
    for (size_t i = 1; i < count; ++i) {
      if (directories[i] == nullptr || *directories[i] == '\0')
        return fail(PURLIN_INVALID, "purlin_cache_open_layers: only the first may be NULL");
      below.emplace_back(directories[i]);
    }
    auto session = CacheSession::open(count == 0 ? nullptr : directories[0], below);
    if (!session.is_ok()) return fail(session.status());
    *cache = new purlin_cache{std::move(session).value()};
    return PURLIN_OK;
  });
}

size_t purlin_cache_layers(purlin_cache* cache, const char** directories, size_t count) {
  if (cache == nullptr) return 0;
  size_t found = 0;
  static_cast<void>(guarded([&]() -> purlin_status {
    const std::vector<std::string> layers = cache->session->layers();
    found = layers.size();
    for (size_t i = 0; directories != nullptr && i < std::min(count, found); ++i)
      directories[i] = cache->session->keep(layers[i]);
    return PURLIN_OK;
  }));
  return found;
}

void purlin_cache_close(purlin_cache* cache) {
  if (cache == nullptr) return;
  static_cast<void>(purlin_cache_flush(cache));
  delete cache;
}

purlin_status purlin_cache_reload(purlin_cache* cache) {
  if (cache == nullptr) return fail(PURLIN_INVALID, "purlin_cache_reload: cache is NULL");
  return guarded([&]() -> purlin_status {
    const Status status = cache->session->reload();
    return status.is_ok() ? PURLIN_OK : fail(status);
  });
}

purlin_status purlin_cache_flush(purlin_cache* cache) {
  if (cache == nullptr) return fail(PURLIN_INVALID, "purlin_cache_flush: cache is NULL");
  return guarded([&]() -> purlin_status {
    const Status status = cache->session->flush();
    return status.is_ok() ? PURLIN_OK : fail(status);
  });
}

const char* purlin_cache_directory(const purlin_cache* cache) {
  return cache == nullptr ? "" : cache->session->directory().c_str();
}

purlin_status purlin_cache_device(purlin_cache* cache, const char* name, purlin_device* device) {
  if (cache == nullptr || name == nullptr || device == nullptr || device->size == 0)
    return fail(PURLIN_INVALID,
                "purlin_cache_device: give a cache, a name and a device set to PURLIN_DEVICE_INIT");
  return guarded([&]() -> purlin_status {
    auto opened = purlin::gpu::open_device(name);
    if (!opened.is_ok()) return fail(opened.status());
    const purlin::DeviceInfo& info = (*opened)->info();
    purlin_device facts = {device->size,
                           cache->session->keep(info.backend),
                           cache->session->keep(info.arch),
                           cache->session->keep(info.name),
                           cache->session->keep(info.toolkit),
                           cache->session->keep(info.driver)};
    std::memcpy(device, &facts, std::min(device->size, sizeof facts));
    return PURLIN_OK;
  });
}

purlin_status purlin_op_open(purlin_cache* cache, const purlin_op_desc* desc, purlin_op** op) {
  if (op != nullptr) *op = nullptr;
  if (cache == nullptr || desc == nullptr || op == nullptr)
    return fail(PURLIN_INVALID, "purlin_op_open: an argument is NULL");
  if (!PURLIN_HAS(desc, purlin_op_desc, flags))
    return fail(PURLIN_INVALID, "purlin_op_open: set the desc to PURLIN_OP_DESC_INIT first");
  if (desc->op == nullptr || *desc->op == '\0' || desc->device == nullptr ||
      desc->dimensions == nullptr)
    return fail(PURLIN_INVALID, "purlin_op_open: op, device and dimensions must be given");
  if (desc->dimension_count < 1 || desc->dimension_count > purlin::cache::kMaxDimensions)
    return fail(PURLIN_INVALID, "purlin_op_open: an op has 1 to 8 dimensions");
  const purlin_device& device = *desc->device;
  if (!PURLIN_HAS(&device, purlin_device, driver) || device.backend == nullptr ||
      *device.backend == '\0' || device.arch == nullptr)
    return fail(PURLIN_INVALID,
                "purlin_op_open: the device must state its backend and arch; "
                "purlin_cache_device fills them in");
  return guarded([&]() -> purlin_status {
    purlin::runtime::OpOptions options;
    purlin::cache::CacheKey& wanted = options.wanted;
    wanted.op = desc->op;
    wanted.kernel = desc->kernel == nullptr || *desc->kernel == '\0' ? desc->op : desc->kernel;
    wanted.dtype = text_or_empty(desc->dtype);
    wanted.backend = device.backend;
    wanted.arch = device.arch;
    wanted.device = text_or_empty(device.model);
    wanted.toolkit = text_or_empty(device.toolkit);
    wanted.driver = text_or_empty(device.driver);
    wanted.source_hash = text_or_empty(desc->source_hash);
    wanted.policy = text_or_empty(desc->policy);
    if (PURLIN_HAS(desc, purlin_op_desc, layout)) wanted.layout = text_or_empty(desc->layout);
    for (std::size_t i = 0; i < desc->dimension_count; ++i) {
      if (desc->dimensions[i] == nullptr)
        return fail(PURLIN_INVALID, "purlin_op_open: the name of a dimension is NULL");
      options.dimensions.emplace_back(desc->dimensions[i]);
    }
    options.allow_transferred = (desc->flags & PURLIN_ALLOW_TRANSFERRED) != 0;
    options.serve_stale =
        cache->session->settings().serve_stale.value_or((desc->flags & PURLIN_ALLOW_STALE) != 0);
    *op = new purlin_op{{cache->session, std::move(options)}};
    return PURLIN_OK;
  });
}

void purlin_op_close(purlin_op* op) { delete op; }

[[gnu::hot]] purlin_outcome purlin_lookup(const purlin_op* op, const int64_t* extents, size_t count,
                                          const purlin_entry** entry) {
  OpIndex::Hit hit;
  if (op != nullptr && extents != nullptr && count == op->op.dimension_count())
    hit = op->op.find(extents);
  if (entry != nullptr) *entry = reinterpret_cast<const purlin_entry*>(hit.entry);
  return purlin::runtime::outcome_of(hit.outcome);
}

void purlin_prefetch(const purlin_op* op, const int64_t* extents, size_t count) {
  if (op != nullptr && extents != nullptr && count == op->op.dimension_count())
    op->op.prefetch(extents);
}

size_t purlin_op_why_missed(const purlin_op* op, const int64_t* extents, size_t count, char* buffer,
                            size_t size) {
  size_t length = 0;
  static_cast<void>(guarded([&]() -> purlin_status {
    std::string why = "the lookup has another number of extents than the op has dimensions";
    if (op != nullptr && extents != nullptr && count == op->op.dimension_count())
      why = op->op.why_missed(extents);
    length = purlin::runtime::copy_text(why, buffer, size);
    return PURLIN_OK;
  }));
  return length;
}

void purlin_op_count(const purlin_op* op, const int64_t* extents, size_t count, uint64_t launches) {
  if (op != nullptr && extents != nullptr && count == op->op.dimension_count() && launches > 0)
    op->op.count(extents, launches);
}

namespace {

// Without allocating: these are called before launches too.
const purlin::Value* parameter(const purlin_entry* entry, const char* name) noexcept {
  if (entry == nullptr || name == nullptr) return nullptr;
  for (const auto& item : indexed(entry)->config.items())
    if (item.first == name) return &item.second;
  return nullptr;
}

}  // namespace

int64_t purlin_entry_int(const purlin_entry* entry, const char* name, int64_t fallback) {
  const purlin::Value* value = parameter(entry, name);
  if (value == nullptr) return fallback;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  return fallback;
}

double purlin_entry_double(const purlin_entry* entry, const char* name, double fallback) {
  const purlin::Value* value = parameter(entry, name);
  if (value == nullptr) return fallback;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* flag = std::get_if<bool>(value)) return *flag ? 1 : 0;
  return fallback;
}

const char* purlin_entry_text(const purlin_entry* entry, const char* name, const char* fallback) {
  const purlin::Value* value = parameter(entry, name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? fallback : text->c_str();
}

const char* purlin_entry_options(const purlin_entry* entry) {
  return entry == nullptr ? "" : indexed(entry)->options.c_str();
}

size_t purlin_entry_parameter_count(const purlin_entry* entry) {
  return entry == nullptr ? 0 : indexed(entry)->config.items().size();
}

const char* purlin_entry_parameter_name(const purlin_entry* entry, size_t index) {
  if (index >= purlin_entry_parameter_count(entry)) return nullptr;
  return indexed(entry)->config.items()[index].first.c_str();
}

int64_t purlin_entry_extent(const purlin_entry* entry, const char* dimension, int64_t fallback) {
  if (entry == nullptr || dimension == nullptr) return fallback;
  for (const auto& item : indexed(entry)->problem.items())
    if (item.first == dimension) return item.second;
  return fallback;
}

double purlin_entry_time_ms(const purlin_entry* entry) {
  return entry == nullptr ? 0 : indexed(entry)->time_ms;
}

double purlin_entry_default_time_ms(const purlin_entry* entry) {
  return entry == nullptr ? 0 : indexed(entry)->default_time_ms;
}

int purlin_entry_verified(const purlin_entry* entry) {
  return entry != nullptr && indexed(entry)->verified ? 1 : 0;
}

const char* purlin_entry_id(const purlin_entry* entry) {
  return entry == nullptr ? "" : indexed(entry)->id.c_str();
}

const char* purlin_entry_layer(const purlin_entry* entry) {
  return entry == nullptr ? "" : indexed(entry)->directory.c_str();
}

const char* purlin_outcome_name(purlin_outcome outcome) {
  switch (outcome) {
    case PURLIN_EXACT:
      return "exact";
    case PURLIN_BUCKET:
      return "bucket";
    case PURLIN_TRANSFERRED:
      return "transferred";
    default:
      return "miss";
  }
}
