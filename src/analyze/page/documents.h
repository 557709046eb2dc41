// SPDX-License-Identifier: Apache-2.0
// The page's documents of a profile: report, the rows beyond it, advice, timeline, and the timeline
// after each of the first changes that were estimated by replay (docs/formats/page.md). Pure
// functions over values.
#pragma once

#include "analyze/advise/advice.h"
#include "analyze/page/report_document.h"
#include "analyze/report/report.h"
#include "analyze/timeline/timeline.h"
#include "base/status.h"
#include "model/profile/profile.h"
#include "page/document.h"

#include <string>
#include <vector>

namespace purlin::analyze {

struct PageOfProfile {
  // With the whole recording's timeline; `profile` is cut to the phase that report and advice are
  // of.
  const Profile& whole;
  const Profile& profile;
  const Report& report;     // with its timeline's analysis
  const Report& by_launch;  // the same, one row per launch shape
  const Advice& advice;
  const std::vector<Ceilings>& measured;
};

// `file`: the profile's place among those of the page, a suffix of the documents' names.
std::vector<page::Document> documents_of(const PageOfProfile& input, std::size_t file,
                                         const PageLimits& limits = {});

// What the page shows of a profile where several can be chosen.
Json page_file(const Report& report, const std::string& path);

// Analyses a profile as `purlin report` does by default.
struct AnalysedPage {
  Json file;
  std::vector<page::Document> documents;
};
Result<AnalysedPage> analyse_for_page(Profile profile, const std::string& path, std::size_t file,
                                      const std::vector<Ceilings>& measured,
                                      const AdviceOptions& options = {});

}  // namespace purlin::analyze
