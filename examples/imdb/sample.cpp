#include "imdb/sample.h"

// The assembler pulls the file in: unlike a generated C array of a megabyte this costs no compile
// time, and unlike `ld -r -b binary` it needs no rule per linker and architecture.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".global imdb_sample_begin\n"
    ".global imdb_sample_end\n"
    "imdb_sample_begin:\n"
    ".incbin \"" IMDB_SAMPLE_PATH
    "\"\n"
    "imdb_sample_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char imdb_sample_begin[];
extern const char imdb_sample_end[];
}

namespace imdb {

std::string_view sample_archive() {
  return {imdb_sample_begin, static_cast<std::size_t>(imdb_sample_end - imdb_sample_begin)};
}

}  // namespace imdb
