# SPDX-License-Identifier: Apache-2.0
# Installation: the program, the library with find_package(Outrider) and pkg-config, the models, and the Debian package
# that cpack makes of them. The wheel installs the components `program`, `pair` and `default_head` (pyproject.toml).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS outrider RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY models/outrider-small models/outrider-draft DESTINATION ${CMAKE_INSTALL_DATADIR}/outrider/models
        COMPONENT pair PATTERN "*.svg" EXCLUDE)
# The head that `auto` takes for the default model.
install(DIRECTORY models/smollm2-135m-eagle3 DESTINATION ${CMAKE_INSTALL_DATADIR}/outrider/models COMPONENT default_head)
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/outrider/models COMPONENT drafters
        PATTERN outrider-small EXCLUDE PATTERN outrider-draft EXCLUDE PATTERN smollm2-135m-eagle3 EXCLUDE
        PATTERN "*.svg" EXCLUDE PATTERN "*.md" EXCLUDE)
install(FILES packaging/outrider.service packaging/outrider.socket DESTINATION lib/systemd/system COMPONENT system)
install(FILES packaging/outrider.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT system)
install(FILES packaging/completions/outrider.bash RENAME outrider
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT system)
install(FILES packaging/completions/outrider.zsh RENAME _outrider
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT system)
install(FILES packaging/completions/outrider.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT system)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT system)

install(TARGETS outrider_shared EXPORT OutriderTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/outrider DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Outrider)
install(EXPORT OutriderTargets NAMESPACE Outrider:: DESTINATION ${package_folder} COMPONENT library)
configure_package_config_file(cmake/OutriderConfig.cmake.in OutriderConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(OutriderConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/OutriderConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/OutriderConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT library)
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/outrider.pc.in outrider.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/outrider.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "Outrider")
set(CPACK_PACKAGE_CONTACT "the Outrider developers <outrider@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "language models on CPUs, faster by exact speculative decoding")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION misc)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, libcurl4 | libcurl3-gnutls")
include(CPack)
