#include "norma/core/grad_mode.h"

namespace norma {

namespace {
thread_local bool grad_mode = true;
thread_local bool anomaly_mode = false;
}  // namespace

bool GradMode::is_enabled() { return grad_mode; }
void GradMode::set_enabled(bool enabled) { grad_mode = enabled; }
bool AnomalyMode::is_enabled() { return anomaly_mode; }
void AnomalyMode::set_enabled(bool enabled) { anomaly_mode = enabled; }

}  // namespace norma
