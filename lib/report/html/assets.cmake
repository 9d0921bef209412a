# The HTML report's own files and the chart library that it is drawn with, as constants of fragsim_report.
set(dygraphs_folders /usr/share/javascript/dygraphs /usr/share/nodejs/dygraphs/dist)
find_file(DYGRAPHS_SCRIPT dygraph.min.js PATHS ${dygraphs_folders} DOC "package libjs-dygraphs")
find_file(DYGRAPHS_STYLE dygraph.min.css PATHS ${dygraphs_folders} DOC "package libjs-dygraphs")
if(NOT DYGRAPHS_SCRIPT OR NOT DYGRAPHS_STYLE)
  message(FATAL_ERROR "dygraphs is missing: install libjs-dygraphs, or set DYGRAPHS_SCRIPT and DYGRAPHS_STYLE to its "
    "dygraph.min.js and dygraph.min.css")
endif()

set(html_folder ${CMAKE_CURRENT_LIST_DIR})
set(html_scripts data format theme detail chart levels waste map figures explain page)  # each uses those before it
list(TRANSFORM html_scripts PREPEND ${html_folder}/)
list(TRANSFORM html_scripts APPEND .js)
list(JOIN html_scripts "," html_joined)
set(html_assets page=${html_folder}/page.html style=${html_folder}/page.css script=${html_joined}
  library=${DYGRAPHS_SCRIPT} library_style=${DYGRAPHS_STYLE})
set(html_source ${CMAKE_BINARY_DIR}/html_assets.cpp)
add_custom_command(OUTPUT ${html_source}
  COMMAND ${CMAKE_COMMAND} "-DASSETS=${html_assets}" -DOUT=${html_source} -P ${html_folder}/embed.cmake
  DEPENDS ${html_folder}/embed.cmake ${html_folder}/page.html ${html_folder}/page.css ${html_scripts}
    ${DYGRAPHS_SCRIPT} ${DYGRAPHS_STYLE}
  VERBATIM)
target_sources(fragsim_report PRIVATE ${html_source})
