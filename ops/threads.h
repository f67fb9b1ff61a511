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

}  // namespace norma
