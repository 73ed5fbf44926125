#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tarball of a build: the program with every library that it loads, the C library and its loader included, so
# that it runs on a Linux of any userland. Usage: packaging/release/make_tarball.sh BUILD FOLDER
set -euo pipefail
build=$(realpath "$1") output=$(realpath "$2")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
version=$(sed -n 's/^project(outrider VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
name=outrider-$version-linux-x86_64
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=$scratch/$name

for component in program pair default_head drafters system; do
  cmake --install "$build" --prefix "$folder" --strip --component "$component" >/dev/null
done
rm -rf "${folder:?}/lib"  # the unit of systemd names the paths of the Debian package
mkdir -p "$folder/lib" "$folder/libexec" "$folder/share/doc/outrider/licences"
mv "$folder/bin/outrider" "$folder/libexec/outrider"
cc -std=gnu11 -Os -static -s -Wall -Wextra -Werror "$source/packaging/release/launcher.c" -o "$folder/bin/outrider"
ln -s ld-linux-x86-64.so.2 "$folder/lib/outrider"

# The program is not linked with libcurl, which `pull` opens. The driver of a GPU may ask for other parts of the C
# library, and parts of two versions do not work together.
libraries=/usr/lib/x86_64-linux-gnu
opened=$(find "$libraries" -name libcurl.so.4)
[ -n "$opened" ] || { echo "make_tarball: expected $libraries/libcurl.so.4; install libcurl4" >&2; exit 1; }
for part in libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2; do
  opened+=" $libraries/$part"
done
needed() { ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// && $2 !~ /=>/ && !/:$/ {print $1}'; }
# Paths of libraries have no spaces.
# shellcheck disable=SC2086
{ needed "$folder/libexec/outrider" $opened; printf '%s\n' $opened; } | sort -u > "$scratch/libraries"

# Headers, and scripts of the pages of the server.
compiled_in=(libboost1.81-dev libcli11-dev libspdlog-dev nlohmann-json3-dev libjs-marked libjs-katex node-prismjs)

# Which package each part is from, for the bill of materials and for people.
list_part() {  # FILE PACKAGE
  dpkg-query -W -f "$1\t\${Package}\t\${Version}\n" "$2" >> "$folder/share/doc/outrider/parts.tsv"
  cp -L "/usr/share/doc/${2%:*}/copyright" "$folder/share/doc/outrider/licences/${2%:*}"
}
package_of() {  # Packages may name a file of /usr/lib by its old place, /lib.
  local file
  file=$(realpath "$1")
  dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}"
}
printf 'file\tpackage\tversion\n' > "$folder/share/doc/outrider/parts.tsv"
while read -r library; do
  file=$(basename "$library")
  [ -e "$folder/lib/$file" ] && continue
  cp -L "$library" "$folder/lib/$file"
  package=$(package_of "$library" | cut -d: -f1)
  list_part "$file" "$package:amd64"
done < "$scratch/libraries"
for package in "${compiled_in[@]}"; do list_part "(compiled in)" "$package"; done

cp "$source/LICENSE" "$folder/LICENSE"
cp "$source/CHANGELOG.md" "$folder/"
sed "s/@VERSION@/$version/g" "$source/packaging/release/README.txt" > "$folder/README.txt"
"$source/tools/check_paths.sh" "$folder"

# The same commit makes the same archive.
time=$(git -C "$source" log -1 --format=%ct)
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX --mtime="@$time" -c "$name" |
  gzip -n > "$output/$name.tar.gz"
echo "make_tarball: $output/$name.tar.gz ($(du -h "$output/$name.tar.gz" | cut -f1)), $(wc -l < "$scratch/libraries") libraries"
