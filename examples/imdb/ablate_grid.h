// The grid of `imdb ablate`: the same training with the norms in other places, or others, or none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "imdb/commands.h"
#include "imdb/config.h"

namespace imdb {

/// One row of the comparison. The setting is that of an article whose groups are A, B and C; it
/// gives neither B's initial values nor how C treats padding, so each has two groups here.
struct AblationGroup {
  std::string name;       ///< "A", or "rms_norm/sandwich"
  std::string norm;       ///< a name of nn::NormKind
  std::string placement;  ///< a name of nn::NormPlacement
  std::string init = "default";
  std::string article = "";  ///< what the article says of it; empty: nothing
};

/// A pre-LN, A2 pre-RMSNorm, B1 and B2 no norm with PyTorch's and Xavier's initial values, C1 and
/// C2 pre-BatchNorm with padding in its statistics and without, D post-LN, E DeepNorm.
const std::vector<AblationGroup>& ablation_groups();

/// The group that `text` means: a name of ablation_groups(), or "norm/placement", or
/// "norm/placement/init". Throws norma::ValueError.
AblationGroup parse_group(const std::string& text);

/// What a CPU trains in minutes: a quarter as wide, shorter reviews, and fewer of them.
void apply_quick_variant(TrainConfig& config);

struct AblationRun {
  AblationGroup group;
  TrainConfig config;
  std::string folder;  ///< within that of the grid: "A-seed1"
};

/// What the options of `imdb ablate` ask for.
struct AblationGrid {
  std::vector<AblationRun> runs;  ///< seed by seed, so that a grid cut short has all groups
  std::int64_t test_limit = 0;    ///< measure on so many test reviews; 0: all
  std::string out;                ///< folder of the results
};

/// Throws norma::ValueError.
AblationGrid plan_ablation(const AblateArguments& arguments);

}  // namespace imdb
