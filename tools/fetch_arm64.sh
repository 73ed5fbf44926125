#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian's packages for arm64 into build/arm64-packages/root, once: cmake/arm64.cmake builds against them.
# build/arm64-packages/files.tsv says which package each library is from. Usage: tools/fetch_arm64.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PACKAGES=(libc6-dev libstdc++-12-dev nlohmann-json3-dev libsimdjson-dev zlib1g-dev libxxhash-dev libyaml-cpp-dev libcli11-dev libspdlog-dev
  libfmt-dev libpcre2-dev libutf8proc-dev libgtest-dev libgmock-dev libboost1.81-dev libssl-dev libcurl4-openssl-dev
  libedit-dev liburing-dev libjs-marked libjs-katex node-prismjs libpython3.11-dev)
folder=$PWD/build/arm64-packages
root=$folder/root
[ ! -f "$folder/files.tsv" ] || exit 0

# apt works on separate files, so that the machine stays one of a single architecture.
rm -rf "$folder"
mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$root"
touch "$folder/status"
printf '%s "%s";\n' APT::Architecture arm64 APT::Architectures arm64 Dir::State "$folder/state" \
  Dir::State::status "$folder/status" Dir::Cache "$folder/cache" > "$folder/apt.conf"
APT_CONFIG=$folder/apt.conf apt-get update -qq
APT_CONFIG=$folder/apt.conf apt-get install -y -qq --no-install-recommends --download-only "${PACKAGES[@]}" >/dev/null
for package in "$folder"/cache/archives/*.deb; do
  dpkg -x "$package" "$root"
  read -r name version < <(dpkg-deb -W --showformat='${Package} ${Version}\n' "$package")
  dpkg-deb -c "$package" | sed -n 's/.* \.\(\/[^ ]*\)\( -> .*\)\?$/\1/p' | grep -v '/$' | sed "s|\$|\t$name\t$version|" >> "$folder/files.part"
done
# Links are meant for the root of a machine.
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfrn "$root$(readlink "$link")" "$link"
done
rm -rf "$folder/cache"
mv "$folder/files.part" "$folder/files.tsv"
