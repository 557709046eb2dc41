#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the purlin of a bundle on the PATH of the job's next steps. A bundle whose hash is not the given one is
# refused. PURLIN_BUNDLE_URL is a URL or a path; PURLIN_BUNDLE_SHA256 its SHA-256.
set -euo pipefail
url=${PURLIN_BUNDLE_URL:?URL or path of the bundle} sha=${PURLIN_BUNDLE_SHA256:?SHA-256 of the bundle}
[[ $sha =~ ^[0-9a-f]{64}$ ]] || { echo "install.sh: '$sha' is no SHA-256" >&2; exit 2; }
folder=${PURLIN_BUNDLE_FOLDER:-$HOME/.local/share/purlin-bundle}/$sha
if [ ! -x "$folder/bin/purlin" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if [ -f "$url" ]; then
    cp "$url" "$work/bundle"
  else
    curl --fail --silent --show-error --location --proto '=https' --retry 3 -o "$work/bundle" "$url"
  fi
  echo "$sha  $work/bundle" | sha256sum --check --quiet || { echo "install.sh: $url has another SHA-256" >&2; exit 2; }
  mkdir -p "$work/tree" "$(dirname "$folder")"
  tar -xf "$work/bundle" -C "$work/tree" --strip-components=1 --no-same-owner
  rm -rf "$folder"
  mv "$work/tree" "$folder"
fi
"$folder/bin/purlin" --version
[ -z "${GITHUB_PATH:-}" ] || echo "$folder/bin" >>"$GITHUB_PATH"
