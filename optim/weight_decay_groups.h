// Weight decay where it belongs: groups by what a parameter is.
#pragma once

#include "norma/nn/module.h"
#include "norma/optim/param_group.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace norma::optim {

struct WeightDecayOptions {
  bool decay_embeddings = false;        ///< lookup tables decay like matrices
  std::vector<std::string> decay = {};  ///< exact names of parameters that decay whatever they are
  std::vector<std::string> no_decay = {};  ///< exact names of parameters that do not
};

/// The split of a model's parameters. Converts to the groups that an optimizer takes; groups[0]
/// decays, groups[1] does not.
struct WeightDecayGroups {
  struct Entry {
    std::string name;
    nn::ParameterKind kind;
    std::int64_t numel;
    bool decays;
  };

  std::vector<ParamGroup> groups;
  std::vector<Entry> entries;       ///< every trainable parameter, in the module's order
  std::vector<std::string> frozen;  ///< names of those that do not require grad: in no group

  operator const std::vector<ParamGroup>&() const { return groups; }  // NOLINT: they are the groups
  /// The split by kind as a table, with numbers of tensors and values.
  std::string explain() const;
};

/// Parameters of kind matrix decay by `weight_decay`; biases, norm parameters, scalars, the unit
/// vectors of nGPT and (by default) embeddings do not. Kinds come from the module's registry, never
/// from names or ranks: the usual recipe that matches "bias" and "LayerNorm" forgets what is called
/// otherwise.
///
///     const auto groups = weight_decay_groups(model, 0.01);
///     std::cout << groups.explain();
///     AdamW optimizer(groups, {.lr = 3e-4});
///
/// Every trainable parameter is in exactly one group, tied ones once, by the kind of their first
/// name. Throws ValueError where that cannot hold: two parameters that are different tensors on the
/// same memory, a name in `decay` and `no_decay`, or one that the module does not have.
WeightDecayGroups weight_decay_groups(const nn::Module& module, double weight_decay,
                                      const WeightDecayOptions& options = {});

/// Prints explain().
std::ostream& operator<<(std::ostream& stream, const WeightDecayGroups& groups);

}  // namespace norma::optim
