# Writes OUT, a C++ source with the text of files as constants of namespace fragsim::html (assets.hpp declares them).
# ASSETS: a list of NAME=FILE[,FILE...]; several files are joined in this order.
# A line that points to a source map is left out: a browser would try to load it.
set(constants "")
foreach(asset IN LISTS ASSETS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${asset}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  set(text "")
  foreach(file IN LISTS files)
    file(READ "${file}" piece)
    string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" piece "${piece}")
    string(REGEX REPLACE "/[*]# sourceMappingURL=[^*]*[*]/" "" piece "${piece}")
    string(APPEND text "${piece}")
  endforeach()
  string(FIND "${text}" ")asset\"" end_mark)
  if(NOT end_mark EQUAL -1)
    message(FATAL_ERROR "${asset} holds the mark that ends a constant")
  endif()
  string(APPEND constants "const std::string_view ${name} = R\"asset(${text})asset\";\n")
endforeach()
file(WRITE "${OUT}"
  "#include \"lib/report/html/assets.hpp\"\n\nnamespace fragsim::html {\n${constants}}  // namespace fragsim::html\n")
