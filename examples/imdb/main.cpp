#include "imdb/cli.h"

int main(int argc, char** argv) { return imdb::run_cli(argc, argv); }
