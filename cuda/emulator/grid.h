// Runs all blocks of a launch on persistent host threads.
#pragma once

#include "norma/cuda/emulator/block.h"

namespace norma::emulator {

/// Checks the launch against the limits of a GPU, runs it under the calling thread's schedule, and
/// returns when all of it is done. Throws KernelError, or what the kernel threw.
void run_grid(const Launch& launch);

}  // namespace norma::emulator
