#!/usr/bin/env bash
# make_cli_reference.sh PURLIN: docs/reference/cli.md on stdout, from the binary's own --help.
set -euo pipefail
purlin=$(realpath "$1")
cat <<'EOF'
# Command line

Made by `scripts/make_cli_reference.sh` from `purlin VERB --help`; a test fails when the two differ.

Data goes to stdout, everything else to stderr; `--json` prints exactly one document. `NO_COLOR` is honoured.
Exit codes: **0** done or pass, **1** regression (guard), or a winner that does not stand (cache verify), **2** usage or tool error, **3** inconclusive or no baseline;
`profile` returns the command's own code. Settings (`purlin config`) supply defaults for flags of the same name.

EOF
export NO_COLOR=1
unset PURLIN_DEVICE PURLIN_CACHE PURLIN_CACHE_LAYERS PURLIN_JOBS PURLIN_STRATEGY PURLIN_COLOR PURLIN_BUILD_LABEL || true
cd / # no project settings
verbs=$("$purlin" --help | sed -n '/^Verbs:/,/^$/p' | sed -n 's/^  \([a-z]*\( [a-z]*\)\?\)  .*/\1/p')
while read -r verb; do
  printf '## purlin %s\n\n```\n' "$verb"
  # shellcheck disable=SC2086
  "$purlin" $verb --help | sed "s/[[:space:]]*$//; s#$HOME#~#g"
  printf '```\n\n'
done <<<"$verbs"
