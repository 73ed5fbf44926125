#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the root file system of a container image from the tarball, for `docker import` and `podman import`. It has no
# shell. Usage: packaging/release/make_image.sh TARBALL OUTPUT.tar.gz
set -euo pipefail
tarball=$(realpath "$1") output=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir -p "$folder"/{opt/outrider,usr/bin,etc/ssl/certs,proc,sys,dev,run,models,var/cache/outrider,tmp}
tar -xzf "$tarball" -C "$folder/opt/outrider" --strip-components=1
ln -s /opt/outrider/bin/outrider "$folder/usr/bin/outrider"
printf '%s\n' 'root:x:0:0:root:/:/nonexistent' 'outrider:x:10001:10001::/var/cache/outrider:/nonexistent' > "$folder/etc/passwd"
printf '%s\n' 'root:x:0:' 'outrider:x:10001:' > "$folder/etc/group"
echo 'hosts: files dns' > "$folder/etc/nsswitch.conf"
# The certificates of the package: the machine that makes the image may trust others of its operator.
certificates=/usr/share/ca-certificates/mozilla
[ -d "$certificates" ] || { echo "make_image: expected $certificates; install ca-certificates" >&2; exit 1; }
cat "$certificates"/*.crt > "$folder/etc/ssl/certs/ca-certificates.crt"

# People run it as any user, and the cache belongs to whoever that is.
chmod 1777 "$folder/tmp" "$folder/var/cache/outrider"
tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(stat -c %Y "$folder/opt/outrider/README.txt")" -c . |
  gzip -n > "$output"
echo "make_image: $output ($(du -h "$output" | cut -f1))"
