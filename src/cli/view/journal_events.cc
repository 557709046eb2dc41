// SPDX-License-Identifier: Apache-2.0
#include "cli/view/journal_events.h"

#include "base/files.h"
#include "base/json/json.h"

#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace purlin::cli {
namespace {

constexpr std::size_t kMostOfPiece = std::size_t{4} << 20;  // bytes of a journal at once

// Whole lines from there on, at most kMostOfPiece of them.
std::string lines_from(const std::string& path, std::uint64_t at) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file || ::fseeko(file.get(), static_cast<off_t>(at), SEEK_SET) != 0) return "";
  std::string text(kMostOfPiece, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace

JournalEvents::JournalEvents(std::vector<Journal> journals) {
  for (Journal& journal : journals) followed_.push_back({std::move(journal)});
}

std::string JournalEvents::next() {
  std::string events;
  for (Followed& followed : followed_) events += next_of(followed);
  return events;
}

std::string JournalEvents::next_of(Followed& followed) {
  const Result<std::uint64_t> size = file_size(followed.journal.path);
  if (!size.is_ok() || *size == followed.at) return "";
  const bool again = *size < followed.at;  // `purlin tune --fresh` began again
  if (again) followed = {{followed.journal.path, followed.journal.document, 0}};
  const std::string text = lines_from(followed.journal.path, followed.at);
  followed.at += text.size();
  Json evaluations = Json::array(), end;
  std::size_t first = followed.seen;
  bool news = again;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = text.find('\n', at);
    const Result<Json> line = Json::parse(std::string_view(text).substr(at, line_end - at));
    at = line_end + 1;
    if (!line.is_ok()) continue;
    if (const Json* evaluation = line->find("evaluation"); evaluation != nullptr) {
      if (followed.seen++ < followed.journal.known) {
        first = followed.seen;
        continue;
      }
      evaluations.push(*evaluation);
      end = Json();  // it went on after an earlier end
      news = true;
    }
    if (const Json* finished = line->find("finished"); finished != nullptr) {
      end = *finished;
      news = true;
    }
  }
  if (!news) return "";
  const Json event = Json::object({{"document", followed.journal.document},
                                   {"first", first},
                                   {"evaluations", std::move(evaluations)},
                                   {"end", std::move(end)}});
  return "data: " + event.dump() + "\n\n";
}

}  // namespace purlin::cli
