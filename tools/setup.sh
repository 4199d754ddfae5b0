#!/usr/bin/env bash
# Installs what a part of the work on Pando needs: Debian packages (through
# sudo when not root), and Python packages in the environment build/venv. Does
# nothing when all is there already.
#
#   build     the programs, the clients and the demo
#   package   the Debian packages and the wheels of Pando
#   test      tests and benchmarks: also Prometheus, unpacked below build
#   coverage  the coverage report
#
# tools/setup/PART.packages lists a part's Debian packages.
#
# usage: tools/setup.sh PART...
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv
prometheus=build/prometheus

sudo=()
[[ $EUID -eq 0 ]] || sudo=(sudo)
# Lists of packages older than those on the server name files that are gone.
update_lists() {
  [[ ${lists_are_fresh-} ]] || "${sudo[@]}" apt-get update
  lists_are_fresh=yes
}

install_debian_packages() {
  local part=$1 package missing=()
  while read -r package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
      grep -q '^install ok installed$' || missing+=("$package")
  done <"tools/setup/$part.packages"
  ((${#missing[@]})) || return 0
  echo "Installing Debian packages (part: $part): ${missing[*]}"
  update_lists
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends "${missing[@]}"
}

# Unpacked, not installed: the package would start a service.
unpack_prometheus() {
  [[ ! -x $prometheus/usr/bin/promtool ]] || return 0
  echo "Unpacking prometheus into $prometheus"
  update_lists
  local download
  download=$(mktemp -d)
  (cd "$download" && apt-get download -o APT::Sandbox::User=root prometheus)
  mkdir -p "$prometheus"
  dpkg-deb -x "$download"/prometheus_*.deb "$prometheus"
  rm -r "$download"
}

# install_python_packages PART FILES ARGUMENTS...: runs pip with the arguments,
# unless that was done already and FILES, which say what is installed, are the
# same.
install_python_packages() {
  local part=$1 wanted
  local -a files
  read -ra files <<<"$2"
  shift 2
  wanted=$(sha256sum "${files[@]}")
  [[ $(cat "$venv/.$part" 2>/dev/null) != "$wanted" ]] || return 0
  if [[ ! -x $venv/bin/pip ]]; then
    echo "Making a Python environment in $venv"
    /usr/bin/python3 -m venv "$venv"
  fi
  echo "Installing Python packages (part: $part) in $venv"
  "$venv/bin/pip" install --disable-pip-version-check "$@"
  echo "$wanted" >"$venv/.$part"
}

for part in "$@"; do
  install_debian_packages "$part"
  case $part in
    build)
      # What the native module is built from, too.
      sources=(clients/python/{pyproject.toml,CMakeLists.txt,native/*}
        clients/lane/*.{h,cc} lane/*.h base/{methods,unique_fd}.h)
      install_python_packages build "${sources[*]}" -e clients/python
      ;;
    package)
      install_python_packages package tools/setup/package.requirements \
        -r tools/setup/package.requirements
      ;;
    test)
      install_python_packages test tools/setup/test.requirements \
        -r tools/setup/test.requirements
      unpack_prometheus
      ;;
  esac
done
