// A project of its own that knows nothing but norma's public target and umbrella header. It uses
// each folder of the library, so that what one of them needs to link is missed here.
#include <norma/norma.h>

#include <cmath>
#include <filesystem>
#include <iostream>

using namespace norma;

namespace {

// d/dW of mean((x W)^2), against the formula 2/n x^T x W: matrix products, tape and reductions.
bool differentiates() {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor weight = tensor({{0.5, -1.0}, {2.0, 0.25}}).requires_grad_();
  x.matmul(weight).square().mean().backward();
  const Tensor expected = x.t().matmul(x).matmul(weight.detach()) * 0.5;
  const double error = (weight.grad() - expected).abs().sum().item();
  std::cout << weight.grad() << "\nerror " << error << '\n';
  return error < 1e-4;
}

// One step of training, and the weights through a file.
bool trains_and_saves(const std::string& file) {
  manual_seed(1);
  const nn::TransformerConfig config{.d_model = 8, .num_heads = 2, .d_ff = 16, .dropout = 0.0};
  nn::TransformerBlock block(config), copy(config);
  optim::AdamW optimizer(optim::weight_decay_groups(block, 0.01), {.lr = 1e-2});
  const Tensor x = randn({2, 5, 8});
  const auto loss = [&] { return block(x).square().mean(); };
  const Tensor before = loss();
  before.backward();
  optim::clip_grad_norm_(block.parameters(), 1.0);
  optimizer.step();

  nn::save(block, file);
  nn::load(copy, file);
  const auto tensors = safetensors::load_file(file).tensors;
  std::filesystem::remove(file);
  const double difference = (copy(x) - block(x)).abs().sum().item();
  std::cout << "loss " << before.item() << ", then " << loss().item() << "; " << tensors.size()
            << " tensors saved\n";
  return loss().item() < before.item() && difference == 0.0 &&
         tensors.size() == block.parameters().size();
}

// The hierarchy of errors and its typeinfo cross the library's border.
bool throws() {
  try {
    ones({2, 2}).matmul(ones({3}));
  } catch (const ShapeError& failure) {
    std::cout << failure.what() << '\n';
    return failure.operation() == "matmul";
  }
  return false;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const std::string file = std::string(argv[0]) + ".safetensors";
  return differentiates() && trains_and_saves(file) && throws() ? 0 : 1;
}
