// SPDX-License-Identifier: Apache-2.0
// The list of verbs. A new verb is a file with a Command and a make_ function, and a line here.
#include "cli/commands.h"

#include "cli/frame/command.h"

namespace purlin::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_doctor_command());
  commands.push_back(make_profile_command());
  commands.push_back(make_capture_command());
  commands.push_back(make_report_command());
  commands.push_back(make_diff_command());
  commands.push_back(make_advise_command());
  commands.push_back(make_view_command());
  commands.push_back(make_import_command());
  commands.push_back(make_export_command());
  commands.push_back(make_init_command());
  commands.push_back(make_tune_command());
  commands.push_back(make_space_command());
  commands.push_back(make_cache_ls_command());
  commands.push_back(make_cache_get_command());
  commands.push_back(make_cache_put_command());
  commands.push_back(make_cache_import_command());
  commands.push_back(make_cache_export_command());
  commands.push_back(make_cache_merge_command());
  commands.push_back(make_cache_verify_command());
  commands.push_back(make_cache_gc_command());
  commands.push_back(make_cache_repair_command());
  commands.push_back(make_cache_push_command());
  commands.push_back(make_cache_pull_command());
  commands.push_back(make_backlog_command());
  commands.push_back(make_worker_pool_command());
  commands.push_back(make_guard_run_command());
  commands.push_back(make_guard_check_command());
  commands.push_back(make_guard_compare_command());
  commands.push_back(make_guard_baseline_command());
  commands.push_back(make_guard_history_command());
  commands.push_back(make_guard_bisect_command());
  commands.push_back(make_guard_matrix_command());
  commands.push_back(make_serve_command());
  commands.push_back(make_collect_command());
  commands.push_back(make_env_command());
  commands.push_back(make_store_init_command());
  commands.push_back(make_store_migrate_command());
  commands.push_back(make_store_check_command());
  commands.push_back(make_store_release_command());
  commands.push_back(make_demo_command());
  commands.push_back(make_config_command());
  commands.push_back(make_completion_command());
  commands.push_back(make_manual_command());
  commands.push_back(make_worker_command());
  commands.push_back(make_keep_clock_command());
  commands.push_back(make_keep_folder_command());
  return commands;
}

}  // namespace purlin::cli
