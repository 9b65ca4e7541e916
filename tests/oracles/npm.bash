# For oracles that run in Node: sourced, with `oracle` (its name) and `needs` (the packages, in words) set.

unavailable() {
  echo "$oracle oracle: NOT RUN: $1. It needs Node.js 20 or newer and, from npm, $needs." >&2
  exit 1
}

# npm_packages DIRECTORY NAME VERSION PACKAGE…: installs the packages there where package NAME is not of that version. They
# are named one by one: optional ones and install scripts would bring builds for every platform and GPU along.
npm_packages() {
  local directory=$1 name=$2 version=$3 installed
  shift 3
  command -v node >/dev/null || unavailable "there is no node"
  command -v npm >/dev/null || unavailable "there is no npm"
  [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || unavailable "node is $(node --version)"
  mkdir -p "$directory"
  installed=$(node -p "require('$directory/node_modules/$name/package.json').version" 2>/dev/null || true)
  [ "$installed" = "$version" ] && return 0
  echo '{"private": true}' > "$directory/package.json"
  (cd "$directory" && npm install --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error "$@") ||
    unavailable "npm could not install $needs"
}
