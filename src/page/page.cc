// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include "base/gzip.h"
#include "base/output/markup.h"
#include "base/text.h"
#include "base/version.h"
#include "page/assets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace purlin::page {
namespace {

// No browser has to hold a longer string.
constexpr std::size_t kMostOfAnElement = std::size_t{48} << 20;  // bytes, a multiple of 3
static_assert(kMostOfAnElement % 3 == 0);

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < given ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= given ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

// JSON for inside a script element: nothing in it can end the element or start another.
std::string inert(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

std::string policy(std::string_view connect, const std::string& scripts) {
  return fmt::format(
      "default-src 'none'; style-src {}; script-src {}; worker-src blob:; connect-src {}; "
      "base-uri 'none'; form-action 'none'",
      policy_source(kStyleSha256), scripts, connect);
}
std::string page_policy(std::string_view connect) {
  return policy(connect, policy_source(kScriptSha256) + " " + policy_source(kMoreSha256));
}

Json index_of(const Page& page, bool served) {
  Json documents = Json::array();
  for (const Document& document : page.documents) {
    const Json head = document.head();
    Json entry = Json::object({{"name", document.name()},
                               {"schema", head["schema"]},
                               {"bytes", document.bytes().size()}});
    if (served) entry.set("path", "documents/" + document.name());
    documents.push(std::move(entry));
  }
  return Json::object({{"schema", "purlin.page/1"},
                       {"tool_version", version()},
                       {"title", page.title},
                       {"view", page.view},
                       {"files", Json::array_of(page.files)},
                       {"documents", std::move(documents)}});
}

std::string data_element(std::string_view id, const Json& json) {
  return fmt::format("<script type=\"application/json\" id=\"purlin-{}\">", id) +
         inert(json.dump()) + "</script>\n";
}

// The arrays, gzipped: DecompressionStream unpacks them.
Status add_arrays(const Document& document, std::string& out) {
  PURLIN_ASSIGN(const std::string packed, gzip(document.bytes()));
  for (std::size_t at = 0; at < packed.size(); at += kMostOfAnElement)
    out += fmt::format("<script type=\"application/octet-stream\" id=\"purlin-{}.{}\">",
                       document.name(), at / kMostOfAnElement) +
           base64(std::string_view(packed).substr(at, kMostOfAnElement)) + "</script>\n";
  return Status::ok();
}

std::string head_of_page(const std::string& meta) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += meta;
  out +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Purlin</title>\n<style>";
  out += kStyle;
  out +=
      "</style>\n</head>\n<body>\n<noscript>This page draws its views with a script that is in "
      "this file; nothing is loaded.</noscript>\n<p class=\"begin\" id=\"purlin-begin\">Reading "
      "this "
      "page. If this text stays, the file was cut off: get it again.</p>\n";
  return out;
}

// Inert until a view needs it: the page then runs it as a script, which the policy knows.
std::string more_element() {
  std::string out = "<script type=\"text/plain\" id=\"purlin-more\">";
  out += kMoreScript;
  return out + "</script>\n";
}

std::string end_of_page(std::string_view script = kScript) {
  std::string out = "<script>";
  out += script;
  out += "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace

Result<std::string> render_file(const Page& page) {
  std::string out = head_of_page(fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", page_policy("'none'")));
  out += data_element("page", index_of(page, false));
  for (const Document& document : page.documents) {
    out += data_element(document.name(), document.head());
    if (!document.bytes().empty()) PURLIN_TRY(add_arrays(document, out));
  }
  return out + more_element() + end_of_page();
}

Result<std::string> render_shell(const Page& page) {
  return head_of_page("") + data_element("page", index_of(page, true)) + end_of_page();
}

std::string served_policy() { return page_policy("'self'") + "; frame-ancestors 'none'"; }

std::string render_fleet() { return head_of_page("") + end_of_page(kFleetScript); }

std::string fleet_policy() {
  return policy("'self'", policy_source(kFleetSha256)) + "; frame-ancestors 'none'";
}

Result<std::optional<Served>> serve(const Page& page, std::string_view path) {
  if (path == "more.js") {
    PURLIN_ASSIGN(std::string body, gzip(std::string(kMoreScript)));
    return std::optional<Served>(
        {std::move(body), "text/javascript; charset=utf-8", served_policy(), true});
  }
  for (const Document& document : page.documents) {
    const std::string stem = "documents/" + document.name();
    if (path == stem + ".json") {
      PURLIN_ASSIGN(std::string body, gzip(document.head().dump()));
      return std::optional<Served>({std::move(body), "application/json", served_policy(), true});
    }
    if (path == stem + ".bin") {
      PURLIN_ASSIGN(std::string body, gzip(document.bytes()));
      return std::optional<Served>(
          {std::move(body), "application/octet-stream", served_policy(), true});
    }
  }
  return std::optional<Served>();
}

}  // namespace purlin::page
