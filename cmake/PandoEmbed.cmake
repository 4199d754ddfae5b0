# pando_embed(TEMPLATE FILES...): the sources of a table of files that are part
# of the program. Sets PANDO_EMBEDDED_SOURCES: what TEMPLATE becomes, and the
# object that the linker makes of the files: GNU's, as lld wants to be told the
# architecture.
find_program(PANDO_GNU_LD ld.bfd DOC "GNU ld (Debian: binutils)" REQUIRED)
set(PANDO_CONTENT_TYPE_html "text/html; charset=utf-8")
set(PANDO_CONTENT_TYPE_css "text/css; charset=utf-8")
set(PANDO_CONTENT_TYPE_js "text/javascript; charset=utf-8")
set(PANDO_CONTENT_TYPE_svg "image/svg+xml")

function(pando_embed template)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    get_filename_component(extension ${file} LAST_EXT)
    string(SUBSTRING ${extension} 1 -1 extension)
    string(MAKE_C_IDENTIFIER ${name} symbol)
    string(APPEND PANDO_PAGE_SYMBOLS "PANDO_EMBEDDED(${symbol});\n")
    string(APPEND PANDO_PAGE_ENTRIES
      "          {\"${name}\",\n"
      "           {\"${PANDO_CONTENT_TYPE_${extension}}\",\n"
      "            {&_binary_${symbol}_start, &_binary_${symbol}_end}}},\n")
    add_custom_command(OUTPUT ${folder}/${name}
      COMMAND ${CMAKE_COMMAND} -E copy ${file} ${folder}/${name}
      DEPENDS ${file} VERBATIM)
    list(APPEND names ${name})
    list(APPEND copies ${folder}/${name})
  endforeach()
  get_filename_component(source ${template} NAME_WLE)
  configure_file(${template} ${folder}/${source} @ONLY)
  # The names of its symbols come from the names that it is given.
  set(object ${folder}/files.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${PANDO_GNU_LD} -r -b binary -z noexecstack -o ${object} ${names}
    WORKING_DIRECTORY ${folder} DEPENDS ${copies} VERBATIM)
  set(PANDO_EMBEDDED_SOURCES ${folder}/${source} ${object} PARENT_SCOPE)
endfunction()
