#!/usr/bin/env bash
# Installs the Debian packages of the named sections of packages.txt that are missing: through apt where this user may, else
# it prints the one line to run and ends with status 1.
#   scripts/install_packages.sh build [text] [checks] [oracles]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

wanted() {  # the packages of a section
  awk -v section="[$1]" '/^#/ { next } /^\[/ { on = ($0 == section); next } on && NF { print $1 }' "$here/packages.txt"
}

missing=()
for section in "$@"; do
  grep -qxF "[$section]" "$here/packages.txt" || { echo "install_packages.sh: packages.txt has no section [$section]" >&2; exit 2; }
  for package in $(wanted "$section"); do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed$' || missing+=("$package")
  done
done
[ ${#missing[@]} -eq 0 ] && exit 0

command=(apt-get install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" -eq 0 ]; then
  sudo=()
elif sudo -n true 2>/dev/null; then
  sudo=(sudo)
else
  echo "These Debian packages are missing. Install them with this line, then run the command again:" >&2
  echo "  sudo ${command[*]}" >&2
  exit 1
fi
echo "installing ${#missing[@]} packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq >&2
# Some images leave documentation out of packages; the text that the quick start trains on is documentation.
"${sudo[@]}" "${command[@]}" -qq -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--path-include=/usr/share/info/* >&2
