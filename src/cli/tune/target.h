// SPDX-License-Identifier: Apache-2.0
// The flags that say which entry of the cache a verb is about: spec, shape, device, policy, cache.
// Owned by the verb's Command; one thread. Failure: kInvalid for the spec or the shape,
// kUnavailable when the device is not there.
#pragma once

#include "base/log.h"
#include "base/output/terminal.h"
#include "base/status.h"
#include "cache/layers/layers.h"
#include "cache/store/store.h"
#include "cli/frame/flags.h"
#include "model/spec/spec.h"

#include <string>

namespace purlin::cli {

// "--cache DIR"
struct CacheFlag {
  void declare(Flags& flags);
  Result<cache::Store> open() const;
  // The same with every record read, and said on stderr what could not be: for verbs that speak of
  // all records.
  Result<cache::Store> open_examined(Log& log) const;
  // "--cache-layers DIR:DIR", for verbs that read through to caches below.
  void declare_layers(Flags& flags);
  Result<cache::Layers> open_layers() const;
  std::string directory;  // "" = the default
  std::string below;
};

struct CacheTarget {
  KernelSpec spec;
  ProblemShape problem;
  DeviceInfo device;
};

struct CacheTargetFlags {
  void declare(Flags& flags, bool spec_required);
  Result<CacheTarget> resolve() const;
  std::string spec, shape, device = "auto";
  bool cold = false;
  CacheFlag cache;
};

// A device's facts as a document's environment, with the host's.
Environment environment_of(const DeviceInfo& device);

// The entry, for a person.
std::string describe(const cache::Entry& entry, const Terminal& terminal);

// Says on stderr what of the cache could not be read.
void warn_of_damage(const cache::Store& store, Log& log);
// "damaged_records" and "lost_records" of a document, and whether it is "partial".
void report_damage(const cache::Store& store, Json* document);
// What a verb that passes records on returns: less than all is not done.
int partial_exit(const cache::Store& store);

}  // namespace purlin::cli
