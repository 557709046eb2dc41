// SPDX-License-Identifier: Apache-2.0
#include "cli/cache/share.h"

#include "base/files.h"
#include "cache/share/binary_share.h"
#include "cli/frame/answer.h"

#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr std::int64_t kQuietNs = 1'000'000'000;  // what is done sooner needs no progress

constexpr std::uint64_t kMostBinaryBytes = std::uint64_t{2} << 30;  // as the local cache keeps

std::string binaries_directory() { return join_path(user_cache_directory(), "binaries"); }

void report_binaries(const cache::BinaryReport& report, Json* document, Log& log) {
  document->set("binaries", Json::object({{"moved", report.moved},
                                          {"known", report.known},
                                          {"refused", report.refused},
                                          {"left_out", report.large},
                                          {"bytes", report.bytes}}));
  log.info("{} moved, {} known", count_text(report.moved, "compiled kernel"), report.known);
  if (report.refused > 0)
    log.warn("{} refused: damaged, or not signed with this key",
             count_text(report.refused, "compiled kernel"));
  if (report.large > 0)
    log.warn("{} left out: over 8 MiB, or beyond 2 GiB in all",
             count_text(report.large, "compiled kernel"));
}

}  // namespace

void BinariesFlag::declare(Flags& flags) {
  flags.flag("--binaries", on_,
             {"Also compiled kernels; needs --sign-key",
              "Compiled kernels are code that machines run. Only those signed with this key are "
              "taken, and a machine uses one only for the same source, options, device, driver and "
              "compiler."});
}

Status BinariesFlag::check(const SigningFlag& signing) const {
  if (!on_ || signing.key() != nullptr) return Status::ok();
  return error(Code::kInvalid,
               "--binaries needs --sign-key FILE: compiled kernels are code, and only a holder of "
               "the secret may pass them on");
}

Status BinariesFlag::push(OpenShare& share, const SigningFlag& signing, Json* document,
                          Log& log) const {
  if (!on_) return Status::ok();
  cache::BinaryShare binaries(share.blobs(), *signing.key());
  PURLIN_ASSIGN(const cache::BinaryReport report,
                binaries.push(binaries_directory(), kMostBinaryBytes));
  report_binaries(report, document, log);
  return Status::ok();
}

Status BinariesFlag::pull(OpenShare& share, const SigningFlag& signing, Json* document,
                          Log& log) const {
  if (!on_) return Status::ok();
  cache::BinaryShare binaries(share.blobs(), *signing.key());
  PURLIN_ASSIGN(const cache::BinaryReport report,
                binaries.pull(binaries_directory(), kMostBinaryBytes));
  report_binaries(report, document, log);
  return Status::ok();
}

void SigningFlag::declare(Flags& flags, const std::string& help) {
  flags.option("--sign-key", file_, help, "FILE");
}

Status SigningFlag::load() {
  if (file_.empty()) return Status::ok();
  PURLIN_ASSIGN(cache::SigningKey key, cache::SigningKey::load(file_));
  key_ = std::move(key);
  return Status::ok();
}

void RecordFlags::declare(Flags& flags) {
  flags.option("--op", filter.key.op, "Only entries of this op", "OP");
  flags.option("--kernel", filter.key.kernel, "Only entries of this kernel", "NAME");
  flags.option("--backend", filter.key.backend,
               {"Only entries of this backend: cuda or opencl", "", {{"cuda", ""}, {"opencl", ""}}},
               "NAME");
  flags.option("--arch", filter.key.arch, "Only entries of this architecture, such as sm_90",
               "ARCH");
}

OpenShare::OpenShare(Context& context, std::unique_ptr<blobs::BlobStore> blobs)
    : blobs_(std::move(blobs)), progress_(stderr, context.error_terminal, !context.quiet) {}

Result<std::unique_ptr<OpenShare>> OpenShare::open(Context& context, const std::string& target,
                                                   const std::string& cache_directory,
                                                   const SigningFlag& signing) {
  PURLIN_ASSIGN(std::unique_ptr<blobs::BlobStore> blobs, blobs::open_blobs(target));
  if (file_exists(join_path(target, "entries.log")))
    return error(Code::kInvalid,
                 "'{}' is a cache, not a shared one; `purlin cache merge` takes in another cache",
                 target);
  std::unique_ptr<OpenShare> open(new OpenShare(context, std::move(blobs)));
  cache::ShareOptions options;
  options.memo_directory = join_path(cache_directory, "segments");
  options.key = signing.key();
  Progress* progress = &open->progress_;
  const std::int64_t begin = system_clock().monotonic_ns();
  options.progress = [progress, begin](std::string_view doing, std::size_t done,
                                       std::size_t total) {
    if (system_clock().monotonic_ns() - begin > kQuietNs)
      progress->update(fmt::format("{} {}/{}", doing, done, total));
  };
  const std::uint64_t seed = static_cast<std::uint64_t>(system_clock().monotonic_ns()) ^
                             (static_cast<std::uint64_t>(::getpid()) << 40);
  open->share_.emplace(*open->blobs_, system_clock(), seed, std::move(options));
  return open;
}

std::string count_text(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void warn_of_problems(const std::vector<std::string>& problems, Log& log) {
  for (const std::string& problem : problems) log.warn("left out: {}", problem);
}

Result<int> absorb_bundles(Context& context, cache::Store& store,
                           const std::vector<cache::Bundle>& bundles, std::string_view schema,
                           bool json) {
  cache::Absorbed absorbed;
  std::size_t newer = 0, damaged = 0;
  for (const cache::Bundle& bundle : bundles) {
    PURLIN_ASSIGN(cache::Absorbed part, store.absorb(bundle.records));
    part.refused += bundle.refused;
    newer += bundle.newer;
    damaged += bundle.damaged;
    add(&absorbed, part);
  }
  Json document = document_of(schema, {{"directory", store.directory()}});
  report_absorbed(absorbed, &document, context.log);
  document.set("newer", newer);
  document.set("damaged_records", damaged);
  if (newer > 0) context.log.warn("{} of a newer Purlin left out", count_text(newer, "record"));
  if (damaged > 0)
    context.log.warn("{} missing: damage took them where these records come from",
                     count_text(damaged, "record"));
  answer(context, json, document,
         fmt::format("{} in {}, {} known\n", count_text(absorbed.added, "new record"),
                     store.directory(), absorbed.known));
  return damaged > 0 ? kExitInconclusive : kExitOk;
}

void report_absorbed(const cache::Absorbed& absorbed, Json* document, Log& log) {
  document->set("added", absorbed.added);
  document->set("known", absorbed.known);
  document->set("refused", absorbed.refused);
  document->set("reasons", Json::array_of(absorbed.reasons));
  if (absorbed.refused > 0)
    log.warn("{} refused: {}", count_text(absorbed.refused, "record"),
             absorbed.reasons.empty() ? "they do not have the ids they came with"
                                      : absorbed.reasons.front());
}

void add(cache::Absorbed* total, const cache::Absorbed& part) {
  total->added += part.added;
  total->known += part.known;
  total->refused += part.refused;
  total->reasons.insert(total->reasons.end(), part.reasons.begin(), part.reasons.end());
}

}  // namespace purlin::cli
