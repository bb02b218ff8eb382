#!/bin/sh
# The page in a browser, against the real program. Skipped without node or a browser, or if npm cannot give the pinned
# packages. SLUICE_BROWSER names another browser; SLUICE_SHOTS a folder for pictures of the page.
: "${SLUICE_PROGRAM:?the program to test}"
command -v node >/dev/null || { echo 'skipped: no node'; exit 77; }
for name in ${SLUICE_BROWSER:-} chromium chromium-browser google-chrome; do
    browser=$(command -v "$name") && break
done
[ -n "$browser" ] || { echo 'skipped: no Chromium (apt-get install chromium, or set SLUICE_BROWSER)'; exit 77; }
packages=$(tools/npm_ci.sh tests/web) || { echo 'skipped: npm gave no playwright-core and axe-core'; exit 77; }
exec node tests/web/page.mjs "$SLUICE_PROGRAM" "$browser" "$packages"
