#!/usr/bin/env bash
# make_cli_reference.sh PURLIN [PAGE]: prints docs/reference/PAGE.md from the texts of the binary: cli (the default)
# or environment.
set -euo pipefail
purlin=$(realpath "$1")
cd /  # without the settings of a project
exec "$purlin" manual --page "${2:-cli}"
