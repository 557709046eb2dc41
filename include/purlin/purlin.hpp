// SPDX-License-Identifier: Apache-2.0
// Purlin's C++ interface: a thin layer over purlin.h that owns its handles. C++17, header only.
//
//   purlin::Cache cache;
//   purlin::Op gemm = cache.op("gemm", {"M", "N", "K"}, cache.device("auto"));
//   ...
//   const purlin::Hit hit = gemm.find(m, n, k);
//   const auto bm = hit.integer("BM", 16);
//
// Thread-safety as in purlin.h: Op::find and everything of a Hit may be called by any number of
// threads. Failure: opening throws purlin::Error; lookups never do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <purlin/purlin.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace purlin {

class Error : public std::runtime_error {
 public:
  explicit Error(purlin_status status) : std::runtime_error(purlin_last_error()), status_(status) {}
  purlin_status status() const noexcept { return status_; }

 private:
  purlin_status status_;
};

// What a lookup found: an entry or nothing. Refers to its Op, which must live on.
class Hit {
 public:
  Hit(purlin_outcome outcome, const purlin_entry* entry) : outcome_(outcome), entry_(entry) {}

  explicit operator bool() const noexcept { return entry_ != nullptr; }
  purlin_outcome outcome() const noexcept { return outcome_; }
  const char* outcome_name() const noexcept { return purlin_outcome_name(outcome_); }
  std::int64_t integer(const char* parameter, std::int64_t fallback) const noexcept {
    return purlin_entry_int(entry_, parameter, fallback);
  }
  double real(const char* parameter, double fallback) const noexcept {
    return purlin_entry_double(entry_, parameter, fallback);
  }
  const char* text(const char* parameter, const char* fallback) const noexcept {
    return purlin_entry_text(entry_, parameter, fallback);
  }
  // "-DBM=64 -DBN=32"; "" on a miss.
  const char* options() const noexcept { return purlin_entry_options(entry_); }
  double time_ms() const noexcept { return purlin_entry_time_ms(entry_); }
  double default_time_ms() const noexcept { return purlin_entry_default_time_ms(entry_); }
  bool verified() const noexcept { return purlin_entry_verified(entry_) != 0; }
  const char* id() const noexcept { return purlin_entry_id(entry_); }
  const char* layer() const noexcept { return purlin_entry_layer(entry_); }
  const purlin_entry* handle() const noexcept { return entry_; }

 private:
  purlin_outcome outcome_;
  const purlin_entry* entry_;
};

class Op {
 public:
  explicit Op(purlin_op* op) : op_(op, purlin_op_close) {}

  // Extents in the order of the op's dimensions.
  template <class... Extents>
  Hit find(Extents... extents) const& noexcept {
    const std::int64_t all[] = {static_cast<std::int64_t>(extents)...};
    return find(all, sizeof...(extents));
  }
  Hit find(const std::int64_t* extents, std::size_t count) const& noexcept {
    const purlin_entry* entry = nullptr;
    const purlin_outcome outcome = purlin_lookup(op_.get(), extents, count, &entry);
    return {outcome, entry};
  }
  // Why a shape has no entry, in a sentence for people; "" for a hit. Not for the hot path.
  std::string why_missed(const std::int64_t* extents, std::size_t count) const {
    std::string text(purlin_op_why_missed(op_.get(), extents, count, nullptr, 0), '\0');
    purlin_op_why_missed(op_.get(), extents, count, text.data(), text.size() + 1);
    return text;
  }
  // Ahead of find(), where entries are so many that it would have to wait for memory.
  // Launches by answers that were kept: for the work list.
  void count(const std::int64_t* extents, std::size_t count,
             std::uint64_t launches) const noexcept {
    purlin_op_count(op_.get(), extents, count, launches);
  }
  void prefetch(const std::int64_t* extents, std::size_t count) const noexcept {
    purlin_prefetch(op_.get(), extents, count);
  }
  // A Hit refers to its Op, so one that is gone at the end of the line cannot be asked.
  template <class... Extents>
  Hit find(Extents...) const&& = delete;
  purlin_op* handle() const noexcept { return op_.get(); }

 private:
  std::unique_ptr<purlin_op, void (*)(purlin_op*)> op_;
};

struct OpOptions {
  std::string kernel, dtype, source_hash, policy, layout;  // "" = not stated
  bool allow_transferred = false;
};

class Cache {
 public:
  // "": the default directory.
  explicit Cache(const std::string& directory = "") : cache_(nullptr, purlin_cache_close) {
    purlin_cache* opened = nullptr;
    check(purlin_cache_open(directory.empty() ? nullptr : directory.c_str(), &opened));
    cache_.reset(opened);
  }

  // Over these directories, the uppermost first ("": the default one).
  explicit Cache(const std::vector<std::string>& layers) : cache_(nullptr, purlin_cache_close) {
    std::vector<const char*> names;
    for (const std::string& layer : layers)
      names.push_back(layer.empty() ? nullptr : layer.c_str());
    purlin_cache* opened = nullptr;
    check(purlin_cache_open_layers(names.data(), names.size(), &opened));
    cache_.reset(opened);
  }

  // The facts of "cuda:0", "opencl:0", "auto"; the texts belong to this cache.
  purlin_device device(const std::string& name) {
    purlin_device facts = PURLIN_DEVICE_INIT;
    check(purlin_cache_device(cache_.get(), name.c_str(), &facts));
    return facts;
  }
  Op op(const std::string& name, const std::vector<std::string>& dimensions,
        const purlin_device& on, const OpOptions& options = {}) {
    std::vector<const char*> names;
    for (const std::string& dimension : dimensions) names.push_back(dimension.c_str());
    const auto stated = [](const std::string& text) {
      return text.empty() ? nullptr : text.c_str();
    };
    purlin_op_desc desc = PURLIN_OP_DESC_INIT;
    desc.op = name.c_str();
    desc.kernel = stated(options.kernel);
    desc.dtype = stated(options.dtype);
    desc.source_hash = stated(options.source_hash);
    desc.layout = stated(options.layout);
    desc.policy = stated(options.policy);
    desc.dimensions = names.data();
    desc.dimension_count = names.size();
    desc.device = &on;
    desc.flags = options.allow_transferred ? PURLIN_ALLOW_TRANSFERRED : 0;
    purlin_op* opened = nullptr;
    check(purlin_op_open(cache_.get(), &desc, &opened));
    return Op(opened);
  }
  void reload() { check(purlin_cache_reload(cache_.get())); }
  void flush() { check(purlin_cache_flush(cache_.get())); }
  // Stores a winner of another tuner, as JSON.
  void put(const std::string& entry_json) {
    check(purlin_cache_put(cache_.get(), entry_json.c_str()));
  }
  const char* directory() const noexcept { return purlin_cache_directory(cache_.get()); }
  // Directories of the layers that are read, the uppermost first.
  std::vector<std::string> layers() const {
    std::vector<const char*> names(purlin_cache_layers(cache_.get(), nullptr, 0));
    names.resize(
        std::min(names.size(), purlin_cache_layers(cache_.get(), names.data(), names.size())));
    return {names.begin(), names.end()};
  }
  purlin_cache* handle() const noexcept { return cache_.get(); }

 private:
  static void check(purlin_status status) {
    if (status != PURLIN_OK) throw Error(status);
  }
  std::unique_ptr<purlin_cache, void (*)(purlin_cache*)> cache_;
};

// A kernel that is launched with its best config. Arguments are given as values: device pointers or
// cl_mem for buffers, scalars of the very type the kernel takes.
//
//   purlin::DispatcherOptions options;
//   options.backend = "cuda";                               // on the thread's current context
//   purlin::Dispatcher gemm(cache, "gemm.toml", options);
//   gemm.prepare({m, n, k});                                // compiles ahead
//   gemm(stream, {m, n, k}, a, b, c, int(m), int(n), int(k));
struct DispatcherOptions {
  std::string backend;      // "cuda", "opencl"
  void* context = nullptr;  // OpenCL: the cl_context
  void* device = nullptr;   // OpenCL: the cl_device_id; nullptr: the context's first
  std::string binaries, policy;
  unsigned flags = 0;  // PURLIN_ALLOW_TRANSFERRED | ...
  unsigned shadow_interval = 0;
};

class Dispatcher {
 public:
  Dispatcher(Cache& cache, const std::string& spec, const DispatcherOptions& options)
      : dispatcher_(nullptr, purlin_dispatcher_close) {
    const auto stated = [](const std::string& text) {
      return text.empty() ? nullptr : text.c_str();
    };
    purlin_dispatcher_desc desc = PURLIN_DISPATCHER_DESC_INIT;
    desc.spec = spec.c_str();
    desc.backend = options.backend.c_str();
    desc.context = options.context;
    desc.device = options.device;
    desc.binaries = stated(options.binaries);
    desc.policy = stated(options.policy);
    desc.flags = options.flags;
    desc.shadow_interval = options.shadow_interval;
    purlin_dispatcher* opened = nullptr;
    if (const purlin_status status = purlin_dispatcher_open(cache.handle(), &desc, &opened);
        status != PURLIN_OK)
      throw Error(status);
    dispatcher_.reset(opened);
  }

  void prepare(std::initializer_list<std::int64_t> extents) {
    const purlin_status status = purlin_prepare(dispatcher_.get(), extents.begin(), extents.size());
    if (status != PURLIN_OK) throw Error(status);
  }
  // Allocates nothing itself; throws Error where the launch failed.
  template <class... Arguments>
  void operator()(void* queue, std::initializer_list<std::int64_t> extents,
                  const Arguments&... arguments) {
    void* const addresses[] = {
        const_cast<void*>(static_cast<const void*>(std::addressof(arguments)))...};
    purlin_launch launch = PURLIN_LAUNCH_INIT;
    launch.extents = extents.begin();
    launch.extent_count = extents.size();
    launch.arguments = addresses;
    launch.argument_count = sizeof...(arguments);
    launch.queue = queue;
    const purlin_status status = purlin_dispatch(dispatcher_.get(), &launch);
    if (status != PURLIN_OK) throw Error(status);
  }
  // What a launch of this shape is served, and why.
  purlin_choice choice(std::initializer_list<std::int64_t> extents) {
    purlin_choice found = PURLIN_CHOICE_INIT;
    const purlin_status status =
        purlin_dispatcher_choice(dispatcher_.get(), extents.begin(), extents.size(), &found);
    if (status != PURLIN_OK) throw Error(status);
    return found;
  }
  purlin_dispatcher* handle() const noexcept { return dispatcher_.get(); }

 private:
  std::unique_ptr<purlin_dispatcher, void (*)(purlin_dispatcher*)> dispatcher_;
};

}  // namespace purlin
