#!/usr/bin/env bash
# The committed bundle of the page is the one that its sources give: bit for bit where npm's packages are at
# hand, else by the hashes of the sources that the build wrote down.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

web=$PURLIN_SOURCE/web
(cd "$web" && sha256sum --quiet --check dist/sources.sha256) || fail "web/src changed: node web/build.mjs, and commit web/dist"
if grep -rnE "innerHTML|dangerouslySet|insertAdjacent" "$web/src"; then fail "names would become markup"; fi
listed=$(sed 's/^[^ ]* *//' "$web/dist/sources.sha256" | sort)
found=$(cd "$web" && { find src -type f; ls package.json package-lock.json build.mjs tsconfig.json; } | sort)
[ "$listed" = "$found" ] || fail "web/src has other files than the bundle was built from: node web/build.mjs"
packed() { (cd "$web/dist" && cat "$@" | gzip -9 | wc -c); }
[ "$(packed page.js page.css)" -le 60000 ] || fail "the code of the first view is over 60 kB"
[ "$(packed page.js more.js page.css)" -le 100000 ] || fail "the page's code is over 100 kB"

if ! command -v node >/dev/null || [ ! -d "$web/node_modules/esbuild" ]; then
  echo "page_bundle: the hashes of the sources agree; not rebuilt, for web/node_modules is not there (./dev setup page)"
  exit 0
fi
expect_exit 0 node "$web/build.mjs" "$tmp/dist"
for file in page.js more.js fleet.js page.css sources.sha256; do
  cmp -s "$tmp/dist/$file" "$web/dist/$file" || fail "web/dist/$file is not what its sources give: node web/build.mjs"
done
(cd "$web" && node_modules/.bin/tsc --noEmit -p .) || fail "the page's types do not agree"
echo "page_bundle: rebuilt bit for bit"
