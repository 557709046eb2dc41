// SPDX-License-Identifier: Apache-2.0
// `purlin view`: shows files as a page, in the browser.
#include "base/os/process.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/frame/answer.h"
#include "cli/frame/interrupt.h"
#include "cli/view/journal_events.h"
#include "cli/view/page_files.h"
#include "fleet/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace purlin::cli {
namespace {

constexpr std::int64_t kBetweenLooksNs = 100'000'000;  // for Ctrl-C
constexpr int kQuietPieces = 75;  // some 15 s: then a comment shows whether the reader is there
constexpr std::size_t kMostJournals = 64;

using PageHeaders = std::vector<std::pair<std::string, std::string>>;

// Answers requests for one page. Other sites cannot read it by a name that they let point here.
class ViewHandler : public fleet::HttpHandler {
 public:
  ViewHandler(const Context& context, std::vector<std::string> files, page::Page page)
      : context_(context),
        files_(std::move(files)),
        page_(std::move(page)),
        stamps_(stamps_of_files(files_)) {}
  void set_port(std::uint16_t port) { port_ = port; }

  std::optional<fleet::HttpAnswer> early(const fleet::HttpHead& head) override {
    const std::string_view host = head.header("host");
    if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_))
      return plain(403, "this page is for this machine only");
    if (head.method != "GET" && head.method != "HEAD") return plain(405, "only GET");
    return std::nullopt;
  }
  fleet::HttpAnswer answer(const fleet::HttpHead& head, const std::string&) override {
    const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
    const std::lock_guard lock(mutex_);
    if (path == "/events") return events(head.target);
    if (path == "/") {
      read_again();
      const Result<std::string> shell = page::render_shell(page_);
      if (!shell.is_ok()) return plain(500, shell.status().message());
      return {200, shell.value(), headers(page::served_policy()), "text/html; charset=utf-8"};
    }
    const Result<std::optional<page::Served>> found = page::serve(page_, path.substr(1));
    if (!found.is_ok()) return plain(500, found.status().message());
    if (!found.value()) return plain(404, "not found");
    PageHeaders all = headers(found.value()->policy);
    if (found.value()->gzipped) all.emplace_back("Content-Encoding", "gzip");
    return {200, found.value()->body, std::move(all), found.value()->content_type};
  }
  void answered(const fleet::HttpHead&, const fleet::HttpAnswer&, std::optional<double>) override {}

 private:
  static PageHeaders headers(const std::string& policy) {
    return {{"Content-Security-Policy", policy},
            {"X-Content-Type-Options", "nosniff"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
            {"Cache-Control", "no-store"}};
  }
  static fleet::HttpAnswer plain(int status, const std::string& text) {
    return {status, text + "\n", headers("default-src 'none'"), "text/plain; charset=utf-8"};
  }
  // Files that were written since: a session went on, or a program was profiled again.
  void read_again() {
    std::vector<FileStamp> now = stamps_of_files(files_);
    if (now == stamps_) return;
    if (Result<page::Page> again = page_of_files(context_, files_); again.is_ok())
      page_ = std::move(again).value();
    stamps_ = std::move(now);
  }
  // "/events?tune=12&tune-1=0": the page has so many evaluations of each.
  fleet::HttpAnswer events(std::string_view target) const {
    std::vector<JournalEvents::Journal> journals;
    for (const page::Document& document : page_.documents) {
      const std::string journal = document.head()["journal"].as_string();
      if (journal.empty() || journals.size() == kMostJournals) continue;
      const std::string known = query_value(target, document.name());
      journals.push_back(
          {journal, document.name(),
           static_cast<std::size_t>(std::max<std::int64_t>(0, parse_int(known).value_or(0)))});
    }
    fleet::HttpAnswer answer{200, ": purlin\n\n", headers(page::served_policy()),
                             "text/event-stream"};
    answer.more = [events = std::make_shared<JournalEvents>(std::move(journals)),
                   quiet = 0]() mutable -> std::optional<std::string> {
      std::string text = events->next();
      quiet = text.empty() ? quiet + 1 : 0;
      if (quiet < kQuietPieces) return text;
      quiet = 0;
      return ":\n\n";
    };
    return answer;
  }
  static std::string query_value(std::string_view target, std::string_view name) {
    for (std::size_t at = target.find_first_of("?&"); at != std::string_view::npos;) {
      const std::size_t end = target.find('&', at + 1);
      const std::string_view part = target.substr(at + 1, end - at - 1);
      if (part.substr(0, part.find('=')) == name && part.size() > name.size())
        return std::string(part.substr(name.size() + 1));
      at = end;
    }
    return "";
  }

  const Context& context_;
  const std::vector<std::string> files_;
  std::mutex mutex_;
  page::Page page_;                // under the mutex
  std::vector<FileStamp> stamps_;  // of files_ when page_ was made; under the mutex
  std::uint16_t port_ = 0;
};

// The user's browser, where there is one; BROWSER as other tools read it.
bool open_browser(const std::string& url) {
  const char* browser = std::getenv("BROWSER");
  Process::Options options;
  options.argv = {browser != nullptr && *browser != '\0' ? browser : "xdg-open", url};
  options.out = options.err = Process::Stream::kNull;
  Result<Process> opened = Process::start(options);
  if (!opened.is_ok()) return false;
  const std::optional<Exit> exit = opened.value().wait(5);
  return !exit || exit->ok();
}

class View : public Command {
 public:
  std::string_view name() const override { return "view"; }
  std::string_view summary() const override { return "Show profiles and results in the browser"; }
  VerbText text() const override {
    return {
        .description =
            "Opens one page with these views: overview, kernels, roofline, timeline and advice of "
            "a profile, the comparison of several profiles with the first, a tuning run, and "
            "verdicts of the guard. It reads profiles of Purlin and of other tools, and Purlin's "
            "own JSON documents, histories and journals.",
        .more =
            "The page is served on this machine only, until Ctrl-C. `purlin report --html` and "
            "`purlin diff --html` write the same page as one file. A session of `purlin tune` that "
            "is under way is shown live: give its folder. The page reads files again when it is "
            "loaded again.",
        .examples = {{"purlin view run.plprof"},
                     {"purlin view before.json.gz after.json.gz"},
                     {"purlin view --no-open tuned.json verdict.json pairs.jsonl"}},
        .exit_codes = {{0, "Stopped"}, {2, "A file cannot be read, or the port is taken"}},
        .see = {"docs/guide/page.md", "docs/formats/page.md"}};
  }
  void declare(Flags& flags) override {
    flags.positionals("FILE", files_, "Profiles, or JSON documents of Purlin");
    flags.option("--port", port_, "Port of this machine, 0 for a free one");
    flags.flag("--no-open", no_open_, "Print the address, and open no browser");
    flags.flag("--json", json_,
               {"Print the address as one JSON document", "The schema is purlin.view/1."});
  }

  Result<int> run(Context& context) override {
    if (port_ < 0 || port_ > 65535)
      return error(Code::kInvalid, "--port {} is not a port: 0 to 65535", port_);
    PURLIN_ASSIGN(page::Page page, page_of_files(context, files_));
    ViewHandler handler(context, files_, std::move(page));
    const Interrupt interrupt;
    fleet::HttpServerOptions options;
    options.port = static_cast<std::uint16_t>(port_);
    options.handler_threads = 2;
    PURLIN_ASSIGN(const std::unique_ptr<fleet::HttpServer> server,
                  fleet::HttpServer::start(options, handler));
    handler.set_port(server->port());
    const std::string url = server->url() + "/";
    answer(context, json_, document_of("purlin.view/1", {{"url", url}}),
           fmt::format("the page is at {} until Ctrl-C\n", url));
    std::fflush(context.out);
    if (!no_open_ && !open_browser(url))
      context.log.warn("no browser could be started: open {}", url);
    while (!Interrupt::requested()) system_clock().sleep_ns(kBetweenLooksNs);
    server->stop(1);
    return kExitOk;
  }

 private:
  std::vector<std::string> files_;
  int port_ = 0;
  bool no_open_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_view_command() { return std::make_unique<View>(); }

}  // namespace purlin::cli
