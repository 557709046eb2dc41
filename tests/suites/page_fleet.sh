#!/usr/bin/env bash
# The page of a fleet's server in a browser: every view, with axe-core (web/test/run.mjs).
# timeout: 420
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

look_at fleet
