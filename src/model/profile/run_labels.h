// SPDX-License-Identifier: Apache-2.0
// Where and for whom a program ran: the labels by which a profile is found among those of a fleet.
//
// A plain value; "" is not known, or left out (`purlin profile --anonymous`).
#pragma once

#include "base/json/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct RunLabels {
  std::string host, user;
  std::string scheduler, job;  // "slurm", "4711.0": a job and its step
  std::string container;       // id, or the name of an image's instance
  std::string pod;             // "namespace/name"

  bool empty() const { return *this == RunLabels(); }
  bool operator==(const RunLabels&) const = default;
};

// By its key in the document; an unknown key is ignored.
void set_label(RunLabels& labels, std::string_view key, std::string value);
// Without the labels that are not known.
Json to_json(const RunLabels& labels);
RunLabels labels_from_json(const Json& json);
// "host gpu07, user ada, slurm job 4711.0"; "" of labels that are all unknown.
std::string to_text(const RunLabels& labels);
// Adds it where it is not there yet, in an order that does not depend on the order of calls.
void merge_label(std::vector<RunLabels>& into, const RunLabels& labels);

}  // namespace purlin
