#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package of a build and tries what is in it, unpacked beside the system, where the source tree is not
# seen.
# Usage: tools/check_package.sh BUILD-DIR
set -euo pipefail
build=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

(cd "$build" && rm -f outrider_*.deb && cpack -G DEB >/dev/null)
package=$(ls "$build"/outrider_*.deb)
dpkg-deb -x "$package" "$folder"
dpkg-deb -f "$package" Package Version Architecture Installed-Size Depends Recommends
for file in usr/bin/outrider usr/lib/liboutrider.so usr/include/outrider/outrider.h usr/lib/pkgconfig/outrider.pc \
  usr/lib/cmake/Outrider/OutriderConfig.cmake usr/lib/systemd/system/outrider.service usr/share/doc/outrider/copyright \
  usr/share/outrider/models/outrider-small/model.safetensors usr/share/outrider/models/smollm2-135m-eagle3/model.safetensors; do
  [ -e "$folder/$file" ] || { echo "check_package: expected $file in the package, found none" >&2; exit 1; }
done
"$(dirname "$0")/check_paths.sh" "$folder"
if dpkg-deb -f "$package" Depends | grep -q libcurl; then
  echo "check_package: expected libcurl to be recommended only: pull opens it" >&2; exit 1
fi
"$(dirname "$0")/without_tree.sh" "$folder/usr/bin/outrider" generate builtin -p "one two three" --max-tokens 8 --json |
  grep -q "\"model\":\"$folder/usr/share/outrider/models/outrider-small\"" ||
  { echo "check_package: expected the program to find the models of the package" >&2; exit 1; }
echo "check_package: $package ($(du -h "$package" | cut -f1)) works"
