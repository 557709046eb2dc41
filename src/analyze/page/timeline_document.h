// SPDX-License-Identifier: Apache-2.0
// The timeline as a document of the page, `purlin.page-timeline/1` (docs/formats/page.md): every
// slice of every stream and host thread in typed arrays, laid out in rows without overlap. Work has
// a link to the call that launched it. Idle intervals, steps and phases are tracks too. Pure
// function; the profile's timeline must be sorted.
#pragma once

#include "analyze/report/report.h"
#include "analyze/timeline/timeline.h"
#include "model/profile/profile.h"
#include "page/document.h"

#include <optional>
#include <string>

namespace purlin::analyze {

// `group_by`: of the report whose row ids the slices name. Nothing where there is no timeline.
std::optional<page::Document> timeline_document(std::string name, const Profile& profile,
                                                const TimelineAnalysis& analysis, GroupBy group_by);

}  // namespace purlin::analyze
