// SPDX-License-Identifier: Apache-2.0
#include "blobs/s3_xml.h"

#include "base/text.h"

#include <ctime>
#include <pugixml.hpp>

namespace purlin::blobs {
namespace {

constexpr std::size_t kMaxBlobs = 10'000;  // a page holds 1000

// The element `name` at the top of a document; an empty node where it is not that document.
pugi::xml_node top(pugi::xml_document& document, std::string_view xml, const char* name) {
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  return document.child(name);
}

// "2026-11-20T12:43:00.000Z"; 0 where it is no such time.
std::int64_t time_ns(const char* text) {
  std::tm parts{};
  const char* end = ::strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return 0;
  // Years 0 to 9999 are read; nanoseconds hold those from 1678 to 2261.
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(std::int64_t{::timegm(&parts)}, std::int64_t{1'000'000'000}, &ns))
    return 0;
  return ns;
}

}  // namespace

Result<ListPage> parse_list_page(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_node listing = top(document, xml, "ListBucketResult");
  if (!listing) return error(Code::kInvalid, "the answer to a listing is not a listing");
  ListPage page;
  for (const pugi::xml_node& contents : listing.children("Contents")) {
    if (page.blobs.size() == kMaxBlobs)
      return error(Code::kInvalid, "a page of a listing has more than {} objects", kMaxBlobs);
    page.blobs.push_back(
        {contents.child_value("Key"),
         static_cast<std::uint64_t>(parse_int(contents.child_value("Size")).value_or(0)),
         time_ns(contents.child_value("LastModified"))});
  }
  if (std::string_view(listing.child_value("IsTruncated")) == "true") {
    page.next = listing.child_value("NextContinuationToken");
    if (page.next.empty())
      return error(Code::kInvalid, "a listing that goes on says not where (list-type=2 is needed)");
  }
  return page;
}

S3Error parse_s3_error(std::string_view xml) {
  pugi::xml_document document;
  pugi::xml_node body = top(document, xml, "Error");
  // The token service puts it one level lower.
  if (!body) body = document.child("ErrorResponse").child("Error");
  return {body.child_value("Code"), body.child_value("Message")};
}

Result<Credentials> parse_assumed_role(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_node found = top(document, xml, "AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  return checked_credentials(
      {found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"),
       found.child_value("SessionToken")},
      found.child_value("Expiration"));
}

}  // namespace purlin::blobs
