#!/usr/bin/env bash
# make_cli_reference.sh PURLIN: prints docs/reference/cli.md, from the texts of the binary's --help.
set -euo pipefail
purlin=$(realpath "$1")
cd /  # without the settings of a project
exec "$purlin" manual
