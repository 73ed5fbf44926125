#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package of a build and tries what is in it, unpacked beside the system.
# Usage: tools/check_package.sh BUILD-DIR
set -euo pipefail
build=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

(cd "$build" && rm -f outrider_*.deb && cpack -G DEB >/dev/null)
package=$(ls "$build"/outrider_*.deb)
dpkg-deb -x "$package" "$folder"
dpkg-deb -f "$package" Package Version Architecture Installed-Size Depends
for file in usr/bin/outrider usr/lib/liboutrider.so usr/include/outrider/outrider.h usr/lib/pkgconfig/outrider.pc \
  usr/lib/cmake/Outrider/OutriderConfig.cmake usr/lib/systemd/system/outrider.service usr/share/doc/outrider/copyright \
  usr/share/outrider/models/outrider-small/model.safetensors; do
  [ -e "$folder/$file" ] || { echo "check_package: expected $file in the package, found none" >&2; exit 1; }
done
"$folder/usr/bin/outrider" generate builtin -p "one two three" --max-tokens 8 --json |
  grep -q "\"model\":\"$folder/usr/share/outrider/models/outrider-small\"" ||
  { echo "check_package: expected the program to find the models of the package" >&2; exit 1; }
echo "check_package: $package ($(du -h "$package" | cut -f1)) works"
