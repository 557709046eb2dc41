// SPDX-License-Identifier: Apache-2.0
#include "cli/view/page_files.h"

#include "analyze/page/documents.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/page/kernel_cache.h"
#include "cli/page/page_views.h"
#include "cli/profile/files.h"
#include "cli/profile/measured_ceilings.h"
#include "cli/profile/outcomes.h"
#include "guard/history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace purlin::cli {
namespace {

constexpr std::size_t kHeadBytes = 1024, kMostOfDocument = std::size_t{256} << 20;

// The schema of one of Purlin's JSON documents or journals; "" for other files.
std::string schema_of_file(const std::string& path) {
  std::string head(kHeadBytes, '\0');
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  head.resize(std::fread(head.data(), 1, head.size(), file));
  std::fclose(file);
  if (head.find_first_not_of(" \t\r\n") == std::string::npos ||
      head[head.find_first_not_of(" \t\r\n")] != '{')
    return "";
  const std::size_t key = head.find("\"schema\"");
  if (key == std::string::npos) return "";
  const std::size_t begin = head.find("\"purlin.", key);
  if (begin == std::string::npos || begin > key + 12) return "";
  return head.substr(begin + 1, head.find('"', begin + 1) - begin - 1);
}

Result<std::vector<Json>> parse_lines(std::string_view text) {
  std::vector<Json> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;  // a torn line does not count
    if (end > at) {
      PURLIN_ASSIGN(Json line, Json::parse(text.substr(at, end - at)));
      lines.push_back(std::move(line));
    }
    at = end + 1;
  }
  return lines;
}

Result<Json> pairs_of_journal(std::string_view text) {
  PURLIN_ASSIGN(const std::vector<Json> lines, parse_lines(text));
  Json document = lines.empty() ? Json::object() : lines.front();
  Json pairs = Json::array();
  for (const Json& line : lines)
    for (const Json& event : line["events"].items()) pairs.push(event);
  document.set("schema", "purlin.page-pairs/1").set("events", std::move(pairs));
  return document;
}

Result<Json> history_of(const std::string& path) {
  PURLIN_ASSIGN(const guard::History history, guard::load_history({path}));
  return guard::history_document(history, guard::analyse_history(history, {}));
}

// Of a session's folder, its journal.
std::string file_to_read(const std::string& given) {
  const std::string journal = join_path(given, "journal.jsonl");
  return is_directory(given) && file_exists(journal) ? journal : given;
}

// The documents of one of Purlin's files, or none for a profile.
Result<std::vector<Json>> documents_in(const std::string& given) {
  const std::string path = file_to_read(given);
  const std::string schema = is_directory(path) ? "purlin.history/1" : schema_of_file(path);
  const std::string_view name = schema_name(schema);
  // An exported timeline is read as a profile, like any Chrome trace.
  if (schema.empty() || name == "purlin.chrome") return std::vector<Json>();
  if (name == "purlin.history" || name == "purlin.baseline" || name == "purlin.guard-run") {
    PURLIN_ASSIGN(Json document, history_of(path));
    return std::vector<Json>{std::move(document)};
  }
  if (name != "purlin.session" && name != "purlin.guard-pairs" && view_of(schema) == nullptr)
    return error(Code::kInvalid, "'{}' is a {} document, which has no view", given, schema);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMostOfDocument));
  Result<Json> document = name == "purlin.session"       ? tune_of_journal(text)
                          : name == "purlin.guard-pairs" ? pairs_of_journal(text)
                                                         : Json::parse(text);
  if (!document.is_ok()) return document.status().with_context(given);
  if (name == "purlin.session") document.value().set("journal", absolute_path(path));
  if (name != "purlin.tune-set") return std::vector<Json>{std::move(document).value()};
  return document.value()["results"].items();
}

// "tune", "tune-1", …: of several documents of one kind.
class NamesOfDocuments {
 public:
  std::string next(std::string_view name) {
    const int number = counts_[std::string(name)]++;
    return number == 0 ? std::string(name) : fmt::format("{}-{}", name, number);
  }

 private:
  std::map<std::string, int> counts_;
};

}  // namespace

std::vector<FileStamp> stamps_of_files(const std::vector<std::string>& files) {
  std::vector<FileStamp> stamps;
  for (const std::string& file : files) stamps.push_back(file_stamp(file_to_read(file)));
  return stamps;
}

Result<Json> tune_of_journal(std::string_view text) {
  PURLIN_ASSIGN(const std::vector<Json> lines, parse_lines(text));
  Json document = lines.empty() ? Json::object() : lines.front();
  Json evaluations = Json::array(), end;
  for (const Json& line : lines) {
    if (const Json* evaluation = line.find("evaluation"); evaluation != nullptr)
      evaluations.push(*evaluation);
    if (const Json* finished = line.find("finished"); finished != nullptr) end = *finished;
  }
  document.set("schema", "purlin.tune/1").set("evaluations", std::move(evaluations));
  document.set("strategy_used", document["strategy"]).set("end", end);
  document.set("of_journal", true);  // without finals
  return document;
}

Result<page::Page> page_of_files(const Context& context, const std::vector<std::string>& files) {
  page::Page page;
  NamesOfDocuments names;
  std::vector<std::string> profiles;
  for (const std::string& file : files) {
    PURLIN_ASSIGN(std::vector<Json> documents, documents_in(file));
    if (documents.empty()) profiles.push_back(file);
    for (Json& document : documents) {
      const PageView* view = view_of(document["schema"].as_string());
      if (view == nullptr)
        return error(Code::kInvalid, "'{}': {} has no view", file, document["schema"].as_string());
      if (page.view.empty()) page.view = view->view;
      if (page.title.empty()) page.title = document["kernel"].as_string();
      page.documents.emplace_back(names.next(view->document), std::move(document));
    }
  }
  const analyze::TrackRecords records =
      profiles.empty() ? analyze::TrackRecords{} : analyze::track_records(read_outcomes(context));
  analyze::AdviceOptions options;
  options.records = &records;
  Profile first;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    PURLIN_ASSIGN(Profile profile, read_profiles(context, std::vector<std::string>{profiles[i]}));
    if (i > 0) {
      PURLIN_ASSIGN(analyze::Diff diff, analyze::diff_profiles(first, profile));
      diff.a.path = profiles[0];
      diff.b.path = profiles[i];
      page.documents.emplace_back(names.next("diff"), analyze::to_json(diff));
    } else if (profiles.size() > 1) {
      first = profile;
    }
    const std::vector<Ceilings> measured = measured_ceilings(profile.environment);
    PURLIN_ASSIGN(analyze::AnalysedPage analysed,
                  analyze::analyse_for_page(std::move(profile), profiles[i], i, measured, options));
    page.files.push_back(std::move(analysed.file));
    for (page::Document& document : analysed.documents)
      page.documents.push_back(std::move(document));
  }
  add_kernel_cache(context, page);
  if (!profiles.empty()) page.view = profiles.size() > 1 ? "compare" : "overview";
  if (page.title.empty()) page.title = join(files, " ");
  return page;
}

}  // namespace purlin::cli
