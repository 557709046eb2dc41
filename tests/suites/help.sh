# The texts of the command line: --help, man pages, completions, all from one source.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd /

# Every verb: lines of at most 100 columns, and one line for each option.
verbs=$("$PURLIN" --help | sed -n '/^Verbs:/,/^$/p' | sed -n 's/^  \([a-z]*\( [a-z]*\)\?\)  .*/\1/p' | sed 's/ *$//')
[ "$(wc -l <<<"$verbs")" -ge 30 ] || fail "--help lists too few verbs: $verbs"
while read -r verb; do
  # shellcheck disable=SC2086
  "$PURLIN" $verb --help >"$tmp/help"
  wide=$(LC_ALL=C.UTF-8 awk 'length($0) > 100' "$tmp/help")
  [ -z "$wide" ] || fail "purlin $verb --help is wider than 100 columns: $wide"
  # A row is an option's name, two blanks or more, its text. Deeper lines would continue a text.
  rows=$(sed -n '/^\(Arguments\|Options\|Common options\):$/,/^$/p' "$tmp/help" | grep -v -e ':$' -e '^$')
  bad=$(grep -v -E '^ {2,6}[^ ].* {2,}[^ ]' <<<"$rows" || true)
  [ -z "$bad" ] || fail "purlin $verb --help: an option without a text of one line: $bad"
  expect_contains "$tmp/help" "Usage: purlin $verb" "Exit codes:" "More: man purlin-${verb// /-}"
  # `help VERB` prints the same text.
  # shellcheck disable=SC2086
  "$PURLIN" help $verb | diff "$tmp/help" - >&2 || fail "purlin help $verb"
  rows=$(grep -E '^ {2,6}-' <<<"$rows" | sed -E 's/^ +//; s/ {2,}.*//; s/[[ =].*//; s/,.*//')
  printf '%s\n' "$rows" | sed "s/^/$verb|/" >>"$tmp/options"
done <<<"$verbs"
expect_exit 0 purlin help
expect_contains "$tmp/out" "Usage: purlin VERB" "completion"
expect_exit 0 purlin help cache
expect_contains "$tmp/out" "Usage: purlin cache VERB"
expect_exit 2 purlin help tnue
expect_contains "$tmp/err" "unknown verb 'tnue'"
expect_exit 2 purlin completion tcsh
expect_contains "$tmp/err" "bash, zsh or fish"

# The texts do not depend on the settings, the home or the machine.
expect_exit 0 purlin manual
cp "$tmp/out" "$tmp/reference"
PURLIN_DEVICE=opencl:7 PURLIN_CACHE=/elsewhere HOME=/nowhere XDG_CACHE_HOME=/nowhere/cache expect_exit 0 purlin manual
diff "$tmp/reference" "$tmp/out" >&2 || fail "the reference depends on the environment"

# bash: completed as readline does it.
"$PURLIN" completion bash >"$tmp/purlin.bash"
bash -n "$tmp/purlin.bash" || fail "the completion of bash is no valid script"
cat >"$tmp/complete" <<'SCRIPT'
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=()
text=$2
while [[ $text =~ ^[[:space:]]*(=|[^[:space:]=]+)(.*)$ ]]; do
  COMP_WORDS+=("${BASH_REMATCH[1]}")
  text=${BASH_REMATCH[2]}
done
[[ $2 == *[[:space:]] ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_purlin
printf '%s\n' "${COMPREPLY[@]}"
SCRIPT
# completes LINE WORD…: the completions of LINE hold each WORD.
completes() {
  local line=$1 word
  shift
  bash "$tmp/complete" "$tmp/purlin.bash" "$line" >"$tmp/completions"
  for word in "$@"; do
    grep -qxF -- "$word" "$tmp/completions" || fail "'$line' is not completed with '$word': $(tr '\n' ' ' <"$tmp/completions")"
  done
}
mkdir -p "$tmp/files/folder"
touch "$tmp/files/run.plprof"
cd "$tmp/files"
completes "purlin " doctor cache guard completion help version
completes "purlin pro" profile
completes "purlin cache " ls verify
completes "purlin help guard " check bisect
completes "purlin report --" --top --sort --json --help --color
completes "purlin report --so" --sort
completes "purlin report --sort " total headroom
completes "purlin report --sort=he" headroom
completes "purlin report ru" run.plprof
completes "purlin report --json ru" run.plprof
completes "purlin guard check --cache fol" folder
completes "purlin doctor --device " auto
completes "purlin completion " bash zsh fish
completes "purlin capture st" status start stop
completes "purlin profile --windows=" auto on off
completes "purlin profile -- bas" bash
bash "$tmp/complete" "$tmp/purlin.bash" "purlin report --top " >"$tmp/completions"
[ ! -s "$tmp/completions" ] || [ "$(tr -d '\n' <"$tmp/completions")" = "" ] || fail "a number is completed with files"
cd /

# Each option of each verb is in each script.
"$PURLIN" completion zsh >"$tmp/_purlin"
"$PURLIN" completion fish >"$tmp/purlin.fish"
expect_contains "$tmp/_purlin" "#compdef purlin" "_arguments"
expect_contains "$tmp/purlin.fish" "complete -c purlin"
while IFS='|' read -r verb option; do
  grep -qF -- "$option" "$tmp/purlin.bash" || fail "$verb $option is not in the completion of bash"
  grep -qF -- "$option" "$tmp/_purlin" || fail "$verb $option is not in the completion of zsh"
  case $option in
    --*) grep -qE -- "__purlin_at $verb'.* -l ${option#--}( |$)" "$tmp/purlin.fish" ;;
    *) grep -qE -- "__purlin_at $verb'.* -s ${option#-} " "$tmp/purlin.fish" ;;
  esac || fail "$verb $option is not in the completion of fish"
done <"$tmp/options"
if command -v zsh >/dev/null; then
  zsh -n "$tmp/_purlin" || fail "the completion of zsh is no valid script"
fi
if command -v fish >/dev/null; then
  fish -n "$tmp/purlin.fish" || fail "the completion of fish is no valid script"
  fish -c "source $tmp/purlin.fish; complete -C 'purlin report --sort '" >"$tmp/completions"
  expect_contains "$tmp/completions" headroom
  fish -c "source $tmp/purlin.fish; complete -C 'purlin cache '" >"$tmp/completions"
  expect_contains "$tmp/completions" verify
fi

# Man pages: one for each verb and group, whole, and without a warning where groff is installed.
expect_exit 0 purlin manual --install "$tmp/manual"
for name in purlin purlin-cache purlin-guard $(tr ' ' - <<<"$verbs" | sed 's/^/purlin-/'); do
  page=$tmp/manual/man1/$name.1
  gzip -dk "$page.gz" || fail "no man page $name.1"
  [ "$(grep -c -e '^\.TH ' -e '^\.SH NAME' -e '^\.SH SYNOPSIS' -e '^\.SH "\?SEE ALSO' "$page")" -eq 4 ] ||
    fail "$name.1 lacks a section"
  if command -v groff >/dev/null; then
    groff -man -Kutf8 -Tutf8 -ww "$page" >"$tmp/page" 2>"$tmp/warnings" || fail "groff refuses $name.1"
    [ ! -s "$tmp/warnings" ] || { cat "$tmp/warnings" >&2; fail "groff warns about $name.1"; }
    [ "$(wc -l <"$tmp/page")" -gt 10 ] || fail "$name.1 is empty"
  fi
done
while IFS='|' read -r verb option; do
  grep -qF -- "\\fB${option//-/\\-}\\fR" "$tmp/manual/man1/purlin-${verb// /-}.1" || fail "$verb $option is not in its man page"
done <"$tmp/options"

# The language of the texts.
if command -v python3 >/dev/null; then
  "$PURLIN_SOURCE/scripts/check_prose" --help-of "$PURLIN" >&2 || fail "check_prose --help-of (findings above)"
fi
echo "$(wc -l <<<"$verbs") verbs, $(wc -l <"$tmp/options") options"
