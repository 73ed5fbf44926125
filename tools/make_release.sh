#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release in a folder: the tarball, the container image, the Debian package, the wheels, the bill of
# materials and SHA256SUMS. The file MISSING lists what this machine cannot make. OUTRIDER_BUILD names a finished build
# in place of build/release, and OUTRIDER_RELEASE the kinds to make (all: "tarball image package wheels").
# Usage: tools/make_release.sh FOLDER
set -euo pipefail
mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${OUTRIDER_BUILD:-build/release}
kinds=" ${OUTRIDER_RELEASE:-tarball image package wheels} "
[ -x "$build/bin/outrider" ] || { echo "make_release: expected a program in $build, found none; run ./dev build" >&2; exit 1; }
rm -f "$folder"/{outrider*,SHA256SUMS,MISSING}

missing() { echo "$*" >> "$folder/MISSING"; echo "make_release: missing: $*" >&2; }
wanted() { [[ $kinds == *" $1 "* ]] || { missing "$1, left out by OUTRIDER_RELEASE"; return 1; }; }

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
  OUTRIDER_PYTHON=$1 tools/check_wheel.sh
  cp build/wheel/*.whl "$folder/"
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
missing "wheels for aarch64: the cross build (tools/check_arm.sh) makes programs, no extension modules"
missing "wheels for machines with a C library older than $(ldd --version | sed -n '1s/.* //p'), which is this machine's"

rm -f "$folder/SHA256SUMS"
(cd "$folder" && sha256sum outrider* > SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
echo "make_release: $folder"
ls -sh "$folder"
