// SPDX-License-Identifier: Apache-2.0
// `purlin cache import`: takes the records of files into the cache.
#include "base/files.h"
#include "base/text.h"
#include "cache/foreign/foreign.h"
#include "cache/share/exchange.h"
#include "cli/cache/share.h"
#include "cli/commands.h"
#include "cli/tune/target.h"

namespace purlin::cli {
namespace {

class CacheImport : public Command {
 public:
  std::string_view name() const override { return "cache import"; }
  std::string_view summary() const override { return "Add the records of files to the cache"; }
  VerbText text() const override {
    return {
        .description =
            "Reads bundles, and the JSON of `cache export`, `cache ls --json` and `cache get "
            "--json`. It also reads winners of Triton, vLLM and PyTorch's TunableOp. A second "
            "import of a file changes nothing.",
        .more =
            "A damaged bundle is refused as a whole. With --sign-key, a bundle that the key did "
            "not sign is refused, too.\n\nFiles of other tools are Triton's "
            "FUNCTION.autotune.json, vLLM's E=…,N=…,device_name=….json, and results of PyTorch's "
            "TunableOp. They are recognised by name and contents, or by --format. Such an entry is "
            "not verified. It states only the fields in its file. A lookup with more fields, such "
            "as a driver, gets it as transferred, on request. --with adds fields that you know.",
        .examples =
            {{"purlin cache import h100.bundle --sign-key team.key"},
             {"purlin cache import 'E=8,N=7168,device_name=NVIDIA_H200.json'"},
             {"purlin cache import matmul.autotune.json --dimensions M,N,K --with arch=sm_90"}},
        .exit_codes = {{0, "Imported"},
                       {2, "Error"},
                       {3, "Imported in part: damage took records before the export"}},
        .see = {"docs/guide/cache.md", "docs/formats/foreign.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Bundles, JSON documents, or winners of other tools");
    flags.option("--format", format_,
                 {"purlin, triton, vllm-moe or tunableop (default: by the file)",
                  "",
                  {{"purlin", ""}, {"triton", ""}, {"vllm-moe", ""}, {"tunableop", ""}}},
                 "FORMAT");
    flags.list("--with", with_, "Field of the key that the file lacks; repeatable", "FIELD=VALUE");
    flags.option("--dimensions", dimensions_, "Names of the values of the key in Triton's file",
                 "M,N,K");
    cache_.declare(flags);
    signing_.declare(flags, "File with the secret: take only bundles signed with it");
    flags.flag("--json", json_,
               {"Print one JSON document", "The schema is purlin.cache-import/1."});
  }

  Result<int> run(Context& context) override {
    PURLIN_TRY(signing_.load());
    PURLIN_ASSIGN(cache::Store store, cache_.open_examined(context.log));
    PURLIN_ASSIGN(const cache::ForeignFacts facts, this->facts());
    std::vector<cache::Bundle> bundles;
    for (const std::string& file : files_) {
      PURLIN_ASSIGN(const std::string bytes, read_file(file, cache::kMaxBundleBytes));
      std::optional<cache::ForeignFormat> foreign;
      if (format_.empty()) {
        foreign = cache::guess_foreign_format(file, bytes);
      } else if (format_ != "purlin") {
        PURLIN_ASSIGN(foreign, cache::parse_foreign_format(format_));
      }
      Result<cache::Bundle> bundle = foreign ? from_foreign(context, *foreign, file, bytes, facts)
                                             : cache::read_records(bytes, signing_.key());
      if (!bundle.is_ok()) return bundle.status().with_context(file);
      bundles.push_back(std::move(bundle).value());
    }
    return absorb_bundles(context, store, bundles, "purlin.cache-import/1", json_);
  }

 private:
  Result<cache::ForeignFacts> facts() const {
    cache::ForeignFacts facts;
    Json key = to_json(cache::CacheKey());
    for (const std::string& text : with_) {
      const std::size_t equals = text.find('=');
      const std::string field = text.substr(0, equals);
      if (equals == std::string::npos || key.find(field) == nullptr || field == "bucket") {
        std::vector<std::string> fields;
        for (const cache::KeyFieldRule& rule : cache::key_field_rules())
          if (std::string_view(rule.name) != "bucket") fields.emplace_back(rule.name);
        const std::string near = nearest(field, fields);
        return error(Code::kInvalid, "--with {}: give FIELD=VALUE with a field of the key: {}{}",
                     text, join(fields, ", "),
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
      }
      key.set(field, text.substr(equals + 1));
    }
    // op, kernel and backend may well be the file's to state.
    for (const char* field : {"op", "kernel", "backend"})
      if (key[field].as_string().empty()) key.set(field, "-");
    PURLIN_ASSIGN(facts.key, cache::key_from_json(key));
    for (std::string* field : {&facts.key.op, &facts.key.kernel, &facts.key.backend})
      if (*field == "-") field->clear();
    for (const std::string& name : split(dimensions_, ','))
      if (!trim(name).empty()) facts.dimensions.emplace_back(trim(name));
    return facts;
  }

  Result<cache::Bundle> from_foreign(Context& context, cache::ForeignFormat format,
                                     const std::string& file, const std::string& bytes,
                                     const cache::ForeignFacts& facts) const {
    if (signing_.key() != nullptr)
      return error(Code::kInvalid, "only a bundle can be signed; --sign-key takes no other file");
    PURLIN_ASSIGN(const cache::ForeignEntries read,
                  cache::read_foreign(format, file, bytes, facts));
    for (const std::string& reason : read.skipped)
      context.log.warn("{}: left out: {}", file, reason);
    cache::Bundle bundle;
    for (const cache::Entry& entry : read.entries)
      bundle.records.push_back(cache::make_record(entry));
    return bundle;
  }

  std::vector<std::string> files_, with_;
  std::string format_, dimensions_;
  CacheFlag cache_;
  SigningFlag signing_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_import_command() { return std::make_unique<CacheImport>(); }

}  // namespace purlin::cli
