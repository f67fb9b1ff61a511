// Sequential and ModuleList: modules that own a list of others, named "0", "1", ….
//
//     nn::Sequential net(nn::make<nn::Linear>(784, 128), nn::make<nn::ReLU>(),
//     nn::make<nn::Linear>(128, 10));
#pragma once

#include "norma/nn/layer.h"

#include <concepts>
#include <memory>

namespace norma::nn {

/// A module on the heap, for the containers: `make<Linear>(3, 4)`.
template <std::derived_from<Module> T, class... Args>
std::unique_ptr<T> make(Args&&... args) {
  return std::make_unique<T>(std::forward<Args>(args)...);
}

/// A layer that takes one tensor and returns one.
template <class T>
concept UnaryLayer = std::derived_from<T, Module> && requires(T& layer, const Tensor& x) {
  { layer(x) } -> std::same_as<Tensor>;
};

/// Applies its layers one after the other. As torch.nn.Sequential.
class Sequential : public Layer<Sequential> {
 public:
  Sequential() = default;
  template <UnaryLayer... Layers>
  explicit Sequential(std::unique_ptr<Layers>... layers) {
    (append(std::move(layers)), ...);
  }
  /// Takes over `layer` as the last one.
  template <UnaryLayer T>
  T& append(std::unique_ptr<T> layer) {
    check<ValueError>(layer != nullptr, "Sequential", "a layer must be given; got null");
    T& reference = *layer;
    add(std::move(layer), [&reference](const Tensor& x) { return reference(x); });
    return reference;
  }
  /// Makes a layer in place: `net.emplace<nn::Linear>(3, 4)`.
  template <UnaryLayer T, class... Args>
  T& emplace(Args&&... args) {
    return append(make<T>(std::forward<Args>(args)...));
  }
  Tensor forward(const Tensor& x);

  std::size_t size() const { return layers_.size(); }
  /// Layer `index`; throws IndexError. `dynamic_cast` tells what it is.
  Module& operator[](std::size_t index) const;

 private:
  void add(std::unique_ptr<Module> layer, std::function<Tensor(const Tensor&)> call);
  std::vector<std::unique_ptr<Module>> layers_;
  std::vector<std::function<Tensor(const Tensor&)>> calls_;
};

/// Owns modules of one type (or any, as ModuleList<Module>); the caller decides how they are
/// called. As torch.nn.ModuleList.
template <std::derived_from<Module> T>
class ModuleList : public Module {
 public:
  T& append(std::unique_ptr<T> module) {
    check<ValueError>(module != nullptr, "ModuleList", "a module must be given; got null");
    register_module(std::to_string(modules_.size()), *module);
    modules_.push_back(std::move(module));
    return *modules_.back();
  }
  template <class... Args>
  T& emplace(Args&&... args) {
    return append(std::make_unique<T>(std::forward<Args>(args)...));
  }
  std::size_t size() const { return modules_.size(); }
  T& operator[](std::size_t index) const {
    check<IndexError>(index < modules_.size(), "ModuleList", "index must be below {}; got {}",
                      modules_.size(), index);
    return *modules_[index];
  }

  /// Goes over the modules as references.
  class Iterator {
   public:
    explicit Iterator(const std::unique_ptr<T>* position) : position_(position) {}
    T& operator*() const { return **position_; }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::unique_ptr<T>* position_;
  };
  Iterator begin() const { return Iterator(modules_.data()); }
  Iterator end() const { return Iterator(modules_.data() + modules_.size()); }

  std::string type_name() const override { return "ModuleList"; }

 private:
  std::vector<std::unique_ptr<T>> modules_;
};

}  // namespace norma::nn
