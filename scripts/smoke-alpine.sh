#!/usr/bin/env bash
# Installs the musl build of a release folder in Alpine, for this machine's processor. Needs docker.
#
#   bash scripts/smoke-alpine.sh dist
set -euo pipefail
release=$(cd "$1" && pwd)
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# busybox's httpd serves inside the container, so nothing of the network is shared.
docker run --rm -v "$release:/release:ro" -v "$scripts:/scripts:ro" alpine:3.21 sh -euc '
  apk add --no-cache busybox-extras >/dev/null
  httpd -p 127.0.0.1:8734 -h /release
  export SHADOWOB_CONNECTOR_DOWNLOAD_URL=http://127.0.0.1:8734

  # Without its libraries it must be refused, by the names of the packages, with nothing left.
  if apk info -e libstdc++ >/dev/null; then echo "this image has libstdc++ already"; exit 1; fi
  if sh /scripts/install.sh >/install.log 2>&1; then cat /install.log; echo "claimed success"; exit 1; fi
  grep -F "apk add libstdc++ libgcc" /install.log
  [ -z "$(ls -A "$HOME/.local/bin" 2>/dev/null)" ]

  apk add --no-cache libstdc++ libgcc >/dev/null
  sh /scripts/install.sh
  "$HOME/.local/bin/shadowob-connector" --version
'
