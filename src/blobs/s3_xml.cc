// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_xml.h"

#include "base/text.h"

#include <ctime>
#include <optional>

namespace purlin::blobs {
namespace {

constexpr std::size_t kMaxBlobs = 10'000;  // a page holds 1000

// What is between <NAME…> and </NAME>, the first from *at on, which is moved past it. Elements of
// one name do not nest in these answers.
std::optional<std::string_view> element(std::string_view xml, std::string_view name,
                                        std::size_t* at) {
  const std::string open = "<" + std::string(name), close = "</" + std::string(name) + ">";
  for (std::size_t from = xml.find(open, *at); from != std::string_view::npos;
       from = xml.find(open, from + 1)) {
    const std::size_t after = from + open.size();
    if (after >= xml.size()) return std::nullopt;
    const char next = xml[after];
    if (next != '>' && next != ' ' && next != '\n' && next != '/') continue;  // a longer name
    const std::size_t end = xml.find('>', after);
    if (end == std::string_view::npos) return std::nullopt;
    if (xml[end - 1] == '/') {
      *at = end + 1;
      return std::string_view();
    }
    const std::size_t stop = xml.find(close, end + 1);
    if (stop == std::string_view::npos) return std::nullopt;
    *at = stop + close.size();
    return xml.substr(end + 1, stop - end - 1);
  }
  return std::nullopt;
}

std::string text_of(std::string_view xml, std::string_view name) {
  std::size_t at = 0;
  const std::string_view raw = element(xml, name, &at).value_or("");
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'},  {"&lt;", '<'},    {"&gt;", '>'},
      {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}};
  std::string text;
  for (std::size_t i = 0; i < raw.size();) {
    bool replaced = false;
    for (const auto& [entity, character] : kEntities)
      if (starts_with(raw.substr(i), entity)) {
        text += character;
        i += entity.size();
        replaced = true;
        break;
      }
    if (!replaced) text += raw[i++];
  }
  return text;
}

// "2026-11-20T12:43:00.000Z"; 0 where it is no such time.
std::int64_t time_ns(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return 0;
  // Years 0 to 9999 are read; nanoseconds hold those from 1678 to 2261.
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(std::int64_t{::timegm(&parts)}, std::int64_t{1'000'000'000}, &ns))
    return 0;
  return ns;
}

}  // namespace

Result<ListPage> parse_list_page(std::string_view xml) {
  std::size_t at = 0;
  const std::optional<std::string_view> listing = element(xml, "ListBucketResult", &at);
  if (!listing) return error(Code::kInvalid, "the answer to a listing is not a listing");
  ListPage page;
  at = 0;
  while (const auto contents = element(*listing, "Contents", &at)) {
    if (page.blobs.size() == kMaxBlobs)
      return error(Code::kInvalid, "a page of a listing has more than {} objects", kMaxBlobs);
    page.blobs.push_back(
        {text_of(*contents, "Key"),
         static_cast<std::uint64_t>(parse_int(text_of(*contents, "Size")).value_or(0)),
         time_ns(text_of(*contents, "LastModified"))});
  }
  if (text_of(*listing, "IsTruncated") == "true") {
    page.next = text_of(*listing, "NextContinuationToken");
    if (page.next.empty())
      return error(Code::kInvalid, "a listing that goes on says not where (list-type=2 is needed)");
  }
  return page;
}

S3Error parse_s3_error(std::string_view xml) {
  std::size_t at = 0;
  const std::string_view body = element(xml, "Error", &at).value_or("");
  return {text_of(body, "Code"), text_of(body, "Message")};
}

}  // namespace purlin::blobs
