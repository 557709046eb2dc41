# The files of `cmake --install`. Each program finds its companions relative to itself, so the installed
# tree may be moved as a whole. bin/purlin looks in ../lib/purlin (the capture libraries, installed by
# src/profile/capture) and in ../share/purlin.
#
# Each file belongs to a package of cmake/PurlinPackage.cmake: `tool`, unless it names `library` or `devel`.
include(CMakePackageConfigHelpers)

install(TARGETS purlin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS purlin-sample RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/purlin)

# find_package(Purlin), Purlin::purlin; pkg-config purlin.
install(TARGETS purlin_shared EXPORT PurlinTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT devel
  FILE_SET public_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/Purlin)
install(EXPORT PurlinTargets NAMESPACE Purlin:: DESTINATION ${package_directory} COMPONENT devel)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PurlinConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PurlinConfig.cmake INSTALL_DESTINATION ${package_directory}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PurlinConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # 0.x: the API may change between minor versions
install(FILES ${PROJECT_BINARY_DIR}/PurlinConfig.cmake ${PROJECT_BINARY_DIR}/PurlinConfigVersion.cmake
  DESTINATION ${package_directory} COMPONENT devel)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE pc_includedir)
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/purlin.pc.in ${PROJECT_BINARY_DIR}/purlin.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/purlin.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/purlin DESTINATION ${CMAKE_INSTALL_DATADIR}/purlin/python
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN py.typed)
foreach(folder docs examples)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder}
      PATTERN CMakeLists.txt EXCLUDE)
  endif()
endforeach()

# Man pages and shell completions, which the binary writes from the texts of its --help. It runs at the root
# so that no purlin.toml of a checkout or a user applies.
set(manual_directory ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual_directory}/man1/purlin.1.gz
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual_directory}
  COMMAND ${CMAKE_COMMAND} -E env XDG_CONFIG_HOME=${manual_directory} ASAN_OPTIONS=detect_leaks=0
    $<TARGET_FILE:purlin> manual --install ${manual_directory}
  DEPENDS purlin WORKING_DIRECTORY / COMMENT "Man pages and completions" VERBATIM)
add_custom_target(purlin_manual ALL DEPENDS ${manual_directory}/man1/purlin.1.gz)
install(DIRECTORY ${manual_directory}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${manual_directory}/bash/purlin DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual_directory}/zsh/_purlin DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${manual_directory}/fish/purlin.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

include(PurlinPackage)

# What is shipped, without tests and benchmarks: what the bundle holds. What `./dev demo` runs is a part of it.
add_custom_target(product DEPENDS purlin purlin-sample purlin_shared purlin_manual)
add_custom_target(demo_programs DEPENDS purlin purlin-sample)
foreach(library purlin_opencl_capture purlin_cuda_capture)
  if(TARGET ${library})
    add_dependencies(product ${library})
    add_dependencies(demo_programs ${library})
  endif()
endforeach()
