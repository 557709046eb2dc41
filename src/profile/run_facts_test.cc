// SPDX-License-Identifier: Apache-2.0
#include "profile/run_facts.h"

#include "model/profile/run_labels.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace purlin::profile {
namespace {

std::map<std::string, std::string>& made_up_variables() {
  static std::map<std::string, std::string> variables;
  return variables;
}

RunLabels labels_of(const std::map<std::string, std::string>& variables, RunSources sources = {}) {
  made_up_variables() = variables;
  sources.variable = [](const char* name) -> const char* {
    const auto found = made_up_variables().find(name);
    return found == made_up_variables().end() ? nullptr : found->second.c_str();
  };
  RunLabels labels;
  for (const auto& [key, value] : read_run_facts(sources)) set_label(labels, key, value);
  return labels;
}

RunSources on_host(std::string host) {
  RunSources sources;
  sources.host = std::move(host);
  sources.user = "uid 1000";
  return sources;
}

const std::string kId(64, 'a');

TEST(RunFacts, JobsOfSchedulers) {
  EXPECT_EQ(to_text(labels_of({{"USER", "ada"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}},
                              on_host("gpu07"))),
            "host gpu07, user ada, slurm job 4711.0");
  EXPECT_EQ(labels_of({{"JOB_ID", "12"}, {"SGE_TASK_ID", "undefined"}}).job, "12");
  EXPECT_EQ(labels_of({{"LSB_JOBID", "12"}, {"LSB_JOBINDEX", "0"}}).job, "12");
  EXPECT_EQ(labels_of({{"LSB_JOBID", "12"}, {"LSB_JOBINDEX", "3"}}).job, "12.3");
  EXPECT_EQ(labels_of({}, on_host("a")).job, "");
}

TEST(RunFacts, AUserWithoutAVariableIsANumber) {
  EXPECT_EQ(labels_of({}, on_host("a")).user, "uid 1000");
  EXPECT_EQ(labels_of({{"LOGNAME", "ada"}}, on_host("a")).user, "ada");
}

TEST(RunFacts, ContainersOfEngines) {
  RunSources docker;
  docker.cgroup = "12:devices:/docker/" + kId + "\n0::/\n";
  EXPECT_EQ(labels_of({}, docker).container, kId);
  RunSources hidden;  // cgroup 2 with its own namespace
  hidden.cgroup = "0::/\n";
  hidden.mountinfo = "9 1 0:5 / /proc rw - proc proc rw\n7 1 8:1 /var/lib/docker/containers/" +
                     kId + "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(labels_of({}, hidden).container, kId);
  RunSources engine;  // the host on which containers run
  engine.mountinfo = "7 1 0:9 / /var/lib/docker/overlay2/" + kId + "/merged rw - overlay x rw\n";
  EXPECT_EQ(labels_of({}, engine).container, "");
  EXPECT_EQ(labels_of({{"APPTAINER_NAME", "torch.sif"}}).container, "torch.sif");
}

TEST(RunFacts, PodsOfKubernetes) {
  const std::string service = "10.0.0.1";
  EXPECT_EQ(labels_of({{"KUBERNETES_SERVICE_HOST", service}}, on_host("train-0")).pod, "train-0");
  EXPECT_EQ(
      labels_of(
          {{"KUBERNETES_SERVICE_HOST", service}, {"POD_NAME", "train-0"}, {"POD_NAMESPACE", "ml"}})
          .pod,
      "ml/train-0");
  EXPECT_EQ(labels_of({{"POD_NAME", "train-0"}}).pod, "");
}

TEST(RunFacts, AnonymousProcessesHaveNone) {
  ::setenv("PURLIN_ANONYMOUS", "1", 1);
  EXPECT_TRUE(facts_of_this_run().empty());
  ::unsetenv("PURLIN_ANONYMOUS");
  EXPECT_FALSE(facts_of_this_run().empty());
}

}  // namespace
}  // namespace purlin::profile
