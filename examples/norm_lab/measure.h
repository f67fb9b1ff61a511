// Figures of tensors that several experiments take.
#pragma once

#include "norma/core/tensor.h"
#include "norma/nn/monitor.h"

#include <cstddef>
#include <string>
#include <vector>

namespace norm_lab {

double rms(const norma::Tensor& x);
double average(const norma::Tensor& x);
/// Of all elements, biased.
double deviation(const norma::Tensor& x);
double length(const norma::Tensor& x);
double largest(const norma::Tensor& x);
/// Largest |a - b|.
double difference(const norma::Tensor& a, const norma::Tensor& b);
/// 1 - cosine of the angle between corresponding rows, mean, computed in float64.
double turn(const norma::Tensor& a, const norma::Tensor& b);
/// Cosine of the angle between two different rows, mean over all pairs.
double mean_cosine(const norma::Tensor& rows);

/// 1, 2, …, count.
std::vector<double> counted(std::size_t count);
/// Slope of the straight line through the points by least squares, and its R².
struct Line {
  double slope = 0.0, r_squared = 0.0;
};
Line fit(const std::vector<double>& x, const std::vector<double>& y);
/// The same through the logarithms: y ~ x^slope.
Line fit_power(const std::vector<double>& x, const std::vector<double>& y);
double median(std::vector<double> values);

/// Watches the modules of one type: "ReLU".
norma::nn::Monitor::Filter of_type(const std::string& type_name);
/// Watches the modules whose name ends so: ".mlp".
norma::nn::Monitor::Filter named(const std::string& ending);
/// One figure of every module that the monitor saw.
std::vector<double> collect(const norma::nn::Monitor& monitor,
                            double norma::nn::ActivationStats::*figure);

}  // namespace norm_lab
