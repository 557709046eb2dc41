// SPDX-License-Identifier: Apache-2.0
#include "cli/page/page_views.h"

#include <string>
#include <utility>

namespace purlin::cli {
namespace {

constexpr PageView kPageViews[] = {
    {"purlin.tune", "tune", "tuning"},          {"purlin.tune-set", "tune", "tuning"},
    {"purlin.guard", "guard", "guard"},         {"purlin.guard-history", "history", "guard"},
    {"purlin.guard-matrix", "matrix", "guard"}, {"purlin.guard-bisect", "bisect", "guard"},
    {"purlin.page-pairs", "pairs", "guard"},    {"purlin.report", "report", "overview"},
    {"purlin.advise", "advice", "advice"},      {"purlin.diff", "diff", "compare"},
    {"purlin.cache", "cache", "cache"},
};

}  // namespace

std::string_view schema_name(std::string_view schema) { return schema.substr(0, schema.find('/')); }

const PageView* view_of(std::string_view schema) {
  for (const PageView& view : kPageViews)
    if (view.schema == schema_name(schema)) return &view;
  return nullptr;
}

page::Page page_of_document(Json document) {
  page::Page page;
  const PageView* view = view_of(document["schema"].as_string());
  page.view = view == nullptr ? "overview" : view->view;
  page.title = document["kernel"].as_string();
  if (page.title.empty()) page.title = document["suite"].as_string();
  page.documents.emplace_back(view == nullptr ? "document" : std::string(view->document),
                              std::move(document));
  return page;
}

}  // namespace purlin::cli
