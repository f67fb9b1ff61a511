// Every operation, forward and backward, on every device, in every dtype and two layouts, against
// its definition.
#include "support/catch.h"
#include "support/devices.h"
#include "support/reference.h"
#include "support/sanitizers.h"

namespace norma::test {

TEST_CASE("every operation agrees with its definition in every dtype", "[suite][devices]") {
  for (const OpEntry& op : op_table()) DYNAMIC_SECTION(op.name) {
      // How often a value is rounded is all that a row may say of its tolerance.
      if (op.stored != 0) CHECK_FALSE(op.stored_because.empty());
      for (const OpSample& sample : op.samples)
        for (const DType dtype : op.dtypes) {
          if (too_long_when_sanitized(sample, dtype)) continue;
          INFO(sample.label);
          const Reference reference(op, sample, dtype);
          for (const Device& device : devices())
            for (const Layout layout : {Layout::contiguous, Layout::gaps})
              if (!takes_too_long(device, elements(sample))) reference.check(device, layout);
        }
    }
}

}  // namespace norma::test
