#!/usr/bin/env bash
# Brings the real servers and tools that the tests and benches are held against: apache2, nginx,
# lighttpd, h2o, caddy, mini-httpd, Tomcat with a Java runtime; ab, wrk, h2load, hey, siege, httperf,
# slowhttptest; gnuplot; curl, brotli, zstd, openssl, tshark; python3, git, php-cgi, php-fpm and go, which CGI
# and FastCGI are judged by; ip, tc and nft, which plant lost packets and narrow links. Does nothing, and says nothing, where all are present. The packages' own services
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
  git:git
  php-cgi:php-cgi
  php-fpm8.2:php-fpm
  go:golang-go
  ip:iproute2
  nft:nftables
)
readonly POLICY=/usr/sbin/policy-rc.d

missing=()
# Servers lie in sbin, which is not on the PATH of an ordinary user.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for peer in "${PEERS[@]}"; do
  [ -e "${peer%%:*}" ] || command -v "${peer%%:*}" >/dev/null || missing+=("${peer##*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

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
