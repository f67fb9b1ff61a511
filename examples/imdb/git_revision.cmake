# Writes OUTPUT with the revision of SOURCE_DIR; touches it only when the revision changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE failed)
if(failed OR revision STREQUAL "")
  set(revision unknown)
endif()
set(text "// Made by git_revision.cmake.\n#pragma once\nnamespace imdb {\ninline constexpr char kGitRevision[] = \"${revision}\";\n}\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${text}" STREQUAL "${old}")
  file(WRITE ${OUTPUT} "${text}")
endif()
