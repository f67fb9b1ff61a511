# oneDNN as the target OneDNN::OneDNN. By hand, because Debian's own dnnl config stops the configure
# run without OpenCL headers, even under QUIET.
find_library(OneDNN_LIBRARY dnnl)
find_path(OneDNN_INCLUDE_DIR dnnl.h)
mark_as_advanced(OneDNN_LIBRARY OneDNN_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION ${OneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
