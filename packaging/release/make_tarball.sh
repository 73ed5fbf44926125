#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tarball of a build: the program with every library that it loads, the C library and its loader included, so
# that it runs on a Linux of any userland. A build for aarch64 (tools/check_arm.sh has its packages) makes one for aarch64.
# Usage: packaging/release/make_tarball.sh BUILD FOLDER
set -euo pipefail
build=$(realpath "$1") output=$(realpath "$2")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
version=$(sed -n 's/^project(outrider VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
machine=$("$source/packaging/release/machine_of.sh" "$build/bin/outrider")
name=outrider-$version-linux-$machine
case $machine in
  x86_64) root='' loader=ld-linux-x86-64.so.2 compiler=cc processor='A processor with AVX2' ;;
  aarch64) root=$source/build/arm64-packages/root loader=ld-linux-aarch64.so.1 compiler=aarch64-linux-gnu-gcc
    processor='An ARM processor of 64 bits' ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=$scratch/$name

for component in program pair default_head drafters system; do
  cmake --install "$build" --prefix "$folder" --strip --component "$component" >/dev/null
done
rm -rf "${folder:?}/lib"  # the unit of systemd names the paths of the Debian package
mkdir -p "$folder/lib" "$folder/libexec" "$folder/share/doc/outrider/licences"
mv "$folder/bin/outrider" "$folder/libexec/outrider"
"$compiler" -std=gnu11 -Os -static -s -Wall -Wextra -Werror "$source/packaging/release/launcher.c" -o "$folder/bin/outrider"
ln -s "$loader" "$folder/lib/outrider"

# The program is not linked with libcurl, which `pull` opens. The driver of a GPU may ask for other parts of the C
# library, and parts of two versions do not work together.
opened=()
for part in libcurl.so.4 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2; do
  place=$(ls "$root"/usr/lib/$machine-linux-gnu/$part "$root"/lib/$machine-linux-gnu/$part 2>/dev/null | head -n 1 || true)
  [ -n "$place" ] || { echo "make_tarball: expected $part in $root/usr/lib/$machine-linux-gnu; libcurl4 has libcurl.so.4" >&2; exit 1; }
  opened+=("$place")
done
{ "$source/packaging/release/needed_libraries.sh" "$root" $machine "$folder/libexec/outrider" "${opened[@]}"
  printf '%s\n' "${opened[@]}"; } | sort -u > "$scratch/libraries"

# Headers, and scripts of the pages of the server.
compiled_in=(libboost1.81-dev libcli11-dev libxxhash-dev libspdlog-dev nlohmann-json3-dev libjs-marked libjs-katex node-prismjs)

# Which package each part is from, for the bill of materials and for people.
list_part() {  # FILE PACKAGE VERSION
  printf '%s\t%s\t%s\n' "$@" >> "$folder/share/doc/outrider/parts.tsv"
  cp -L "$root/usr/share/doc/$2/copyright" "$folder/share/doc/outrider/licences/$2"
}
# Prints the package of a file and its version. Packages may name a file of /usr/lib by its old place, /lib.
package_of() {
  local file package
  file=$(realpath "$1")
  if [ -n "$root" ]; then
    file=${file#"$root"}
    awk -F '\t' -v file="$file" -v old="${file#/usr}" '$1 == file || $1 == old {print $2, $3; exit}' "$root/../files.tsv"
  else
    package=$({ dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}"; } | cut -d: -f1)
    dpkg-query -W -f '${Package} ${Version}\n' "$package:amd64"
  fi
}
version_of() {  # PACKAGE
  if [ -n "$root" ]; then awk -F '\t' -v name="$1" '$2 == name {print $3; exit}' "$root/../files.tsv"
  else dpkg-query -W -f '${Version}' "$1"; fi
}
printf 'file\tpackage\tversion\n' > "$folder/share/doc/outrider/parts.tsv"
while read -r library; do
  file=$(basename "$library")
  [ -e "$folder/lib/$file" ] && continue
  cp -L "$library" "$folder/lib/$file"
  read -r package number < <(package_of "$library")
  list_part "$file" "$package" "$number"
done < "$scratch/libraries"
for package in "${compiled_in[@]}"; do list_part "(compiled in)" "$package" "$(version_of "$package")"; done

cp "$source/LICENSE" "$folder/LICENSE"
cp "$source/CHANGELOG.md" "$folder/"
sed "s/@VERSION@/$version/g; s/@MACHINE@/$machine/; s/@PROCESSOR@/$processor/" "$source/packaging/release/README.txt" > "$folder/README.txt"
"$source/tools/check_paths.sh" "$folder"

# The same commit makes the same archive.
time=$(git -C "$source" log -1 --format=%ct)
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX --mtime="@$time" -c "$name" |
  gzip -n > "$output/$name.tar.gz"
echo "make_tarball: $output/$name.tar.gz ($(du -h "$output/$name.tar.gz" | cut -f1)), $(wc -l < "$scratch/libraries") libraries"
