# `cpack -G DEB` and `cpack -G RPM` from a release build: the tool, the library for programs, and what a
# program needs to build against it. ./dev deb and ./dev rpm choose the folder of libraries that the system wants.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME purlin)
set(CPACK_PACKAGE_VENDOR "The Purlin authors")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Purlin authors <purlin@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler, tuner and guard of GPU kernels")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL tool library devel)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(package_tool_description
  "Purlin profiles the kernels of a GPU program, tunes the slow ones on the
real device, stores the winners for later jobs and guards them against
regressions. This package has the command, the libraries that it injects
into profiled programs, the sample kernels and the Python package.")
set(package_library_description
  "Programs look up the tuned configs of their kernels through this library,
and can tune kernels themselves.")
set(package_devel_description
  "The headers of libpurlin.so for C and C++, its CMake package and its
pkg-config file.")
set(CPACK_COMPONENT_TOOL_DESCRIPTION "${package_tool_description}")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${package_library_description}")
set(CPACK_COMPONENT_DEVEL_DESCRIPTION "${package_devel_description}")

# --- Debian
set(release 1)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the binaries link; drivers are opened at run time
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME purlin)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "libpurlin0, ocl-icd-libopencl1, libcurl4, ca-certificates, python3")
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "pocl-opencl-icd, nvidia-cuda-toolkit")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpurlin${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/deb/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "ocl-icd-libopencl1")
set(CPACK_DEBIAN_DEVEL_PACKAGE_NAME libpurlin-dev)
set(CPACK_DEBIAN_DEVEL_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS "libpurlin${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}-${release})")

# --- RPM
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_RELEASE ${release})
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
set(CPACK_RPM_TOOL_PACKAGE_NAME purlin)
set(CPACK_RPM_TOOL_PACKAGE_SUMMARY "Profiler, tuner and guard of GPU kernels")
set(CPACK_RPM_TOOL_PACKAGE_GROUP Development/Tools)
set(CPACK_RPM_LIBRARY_PACKAGE_NAME purlin-libs)
set(CPACK_RPM_LIBRARY_PACKAGE_SUMMARY "Tuned configs of GPU kernels (library)")
set(CPACK_RPM_LIBRARY_PACKAGE_GROUP System/Libraries)
set(CPACK_RPM_LIBRARY_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/cmake/rpm/ldconfig.sh)
set(CPACK_RPM_LIBRARY_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/cmake/rpm/ldconfig.sh)
set(CPACK_RPM_DEVEL_PACKAGE_NAME purlin-devel)
set(CPACK_RPM_DEVEL_PACKAGE_SUMMARY "Tuned configs of GPU kernels (headers)")
set(CPACK_RPM_DEVEL_PACKAGE_GROUP Development/Libraries)
set(CPACK_RPM_DEVEL_PACKAGE_REQUIRES "purlin-libs = ${PROJECT_VERSION}-${release}")
foreach(folder include share/man share/man/man1 share/bash-completion share/bash-completion/completions share/zsh
    share/zsh/vendor-completions share/fish share/fish/vendor_completions.d libexec share/doc
    ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_LIBDIR}/cmake ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${folder})
endforeach()

# Files of Debian's policy: copyright, changelog, reasons for lintian.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/deb/policy.cmake)
set(CPACK_PURLIN_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_PURLIN_DEBIAN_NAMES tool=purlin library=libpurlin${PROJECT_VERSION_MAJOR} devel=libpurlin-dev)
include(CPack)
