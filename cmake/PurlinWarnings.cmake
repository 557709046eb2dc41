# Warnings are an interface target, linked privately, so that they never reach a consumer.
# Off, for g++ 12 raises false alarms inside libstdc++: maybe-uninitialized (std::variant with strings) and,
# at -O3, restrict (GCC bug 105651: "text" + a temporary string).
add_library(purlin_warnings INTERFACE)
# Files that are compiled together see each other's constants: a local of the same name hides nothing there.
# Preset dev, which compiles each file alone, has the whole check.
if(PURLIN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(shadow -Wshadow=local)
else()
  set(shadow -Wshadow)
endif()
target_compile_options(purlin_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic ${shadow} -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wundef -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-psabi>>
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra>)
if(PURLIN_WERROR)
  target_compile_options(purlin_warnings INTERFACE -Werror)
endif()
if(PURLIN_SANITIZE)
  add_compile_options(-fsanitize=${PURLIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Checks of each pointer take a third of the compile time and find little that the address
  # sanitizer does not. The fuzz preset keeps them.
  if(PURLIN_SANITIZE MATCHES "undefined" AND NOT PURLIN_BUILD_FUZZ)
    add_compile_options(
      -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
  endif()
  add_link_options(-fsanitize=${PURLIN_SANITIZE})
endif()
if(PURLIN_BUILD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # every room reports its coverage to the fuzzer
endif()
