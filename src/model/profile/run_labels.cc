// SPDX-License-Identifier: Apache-2.0
#include "model/profile/run_labels.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace purlin {
namespace {

struct LabelField {
  const char* key;
  std::string RunLabels::*value;
};
constexpr LabelField kLabelFields[] = {
    {"host", &RunLabels::host},           {"user", &RunLabels::user},
    {"scheduler", &RunLabels::scheduler}, {"job", &RunLabels::job},
    {"container", &RunLabels::container}, {"pod", &RunLabels::pod}};

bool before(const RunLabels& a, const RunLabels& b) {
  const auto key = [](const RunLabels& labels) {
    return std::tie(labels.host, labels.user, labels.scheduler, labels.job, labels.container,
                    labels.pod);
  };
  return key(a) < key(b);
}

}  // namespace

void set_label(RunLabels& labels, std::string_view key, std::string value) {
  for (const LabelField& field : kLabelFields)
    if (key == field.key) {
      labels.*field.value = std::move(value);
      return;
    }
}

Json to_json(const RunLabels& labels) {
  Json json = Json::object();
  for (const LabelField& field : kLabelFields)
    if (const std::string& value = labels.*field.value; !value.empty()) json.set(field.key, value);
  return json;
}

RunLabels labels_from_json(const Json& json) {
  RunLabels labels;
  for (const LabelField& field : kLabelFields) labels.*field.value = json[field.key].as_string();
  return labels;
}

std::string to_text(const RunLabels& labels) {
  std::string text;
  const auto add = [&](const std::string& what, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : ", ") + what + " " + value;
  };
  add("host", labels.host);
  add("user", labels.user);
  add(labels.scheduler.empty() ? "job" : labels.scheduler + " job", labels.job);
  add("container", labels.container.substr(0, 12));  // as much as container tools show
  add("pod", labels.pod);
  return text;
}

void merge_label(std::vector<RunLabels>& into, const RunLabels& labels) {
  const auto place = std::lower_bound(into.begin(), into.end(), labels, before);
  if (!labels.empty() && (place == into.end() || !(*place == labels))) into.insert(place, labels);
}

}  // namespace purlin
