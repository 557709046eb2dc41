// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/command.h"

int main(int argc, char** argv) { return purlin::cli::run_cli(argc, argv); }
