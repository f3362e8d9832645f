#!/usr/bin/env bash
# Makes the pictures of docs/gallery.md: ten measurements on this machine, some fifteen minutes, into docs/gallery/.
# `scripts/gallery.sh NAME...` makes only those. Run it on an idle machine; the figures in the page's sentences are
# those of the pictures, so write both anew together. JOUST_GALLERY_RUNS=FOLDER keeps the runs. Needs target/release/joust and scripts/peers.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
joust=$(realpath "${JOUST:-${CARGO_TARGET_DIR:-target}/release/joust}")
pictures=$PWD/docs/gallery
folder=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
mkdir -p "$pictures"
wanted=" $* "
is_wanted() { [ "$wanted" = "  " ] || [[ "$wanted" == *" $1 "* ]]; }

# keep NAME FIGURE RECORD: a figure of a record becomes the picture of that name.
keep() {
  "$joust" report "$3" --figures "$folder/figures" >/dev/null
  # The first of that name: a study may have one for each group of cells.
  local figure
  figure=$(find "$folder/figures" -name "$2*.svg" | sort | head -n 1)
  mv "$figure" "$pictures/$1.svg"
  rm -rf "$folder/figures"
}

# of_load NAME FIGURE "FLAGS OF THE SERVER" FLAGS OF THE LOAD...
of_load() {
  local name=$1 figure=$2 flags=$3
  shift 3
  is_wanted "$name" || return 0
  echo "== $name: joust serve --fixed 3361 $flags; joust load $*"
  # The flags are words.
  # shellcheck disable=SC2086
  "$joust" serve --fixed 3361 --listen 127.0.0.1:0 --set MaxKeepAliveRequests=0 $flags >"$folder/address" &
  server=$!
  for _ in $(seq 200); do
    grep -q http "$folder/address" && break
    sleep 0.05
  done
  "$joust" load "$(grep -o 'http[^ ]*' "$folder/address")" "$@" --json "$folder/load.json" || test $? -eq 3
  kill "$server" && wait "$server" || true
  server=
  keep "$name" "$figure" "$folder/load.json"
}

# of_run NAME FIGURE ARGUMENTS...
of_run() {
  local name=$1 figure=$2
  shift 2
  is_wanted "$name" || return 0
  echo "== $name: joust run $*"
  rm -rf "$folder/run"
  "$joust" run "$@" --quiet --out "$folder/run" || test $? -eq 3
  [ -z "${JOUST_GALLERY_RUNS:-}" ] || cp -r "$folder/run" "$JOUST_GALLERY_RUNS/$name"
  keep "$name" "$figure" "$folder/run"
}

of_run ten-servers picture
of_run ratios ratios-throughput nginx lighttpd h2o apache -d 90
of_run latency-of-models percentiles 'joust[model=reactor]' 'joust[model=prefork]' 'joust[model=thread]' -c 64 -d 60
serve="$joust serve {docroot} --listen 127.0.0.1:{port}"
of_run two-modes visits-server_cpu "$serve" \
  "sh -c 'n=\$(od -An -N1 -tu1 /dev/urandom | tr -d \" \"); exec $serve --fault mode=pid,cost:3us,seed=\$n'" -d 60
of_run growth growth studies/models.toml --short
of_run capacity figures-capacity studies/capacity.toml --short
of_load stalls percentiles '--fault stall=1%,200ms' -c 20 -d 10s
of_load delayed-acks heat '--fault nodelay=off' -c 20 -d 10s
of_load batches offsets '--fault batch=50ms' -c 20 -d 10s
of_load omission percentiles '--fault pause=every:2s,for:400ms' -c 20 -r 2000 -d 10s
