// The number of CPU threads. All of norma's loops and the matrix product library run on one OpenMP
// team.
#pragma once

namespace norma {

/// Lets operations that this thread calls use up to `threads` CPU threads. As
/// torch.set_num_threads.
///
/// Results of matrix products may differ in the last bits between thread counts, because the
/// library splits long sums differently; everything else gives the same bits. Throws ValueError for
/// threads < 1.
void set_num_threads(int threads);
/// Threads that operations may use: as set, else OMP_NUM_THREADS, else one for each CPU. As
/// torch.get_num_threads.
int get_num_threads();

/// Lets idle threads sleep soon instead of spinning for milliseconds. Call it first thing in main.
///
/// GNU's OpenMP runtime spins at the end of each parallel loop, which beside one busy neighbour
/// makes a training step several times slower; on a quiet machine nothing is lost. The runtime
/// reads GOMP_SPINCOUNT only when it is loaded, so this restarts the program once with it set. It
/// does nothing where GOMP_SPINCOUNT or OMP_WAIT_POLICY is set already, or where a restart is not
/// possible.
void limit_thread_spinning(char** argv);

}  // namespace norma
