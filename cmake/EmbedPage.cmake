# cmake -DSTYLE=FILE -DSCRIPTS=FILE|FILE… -DOUT=FILE.cc -P EmbedPage.cmake
# Writes the page's style and script, the scripts in the order given, as C++ string literals with
# their SHA-256, which the page's content security policy names. See src/analyze/report/html.h.
file(READ ${STYLE} style)
set(script "")
string(REPLACE "|" ";" files "${SCRIPTS}")
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(APPEND script "${text}")
endforeach()
string(SHA256 style_hash "${style}")
string(SHA256 script_hash "${script}")
foreach(text style script)
  string(FIND "${${text}}" ")purlin_page\"" clash)
  string(TOLOWER "${${text}}" lower)
  string(REGEX MATCH "</(script|style)|<!--" ends "${lower}")
  if(NOT clash EQUAL -1 OR ends)
    message(FATAL_ERROR "the page's ${text} may not contain ')purlin_page\"', '</script', '</style' or '<!--'")
  endif()
endforeach()
file(WRITE ${OUT}.new "// Written by cmake/EmbedPage.cmake.
#include \"analyze/report/html_assets.h\"
namespace purlin::analyze::html {
const std::string_view kStyle = R\"purlin_page(${style})purlin_page\";
const std::string_view kScript = R\"purlin_page(${script})purlin_page\";
const std::string_view kStyleSha256 = \"${style_hash}\";
const std::string_view kScriptSha256 = \"${script_hash}\";
}  // namespace purlin::analyze::html
")
file(RENAME ${OUT}.new ${OUT})
