// SPDX-License-Identifier: Apache-2.0
// `purlin cache get`: the stored winner for a spec, shape and device, and why it is or is not one.
#include "cache/store/why_missed.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/command.h"
#include "cli/frame/next_step.h"
#include "cli/tune/target.h"
#include "model/document.h"

namespace purlin::cli {
namespace {

class CacheGet : public Command {
 public:
  std::string_view name() const override { return "cache get"; }
  std::string_view summary() const override { return "Look up the winner for a shape"; }
  VerbText text() const override {
    return {.description =
                "The outcome is one of these:\n  exact        this shape was tuned\n  bucket       "
                "a shape of the same bucket was tuned\n  nearest      the closest shape of another "
                "bucket, only with --nearest\n  transferred  another device, toolkit or "
                "driver, only with --allow-transferred\n  miss         no entry\n\nAn entry of "
                "another architecture is never served.",
            .examples = {{"purlin cache get gemm.toml --shape M=1000,N=1024,K=1024 --explain"}},
            .exit_codes = {{0, "Found"}, {2, "Error"}, {3, "Miss"}},
            .see = {"docs/guide/cache.md"}};
  }
  void declare(Flags& flags) override {
    target_.declare(flags, true);
    flags.flag("--allow-transferred", allow_transferred_,
               {"Also serve an entry of another device, toolkit or driver",
                "The architecture must be the same."});
    flags.option("--nearest", nearest_,
                 {"Also serve a shape of another bucket, this far away",
                  "The distance is the sum of |log2| of the ratios of the extents."});
    target_.cache.declare_layers(flags);
    flags.flag("--explain", explain_, "Show the field of the key that decided");
    flags.flag("--json", json_, "Print one JSON document");
  }

  Result<int> run(Context& context) override {
    PURLIN_ASSIGN(const CacheTarget target, target_.resolve());
    PURLIN_ASSIGN(const cache::CacheKey key,
                  cache::make_key(target.spec, target.problem, target.device, target_.cold));
    if (!(nearest_ >= 0)) return error(Code::kInvalid, "--nearest {} is not a distance", nearest_);
    PURLIN_ASSIGN(const cache::Layers layers, target_.cache.open_layers());
    for (const cache::Store& store : layers.stores()) warn_of_damage(store, context.log);
    for (const auto& [directory, reason] : layers.unread())
      context.log.warn("{}; the layer was skipped", reason);
    const cache::Lookup lookup = layers.get(
        key, target.problem, {.allow_transferred = allow_transferred_, .nearest = nearest_});
    for (const std::string& record : lookup.damaged)
      context.log.warn("record {} is damaged and was not considered; see: purlin cache repair",
                       record);
    Json document = new_document("purlin.lookup/1", environment_of(target.device));
    document.set("outcome", cache::outcome_name(lookup.outcome));
    document.set("key", to_json(key));
    document.set("problem", to_json(target.problem));
    document.set("entry", lookup.entry ? to_json(*lookup.entry) : Json());
    document.set("record", lookup.record);
    document.set("decided_by", lookup.decided_by);
    document.set("damaged", Json::array_of(lookup.damaged));
    document.set("explain", Json::array_of(lookup.explain));
    document.set("directory", lookup.layer);
    if (!lookup.entry)
      document.set("why", cache::why_missed(layers.stores(), key, target.problem).text);
    answer(context, json_, document,
           text(context.terminal, key, target.problem, lookup, layers.stores()) +
               next_step(next_after(lookup, target.problem)));
    return lookup.entry ? kExitOk : kExitInconclusive;
  }

 private:
  std::vector<std::string> next_after(const cache::Lookup& lookup,
                                      const ProblemShape& problem) const {
    if (lookup.entry) return {"purlin", "cache", "verify", target_.spec};
    std::vector<std::string> words = {"purlin", "tune", target_.spec};
    if (!problem.empty()) words.insert(words.end(), {"--shape", problem.text()});
    return words;
  }

  std::string text(const Terminal& terminal, const cache::CacheKey& key,
                   const ProblemShape& problem, const cache::Lookup& lookup,
                   std::span<const cache::Store> stores) const {
    const Style style = lookup.entry ? Style::kGreen : Style::kYellow;
    std::string text = key.kernel;
    for (const std::string& more : {problem.text(), key.device})
      if (!more.empty()) text += " " + more;
    text += fmt::format(": {}\n", terminal.paint(style, cache::outcome_name(lookup.outcome)));
    if (lookup.entry) text += describe(*lookup.entry, terminal);
    if (explain_ && !lookup.decided_by.empty())
      text += fmt::format("  decided by: {}\n", lookup.decided_by);
    if (explain_)
      for (const std::string& line : lookup.explain) text += "  " + line + "\n";
    else if (!lookup.entry)
      text += fmt::format("  {}\n  --explain shows the whole key\n",
                          cache::why_missed(stores, key, problem).text);
    return text;
  }

  CacheTargetFlags target_;
  double nearest_ = 0;
  bool allow_transferred_ = false, explain_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cache_get_command() { return std::make_unique<CacheGet>(); }

}  // namespace purlin::cli
