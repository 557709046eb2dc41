// SPDX-License-Identifier: Apache-2.0
// `purlin cache export`: records as one file, for people and programs.
#include "base/files.h"
#include "base/text.h"
#include "cache/foreign/foreign.h"
#include "cache/share/exchange.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CacheExport : public Command {
 public:
  std::string_view name() const override { return "cache export"; }
  std::string_view summary() const override { return "Write records of the cache to a file"; }
  VerbText text() const override {
    return {.description =
                "Writes a bundle or JSON with the whole history of the selected entries. `cache "
                "import` and `cache merge` read both. Without -o, JSON goes to stdout. The formats "
                "of other tools hold only the entries that the cache serves.",
            .examples = {{"purlin cache export -o h100.bundle --arch sm_90"},
                         {"purlin cache export --op gemm | jq .records"},
                         {"purlin cache export --format vllm-moe -o configs"}},
            .exit_codes = {{0, "Written"},
                           {2, "Error"},
                           {3, "Written in part: damaged records of this cache are missing"}},
            .see = {"docs/guide/cache.md", "docs/formats/foreign.md"}};
  }
  void declare(Flags& flags) override {
    flags.option("-o,--output", output_, "File to write, or folder for the files of other tools",
                 "FILE");
    flags.option("--format", format_,
                 {"bundle, json, triton, vllm-moe or tunableop",
                  "Without it, a file named .json is JSON and any other file a bundle.",
                  {{"bundle", "Compressed, with checksums, signed with --sign-key"},
                   {"json", "One JSON document"},
                   {"triton", "The winners as files for Triton"},
                   {"vllm-moe", "The winners as files for vLLM"},
                   {"tunableop", "The winners as a file for PyTorch's TunableOp"}}},
                 "FORMAT");
    cache_.declare(flags);
    records_.declare(flags);
    signing_.declare(flags, "File with the secret that signs the bundle");
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    std::string format = format_;
    if (format.empty()) format = output_.empty() || ends_with(output_, ".json") ? "json" : "bundle";
    if (format == "triton" || format == "vllm-moe" || format == "tunableop")
      return run_foreign(context, format);
    if (format != "json" && format != "bundle")
      return error(Code::kInvalid,
                   "--format is bundle, json, triton, vllm-moe or tunableop, not '{}'", format);
    if (format == "bundle" && output_.empty())
      return error(Code::kInvalid, "a bundle is not for a terminal; give -o FILE");
    if (format == "json" && signing_.key() != nullptr)
      return error(Code::kInvalid, "only a bundle can be signed; use --format bundle");
    PURLIN_ASSIGN(const cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const auto records, store.records(records_.filter));
    std::string bytes;
    if (format == "bundle") {
      PURLIN_ASSIGN(bytes, cache::encode_bundle(records, signing_.key(), store.damaged()));
    } else {
      PURLIN_ASSIGN(Json document, cache::export_document(records));
      report_damage(store, &document);
      bytes = document.dump(1) + "\n";
    }
    if (output_.empty()) {
      context.print_data(bytes);
      return partial_exit(store);
    }
    PURLIN_TRY(write_atomic(output_, bytes));
    context.log.info("{} of '{}' written to '{}' ({})", count_text(records.size(), "record"),
                     store.directory(), output_, format_bytes(static_cast<double>(bytes.size())));
    return partial_exit(store);
  }

 private:
  Result<int> run_foreign(Context& context, const std::string& format) const {
    if (output_.empty())
      return error(Code::kInvalid, "{} names its files itself; give -o FOLDER", format);
    PURLIN_ASSIGN(const cache::ForeignFormat wanted, cache::parse_foreign_format(format));
    PURLIN_ASSIGN(const cache::Store store, cache_.open_examined(context.log));
    std::vector<cache::Entry> entries;
    for (const cache::StoredEntry& stored : store.current()) {
      bool chosen = true;
      const auto filter = records_.filter.key.fields(), key = stored.entry.key.fields();
      for (std::size_t i = 0; i < key.size(); ++i)
        chosen = chosen && (filter[i].second.empty() || filter[i].second == key[i].second);
      // Each measured shape of a bucket, also those that do not represent the bucket.
      if (!chosen) continue;
      PURLIN_ASSIGN(const std::vector<cache::StoredEntry> all, store.history(stored.entry.key));
      for (const cache::StoredEntry& other : all)
        if (cache::is_served(other.state)) entries.push_back(other.entry);
    }
    PURLIN_ASSIGN(const cache::NamedFiles files, cache::write_foreign(wanted, entries));
    PURLIN_TRY(make_directories_durably(output_));
    for (const auto& [name, text] : files) {
      if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
        PURLIN_TRY(make_directories_durably(join_path(output_, name.substr(0, slash))));
      PURLIN_TRY(write_atomic(join_path(output_, name), text));
      context.print(join_path(output_, name) + "\n");
    }
    return partial_exit(store);
  }

  std::string output_, format_;
  CacheFlag cache_;
  RecordFlags records_;
  SigningFlag signing_;
};

}  // namespace

std::unique_ptr<Command> make_cache_export_command() { return std::make_unique<CacheExport>(); }

}  // namespace purlin::cli
