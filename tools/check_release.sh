#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the files of a release where nothing was ever built: in roots of Debian 11, 12 and 13 and Ubuntu 24.04, in an
# empty root, and in the container image. There is no network and no compiler. The roots are made by
# debootstrap and stay in build/roots. A root that cannot be had is named, and RELEASE_ROOTS lists the roots that must be
# there (default: "bookworm trixie"). Files for aarch64 are tried in Debian 12 for arm64 where the machine runs its programs
# (qemu-user-static and binfmt-support). Usage: tools/check_release.sh FOLDER   (as root)
set -euo pipefail
folder=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
required=" ${RELEASE_ROOTS-bookworm trixie} "
[ "$(id -u)" = 0 ] || { echo "check_release: expected to be root, which chroot needs" >&2; exit 1; }
tarball=$(ls "$folder"/outrider-*-linux-x86_64.tar.gz)
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
(cd "$folder" && sha256sum --check --quiet SHA256SUMS)
packaging/release/bill_of_materials.py --check "${tarball%-linux-x86_64.tar.gz}.spdx.json" "$tarball"

# Bullseye shows that an old userland does; its Python is too old for a wheel of this machine's C library. A test root
# without network may come unsigned where Debian has no keys of Ubuntu.
# debootstrap mounts /proc in the root. A mount namespace that ends with debootstrap, and a folder that no other run has,
# make sure that nothing but files is ever removed.
make_root() {  # NAME
  local python=python3,python3-numpy root=build/roots/$1 part
  [ -e "$root/etc/os-release" ] && return
  command -v debootstrap >/dev/null || { echo "there is no debootstrap (apt-get install debootstrap)"; return 1; }
  mkdir -p build/roots
  part=$(mktemp -d "build/roots/$1.XXXXXX")
  chmod 755 "$part"
  case $1 in
    bullseye) set -- "$1" "$part" ;;
    bookworm | trixie) set -- --include=$python "$1" "$part" ;;
    bookworm-arm64) set -- --arch=arm64 --include=$python bookworm "$part" ;;
    # An older debootstrap has no script for noble; all releases since gutsy have the same one.
    noble) set -- --include=$python --components=main,universe --no-check-gpg "$1" "$part" "" gutsy ;;
  esac
  if unshare --mount debootstrap --variant=minbase "$@" > "$root.log" 2>&1 && mv -T "$part" "$root"; then return; fi
  rm -rf --one-file-system "$part"
  tail -n 1 "$root.log"
  return 1
}

# In namespaces of this trial: a network with nothing but loopback, and mounts that end with it.
try_root() { unshare --mount --net --pid --fork packaging/release/try_root.sh "$@"; }

try_wheel() {  # ROOT [pip option...]
  local version root=$1
  shift
  compgen -G "$folder/*.whl" >/dev/null || { echo "   no wheel in $folder, so none was tried"; return 0; }
  [ -x "$root/usr/bin/python3" ] || return 0
  version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  rm -rf "$scratch/wheel"
  python3 -m pip install -q --no-index --find-links "$folder" --no-deps --only-binary :all: --python-version "$version" \
    --target "$scratch/wheel" "$@" outrider 2> "$scratch/pip" ||
    { echo "   no wheel for CPython $version: $(tail -n 1 "$scratch/pip")"; return 0; }
  try_root "$root" "$scratch/wheel" wheel
}

try_arm64() {  # TARBALL
  local tree=$scratch/tree_arm64
  grep -qs enabled /proc/sys/fs/binfmt_misc/qemu-aarch64 ||
    { echo "   skipped: this machine runs no programs for aarch64 (apt-get install qemu-user-static binfmt-support)"; return; }
  make_root bookworm-arm64 || { echo "   skipped: the root could not be made"; return; }
  mkdir -p "$tree"
  tar -xzf "$1" -C "$tree" --strip-components=1
  try_root build/roots/bookworm-arm64 "$tree" program
  try_wheel build/roots/bookworm-arm64 --platform "$(basename "$(ls "$folder"/*_aarch64.whl)" .whl | sed 's/.*-//')"
}

mkdir -p "$scratch/tree" "$scratch/empty" "$scratch/image"
tar -xzf "$tarball" -C "$scratch/tree" --strip-components=1
tried=0
for name in bullseye bookworm trixie noble; do
  echo "== $name"
  if reason=$(make_root "$name"); then
    echo "   $(sed -n 's/^PRETTY_NAME=//p' "build/roots/$name/etc/os-release"), $(chroot "build/roots/$name" ldd --version | head -n 1)"
    try_root "build/roots/$name" "$scratch/tree" program
    try_wheel "build/roots/$name"
    tried=$((tried + 1))
  elif [[ $required == *" $name "* ]]; then
    echo "check_release: expected a root of $name: $reason" >&2; exit 1
  else
    echo "   skipped: $reason"
  fi
done
echo "== a root with nothing but the tarball"
try_root "$scratch/empty" "$scratch/tree" program
arm64=$(find "$folder" -name 'outrider-*-linux-aarch64.tar.gz')
if [ -n "$arm64" ]; then
  echo "== Debian 12 for arm64"
  try_arm64 "$arm64"
fi
image=$(find "$folder" -name 'outrider-*-image.tar.gz')
if [ -n "$image" ]; then
  echo "== the container image"
  tar -xzf "$image" -C "$scratch/image"
  try_root "$scratch/image" - program
fi
echo "check_release: the release works in $tried roots, in an empty root${image:+ and as an image}"
