// SPDX-License-Identifier: Apache-2.0
// bin/outrider of the tarball: starts libexec/outrider with the loader and the libraries beside it. A program names its
// loader by an absolute path, so a folder that can be anywhere needs a program that names none: this one is static.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The folder above bin/, also where the program was called by a link.
static int find_folder(char folder[PATH_MAX]) {
  const ssize_t size = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  if (size < 0) return -1;
  folder[size] = '\0';
  for (int level = 0; level < 2; ++level) {
    char* slash = strrchr(folder, '/');
    if (slash == NULL) return -1;
    *slash = '\0';
  }
  return 0;
}

int main(int argc, char** argv) {
  char folder[PATH_MAX], loader[PATH_MAX + 32], libraries[PATH_MAX + 32], program[PATH_MAX + 32];
  if (find_folder(folder) != 0) {
    fprintf(stderr, "outrider: expected to find the program by /proc/self/exe: %s; mount /proc\n", strerror(errno));
    return 1;
  }
  // A link to the loader that has the name of the program, for lists of processes.
  snprintf(loader, sizeof loader, "%s/lib/outrider", folder);
  snprintf(libraries, sizeof libraries, "%s/lib", folder);
  snprintf(program, sizeof program, "%s/libexec/outrider", folder);
  char** arguments = calloc((size_t)argc + 4, sizeof *arguments);
  if (arguments == NULL) return 1;
  arguments[0] = argv[0];
  arguments[1] = "--library-path";
  arguments[2] = libraries;
  arguments[3] = program;
  for (int i = 1; i < argc; ++i) arguments[i + 3] = argv[i];
  execv(loader, arguments);
  fprintf(stderr, "outrider: expected the loader %s to start: %s; unpack the whole archive\n", loader, strerror(errno));
  return 1;
}
