#include "imdb/cli.h"
#include "norma/ops/threads.h"

int main(int argc, char** argv) {
  norma::limit_thread_spinning(argv);
  return imdb::run_cli(argc, argv);
}
