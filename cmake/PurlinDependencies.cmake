# One list of what Purlin is built from. Everything is a distribution package found by find_package or
# by its header; nothing is fetched. ./dev installs what is missing.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ON)  # a bare system may lack the shared one
find_package(ZLIB REQUIRED)
# The archive where there is one, as with zlib: reading Nsight Systems' files must not hang on a system
# library's version.
find_path(SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(SQLITE_LIBRARY NAMES libsqlite3.a sqlite3 REQUIRED)
# The archives, too: a bundle for other systems cannot count on their OpenSSL's version.
set(OPENSSL_USE_STATIC_LIBS ON)
find_package(OpenSSL 3.0 REQUIRED)
# The archives too, if RE2 is one of those that need nothing more (before 2023-06); a newer one needs Abseil's
# many libraries, which the bundle then takes along.
find_path(RE2_INCLUDE re2/re2.h REQUIRED)
file(STRINGS ${RE2_INCLUDE}/re2/re2.h re2_needs_abseil REGEX "include \"absl/" LIMIT_COUNT 1)
if(re2_needs_abseil)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
  set(RE2_LIBRARY PkgConfig::RE2)
else()
  find_library(RE2_LIBRARY NAMES libre2.a re2 REQUIRED)
endif()
find_path(PUGIXML_INCLUDE pugixml.hpp REQUIRED)
find_library(PUGIXML_LIBRARY NAMES libpugixml.a pugixml REQUIRED)
# An archive, too.
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY NAMES libzstd.a zstd REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(CURL_INCLUDE curl/curl.h REQUIRED)  # its header alone: the library is opened at run time
find_path(BOOST_INCLUDE boost/beast/version.hpp REQUIRED)  # headers alone; 1.81 or newer
find_path(OPENCL_INCLUDE CL/cl_layer.h REQUIRED)

# CUDA headers are wanted at build time and its libraries are opened at run time. Without the headers
# the CUDA parts are left out and `purlin doctor` says so.
find_path(PURLIN_CUDA_INCLUDE cuda.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(PURLIN_CUPTI_INCLUDE cupti.h
  HINTS ${PURLIN_CUDA_INCLUDE} ENV CUDA_HOME PATHS /usr/local/cuda /usr/local/cuda/extras/CUPTI
  PATH_SUFFIXES include)
find_path(PURLIN_NVRTC_INCLUDE nvrtc.h HINTS ${PURLIN_CUDA_INCLUDE} PATHS /usr/local/cuda PATH_SUFFIXES include)
if(PURLIN_CUDA_INCLUDE AND PURLIN_CUPTI_INCLUDE AND PURLIN_NVRTC_INCLUDE)
  set(PURLIN_HAVE_CUDA 1)
else()
  set(PURLIN_HAVE_CUDA 0)
endif()
find_path(PURLIN_CUBLAS_INCLUDE cublasLt.h HINTS ${PURLIN_CUDA_INCLUDE} PATHS /usr/local/cuda PATH_SUFFIXES include)
if(PURLIN_HAVE_CUDA AND PURLIN_CUBLAS_INCLUDE)
  set(PURLIN_HAVE_CUBLASLT 1)
else()
  set(PURLIN_HAVE_CUBLASLT 0)
endif()
message(STATUS "Purlin: CUDA headers: ${PURLIN_CUDA_INCLUDE} CUPTI: ${PURLIN_CUPTI_INCLUDE}")

if(PURLIN_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
