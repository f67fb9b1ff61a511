# The include tree: `norma/<folder>/<header>.h` for each folder of the library, and the umbrella
# `norma/norma.h`, which is generated from what is there so that it never misses a header. The build
# tree reaches the folders by symbolic links, the install tree by copies, under the same paths.
set(NORMA_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
set(NORMA_FOLDERS core ops cuda nn optim)

if(IS_SYMLINK ${NORMA_INCLUDE_DIR}/norma)
  file(REMOVE ${NORMA_INCLUDE_DIR}/norma)
endif()
file(MAKE_DIRECTORY ${NORMA_INCLUDE_DIR}/norma)
set(NORMA_UMBRELLA_INCLUDES "")
foreach(folder ${NORMA_FOLDERS})
  if(NOT EXISTS ${NORMA_INCLUDE_DIR}/norma/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${NORMA_INCLUDE_DIR}/norma/${folder} SYMBOLIC)
  endif()
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${folder}/*.h)
  foreach(header ${headers})
    string(APPEND NORMA_UMBRELLA_INCLUDES "#include <norma/${header}>\n")
  endforeach()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/norma.h.in ${NORMA_INCLUDE_DIR}/norma/norma.h @ONLY)
