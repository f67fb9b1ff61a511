// All of nn.
#pragma once

#include "norma/nn/activation.h"
#include "norma/nn/attention.h"
#include "norma/nn/classifier.h"
#include "norma/nn/dropout.h"
#include "norma/nn/embedding.h"
#include "norma/nn/feed_forward.h"
#include "norma/nn/init.h"
#include "norma/nn/layer.h"
#include "norma/nn/linear.h"
#include "norma/nn/loss.h"
#include "norma/nn/module.h"
#include "norma/nn/norm.h"
#include "norma/nn/placement.h"
#include "norma/nn/sequential.h"
#include "norma/nn/serialization.h"
#include "norma/nn/transformer.h"
