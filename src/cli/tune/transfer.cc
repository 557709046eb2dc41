// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/transfer.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "tune/records/recordings.h"
#include "tune/records/stored_evaluations.h"

#include <set>

namespace purlin::cli {
namespace {

constexpr std::size_t kMaxStored = 64;  // recordings of one kernel that are read

std::string directory_of(const CacheFlag& cache) {
  return cache.directory.empty() ? cache::Store::default_directory() : cache.directory;
}

void add_stored(const TransferTarget& target, const CacheFlag& cache, tune::PriorReader& reader,
                Log& log) {
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
       tune::find_evaluations(directory_of(cache), target.spec->name, kMaxStored, skipped)) {
    seen.insert(identity(recording));
    reader.add(recording, "stored evaluations");
  }
  if (skipped > 0)
    log.warn("{} files of stored evaluations cannot be read and are not started from", skipped);
  // Entries of which there are no evaluations: others' winners, imported or put by a person.
  const Result<cache::Store> store = cache.open();
  if (!store.is_ok()) return;  // said elsewhere, where it matters
  std::size_t count = 0;
  for (const cache::Entry& entry : store->list()) {
    if (entry.key.kernel != target.spec->name || entry.key.op != target.spec->op) continue;
    const gpu::Recording recording = tune::recording_of(entry);
    if (seen.contains(identity(recording)) || ++count > kMaxStored) continue;
    reader.add(recording, "cache entry");
  }
}

}  // namespace

void TransferFlags::declare(Flags& flags) {
  flags.list("--transfer", files, "Results of other GPUs, shapes or versions to start from",
             "FILE");
  flags.flag("--no-transfer", none, "Do not start from results in the folder of the cache");
}

Status TransferFlags::check(const std::string& strategy) const {
  if (files.empty() || strategy == "auto" || strategy == "transfer") return Status::ok();
  return error(Code::kInvalid,
               "the strategy '{}' starts from nothing: --transfer takes auto or transfer",
               strategy);
}

Result<tune::Priors> find_priors(const TransferFlags& flags, const TransferTarget& target,
                                 const CacheFlag& cache, Log& log) {
  tune::PriorReader reader(target.space, target.device, target.problem);
  for (const std::string& file : flags.files) {
    PURLIN_ASSIGN(const std::vector<gpu::Recording> recordings, tune::read_recordings(file));
    for (const gpu::Recording& recording : recordings) reader.add(recording, base_name(file));
  }
  if (target.spec != nullptr && !flags.none) add_stored(target, cache, reader, log);
  tune::Priors priors = reader.take();
  for (const tune::PriorSource& source : priors.sources)
    if (source.configs == 0 && source.name != "cache entry" && source.name != "stored evaluations")
      log.warn("{}: none of its {} configs is one of this space, so nothing starts from it",
               source.name, source.left_out);
  return priors;
}

Status keep_evaluations(const TransferTarget& target, const CacheFlag& cache,
                        const std::vector<Evaluation>& evaluations) {
  gpu::Recording recording = tune::recording_of(evaluations, target.device);
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
  return tune::store_evaluations(tune::evaluations_path(directory_of(cache), target.spec->name, id),
                                 recording);
}

}  // namespace purlin::cli
