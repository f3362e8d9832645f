#!/usr/bin/env bash
# Runs all tests. Prints the tests that could not run here, each with its reason, before the doc tests, so that
# cargo's own summary comes last. The exit code is cargo's.
set -uo pipefail
cd "$(dirname "$0")/.."
skipped="${CARGO_TARGET_DIR:-target}/debug/skipped-tests"
rm -f "$skipped"

# The lines of the file, counted: "3 x binary ab::plot: no gnuplot here".
report() {
    if [ -s "$skipped" ]; then
        echo
        echo "$(sort -u "$skipped" | wc -l) tests, or parts of one, could not run here:"
        sort "$skipped" | uniq -c | sed 's/^ *\([0-9]*\) /    \1 x /'
        echo
    else
        echo
        echo "No test was skipped."
        echo
    fi
}

# The reader ends at this line, not at the end of the pipe: a process that a test left behind may hold the pipe.
end="all tests have ended"

# A test that hangs fails: 40 minutes at most.
{
    timeout --kill-after=10s 40m "${CARGO:-cargo}" test --workspace --locked --no-fail-fast "$@" 2>&1
    code=$?
    printf '\n%s\n' "$end"
    exit "$code"
} | {
    told=
    while IFS= read -r line && [ "$line" != "$end" ]; do
        if [ -z "$told" ] && [[ "$line" == *"Doc-tests "* ]]; then
            told=yes
            report
        fi
        printf '%s\n' "$line"
    done
    [ -n "$told" ] || report
}
