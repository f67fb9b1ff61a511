#include "norm_lab/cli.h"
#include "norma/ops/threads.h"

int main(int argc, char** argv) {
  norma::limit_thread_spinning(argv);
  return norm_lab::run_cli(argc, argv);
}
