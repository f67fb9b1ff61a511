# `cmake --install`, and the package that `find_package(norma)` finds afterwards.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/norma)

foreach(folder ${NORMA_FOLDERS})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/norma/${folder}
            FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN cpu EXCLUDE)
  endif()
endforeach()
install(FILES ${NORMA_INCLUDE_DIR}/norma/norma.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/norma)

install(TARGETS norma EXPORT normaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT normaTargets NAMESPACE norma:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/normaConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/normaConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/normaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/normaConfig.cmake ${PROJECT_BINARY_DIR}/normaConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindOneDNN.cmake ${CMAKE_CURRENT_LIST_DIR}/FindCBLAS.cmake
        DESTINATION ${package_dir})
