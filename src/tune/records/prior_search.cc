// SPDX-License-Identifier: Apache-2.0
#include "tune/records/prior_search.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "cache/store/store.h"
#include "tune/records/recordings.h"
#include "tune/records/stored_evaluations.h"

#include <set>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxStored = 64;  // recordings of one kernel that are read

void add_stored(const PriorTarget& target, PriorReader& reader, Log& log) {
  std::size_t skipped = 0;
  std::set<std::string> seen;
  const auto identity = [](const gpu::Recording& recording) {
    return FieldHasher()
        .add(recording.device)
        .add(recording.toolkit)
        .add(recording.source_hash)
        .add(recording.problem.text())
        .hex();
  };
  for (const gpu::Recording& recording :
       find_evaluations(target.cache_directory, target.spec->name, kMaxStored, skipped)) {
    seen.insert(identity(recording));
    reader.add(recording, "stored evaluations");
  }
  if (skipped > 0)
    log.warn("skipped {} of stored evaluations: not readable", counted(skipped, "file"));
  // Entries without evaluations: winners of other hosts, imported or stored by a person.
  const Result<cache::Store> store = cache::Store::open(target.cache_directory);
  if (!store.is_ok()) return;  // reported when the winner is stored
  std::size_t count = 0;
  for (const cache::Entry& entry : store->list()) {
    if (entry.key.kernel != target.spec->name || entry.key.op != target.spec->op) continue;
    const gpu::Recording recording = recording_of(entry);
    if (seen.contains(identity(recording)) || ++count > kMaxStored) continue;
    reader.add(recording, "cache entry");
  }
}

}  // namespace

Result<Priors> find_priors(const PriorOptions& options, const PriorTarget& target, Log& log) {
  PriorReader reader(target.space, target.device, target.problem);
  for (const std::string& file : options.files) {
    PURLIN_ASSIGN(const std::vector<gpu::Recording> recordings, read_recordings(file));
    if (!recordings.front().note.empty()) log.warn("{}: {}", file, recordings.front().note);
    for (const gpu::Recording& recording : recordings) reader.add(recording, base_name(file));
  }
  if (target.spec != nullptr && options.from_cache) add_stored(target, reader, log);
  Priors priors = reader.take();
  for (const PriorSource& source : priors.sources)
    if (source.configs == 0 && source.name != "cache entry" && source.name != "stored evaluations")
      log.warn("{}: none of its {} configs is one of this space, so nothing starts from it",
               source.name, source.left_out);
  return priors;
}

Status keep_evaluations(const PriorTarget& target, const std::vector<Evaluation>& evaluations) {
  gpu::Recording recording = recording_of(evaluations, target.device);
  recording.kernel = target.spec->name;
  recording.problem = target.problem;
  PURLIN_ASSIGN(const cache::CacheKey key,
                cache::make_key(*target.spec, target.problem, target.device, target.cold_cache));
  recording.source_hash = key.source_hash;
  const std::string id = FieldHasher()
                             .add(target.spec->name)
                             .add(recording.source_hash)
                             .add(recording.problem.text())
                             .add(target.device.name)
                             .add(target.device.toolkit)
                             .add(target.cold_cache ? "cold" : "warm")
                             .hex();
  return store_evaluations(evaluations_path(target.cache_directory, target.spec->name, id),
                           recording);
}

}  // namespace purlin::tune
