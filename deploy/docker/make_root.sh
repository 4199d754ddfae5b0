#!/usr/bin/env bash
# Makes the root file system of the image: pandod, pando-keeper, pando-mover and
# pandoctl from a build folder, each shared library that they load, the user that they run as,
# and nothing else.
#
# usage: make_root.sh BUILD_FOLDER EMPTY_FOLDER
set -euo pipefail
build=$1
root=$2
user=65532

mkdir -p "$root"
[[ -z $(ls -A "$root") ]] || { echo "$root is not empty" >&2; exit 1; }
# Mount points, too: what runs a read-only root cannot make them.
mkdir -p "$root"/{dev,etc/pando,proc,run/pando,sys,tmp,usr/bin,usr/lib,usr/lib64}
# As Debian has them, so that the loader and drivers find their folders.
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"

cmake --install "$build" --prefix "$root/usr" --component programs --strip

# The paths that the loader finds, itself among them.
for program in "$root"/usr/bin/*; do ldd "$program"; done |
  awk '/not found/ {print "missing: " $1 > "/dev/stderr"; exit 1}
       match($0, /\/[^ ]+/) {print substr($0, RSTART, RLENGTH)}' |
  sort -u |
  while read -r library; do
    folder=$(realpath "$(dirname "$library")")
    install -D -m 755 "$library" "$root$folder/$(basename "$library")"
  done

echo "pando:x:$user:$user::/:/sbin/nologin" >"$root/etc/passwd"
echo "pando:x:$user:" >"$root/etc/group"
chmod 1777 "$root/tmp"
[[ $EUID -ne 0 ]] || chown "$user:$user" "$root/run/pando"
