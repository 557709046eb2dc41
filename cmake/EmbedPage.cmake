# cmake -DSTYLE=FILE -DSCRIPT=FILE -DMORE=FILE -DFLEET=FILE -DOUT=FILE.cc -P EmbedPage.cmake
# Writes the page's style and scripts as C++ string literals with their SHA-256, which the page's
# content security policy names. See src/page/assets.h.
file(READ ${STYLE} style)
file(READ ${SCRIPT} script)
file(READ ${MORE} more)
file(READ ${FLEET} fleet)
string(SHA256 style_hash "${style}")
string(SHA256 script_hash "${script}")
string(SHA256 more_hash "${more}")
string(SHA256 fleet_hash "${fleet}")
foreach(text style script more fleet)
  string(FIND "${${text}}" ")purlin_page\"" clash)
  string(TOLOWER "${${text}}" lower)
  string(REGEX MATCH "</(script|style)|<!--" ends "${lower}")
  if(NOT clash EQUAL -1 OR ends)
    message(FATAL_ERROR "the page's ${text} may not contain ')purlin_page\"', '</script', '</style' or '<!--'")
  endif()
endforeach()
file(WRITE ${OUT}.new "// Written by cmake/EmbedPage.cmake.
#include \"page/assets.h\"
namespace purlin::page {
const std::string_view kStyle = R\"purlin_page(${style})purlin_page\";
const std::string_view kScript = R\"purlin_page(${script})purlin_page\";
const std::string_view kMoreScript = R\"purlin_page(${more})purlin_page\";
const std::string_view kFleetScript = R\"purlin_page(${fleet})purlin_page\";
const std::string_view kStyleSha256 = \"${style_hash}\";
const std::string_view kScriptSha256 = \"${script_hash}\";
const std::string_view kMoreSha256 = \"${more_hash}\";
const std::string_view kFleetSha256 = \"${fleet_hash}\";
}  // namespace purlin::page
")
file(RENAME ${OUT}.new ${OUT})
