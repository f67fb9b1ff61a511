// Runs the `imdb` program itself, as a user would.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "imdb/files.h"
#include "support.h"

struct ProgramResult {
  int code = -1;
  std::string out;
  std::string err;
  /// Lines of standard error that are not empty.
  int error_lines() const {
    int count = 0;
    for (std::size_t i = 0; i < err.size(); ++i)
      count += err[i] == '\n' && i > 0 && err[i - 1] != '\n';
    return count;
  }
};

/// A shell script, run in `folder`.
inline ProgramResult run_shell(const TemporaryFolder& folder, const std::string& script) {
  const auto out = folder.path / "stdout.txt", err = folder.path / "stderr.txt";
  // Waiting threads must not spin: tests run beside each other.
  const std::string command = "cd '" + folder.path.string() +
                              "' && export OMP_WAIT_POLICY=passive; { " + script + "; } >'" +
                              out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(command.c_str());
  ProgramResult result;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = imdb::read_file(out);
  result.err = imdb::read_file(err);
  return result;
}

/// `imdb ARGUMENTS`; `before` goes in front ("ulimit -f 1;").
inline ProgramResult run_imdb(const TemporaryFolder& folder, const std::string& arguments,
                              const std::string& before = "") {
  return run_shell(folder, before + " '" IMDB_PROGRAM "' " + arguments);
}

/// Flags of a model and a run so small that a test can afford them.
inline constexpr char kTinyFlags[] =
    " --layers 1 --d-model 16 --heads 2 --d-ff 32 --max-length 32 --head-length 8 --vocab-size 1000"
    " --train-limit 96 --batch-size 16 --epochs 2 --fit-shift --threads 1 --no-baseline";
