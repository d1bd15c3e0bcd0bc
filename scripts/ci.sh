#!/usr/bin/env bash
# What has to hold before a change lands: install, check, test. Used by .ci/run and by the workflows.
# Needs git, Node 20 and npm. The last line is "N passed, N failed", also when a step before the tests fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec </dev/null

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
broken_steps=0

# Runs a step into a log of its own, and shows that only when it fails.
quietly() {
  local name=$1
  shift
  if "$@" >"$logs/step" 2>&1; then
    echo "$name: ok"
    return 0
  fi
  broken_steps=$((broken_steps + 1))
  echo "$name: FAILED"
  tail -n 200 "$logs/step"
  return 1
}

close() {
  local passed=$1 failed=$2 skipped=$3
  local line="$passed passed, $failed failed"
  if [ "$skipped" -gt 0 ]; then line="$line, $skipped skipped"; fi
  echo "$line"
  if [ "$failed" -eq 0 ]; then exit 0; fi
  exit 1
}

quietly 'npm ci' npm ci --no-audit --no-fund || close 0 1 0
# Goes on after a failure: one run should say all that is wrong.
quietly 'npm run check' npm run check

: >"$logs/test"
npm test 2>&1 | tee "$logs/test"
test_status=${PIPESTATUS[0]}

read -r passed failed skipped < <(awk -f scripts/lib/test-summary.awk "$logs/test")
if [ "$failed" -eq 0 ]; then
  # The runner died, or ran nothing at all: neither is a pass.
  if [ "$test_status" -ne 0 ] || [ "$passed" -eq 0 ]; then failed=1; fi
fi

# Real agent programs, each in a world of its own; where none can be made, they are skipped and say why.
: >"$logs/e2e"
npm run test:e2e 2>&1 | tee "$logs/e2e"
e2e_status=${PIPESTATUS[0]}
read -r e2e_passed e2e_failed e2e_skipped < <(awk -f scripts/lib/test-summary.awk "$logs/e2e")
# Also an installation that failed, a run that broke off, or a process that was left.
if [ "$e2e_failed" -eq 0 ] && [ "$e2e_status" -ne 0 ]; then e2e_failed=1; fi

close "$((passed + e2e_passed))" "$((failed + e2e_failed + broken_steps))" "$((skipped + e2e_skipped))"
