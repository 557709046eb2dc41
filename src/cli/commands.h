// SPDX-License-Identifier: Apache-2.0
// The make_ function of each verb, defined in the verb's own file.
#pragma once

#include <memory>

namespace purlin::cli {

class Command;

std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_profile_command();
std::unique_ptr<Command> make_capture_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_diff_command();
std::unique_ptr<Command> make_advise_command();
std::unique_ptr<Command> make_view_command();
std::unique_ptr<Command> make_import_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_init_command();
std::unique_ptr<Command> make_tune_command();
std::unique_ptr<Command> make_space_command();
std::unique_ptr<Command> make_cache_ls_command();
std::unique_ptr<Command> make_cache_get_command();
std::unique_ptr<Command> make_cache_put_command();
std::unique_ptr<Command> make_cache_import_command();
std::unique_ptr<Command> make_cache_export_command();
std::unique_ptr<Command> make_cache_merge_command();
std::unique_ptr<Command> make_cache_verify_command();
std::unique_ptr<Command> make_cache_gc_command();
std::unique_ptr<Command> make_cache_repair_command();
std::unique_ptr<Command> make_cache_push_command();
std::unique_ptr<Command> make_cache_pull_command();
std::unique_ptr<Command> make_backlog_command();
std::unique_ptr<Command> make_worker_pool_command();
std::unique_ptr<Command> make_serve_command();
std::unique_ptr<Command> make_collect_command();
std::unique_ptr<Command> make_env_command();
std::unique_ptr<Command> make_store_init_command();
std::unique_ptr<Command> make_store_migrate_command();
std::unique_ptr<Command> make_store_check_command();
std::unique_ptr<Command> make_store_release_command();
std::unique_ptr<Command> make_guard_run_command();
std::unique_ptr<Command> make_guard_check_command();
std::unique_ptr<Command> make_guard_compare_command();
std::unique_ptr<Command> make_guard_baseline_command();
std::unique_ptr<Command> make_guard_history_command();
std::unique_ptr<Command> make_guard_bisect_command();
std::unique_ptr<Command> make_guard_matrix_command();
std::unique_ptr<Command> make_demo_command();
std::unique_ptr<Command> make_config_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_manual_command();
std::unique_ptr<Command> make_worker_command();
std::unique_ptr<Command> make_keep_clock_command();
std::unique_ptr<Command> make_keep_folder_command();

}  // namespace purlin::cli
