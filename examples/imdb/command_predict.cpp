// imdb predict: labels and probabilities for given texts.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>

#include "imdb/command_support.h"
#include "imdb/evaluate.h"
#include "imdb/files.h"
#include "imdb/model.h"
#include "imdb/text.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

constexpr std::size_t kExcerptCodePoints = 60;
constexpr std::size_t kBatch = 32;

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  return lines;
}

std::vector<std::string> gather_texts(const ModelArguments& arguments) {
  norma::check(arguments.texts.empty() || arguments.file.empty(), "predict",
               "texts come from arguments or from --file, not both");
  const bool from_input = arguments.texts == std::vector<std::string>{"-"};  // as many programs
  if (!arguments.texts.empty() && !from_input) return arguments.texts;
  std::string content;
  if (!arguments.file.empty()) {
    content = read_file(arguments.file);
  } else {
    if (::isatty(STDIN_FILENO) != 0) say("Type a review, then Ctrl-D:");
    content.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  if (arguments.lines) return split_lines(content);
  return {content};
}

// The start of a text on one line.
std::string excerpt(const std::string& text) {
  std::string start;
  std::size_t position = 0, count = 0;
  while (position < text.size() && count < kExcerptCodePoints) {
    const char32_t code = decode_utf8(text, position);
    // A review must not steer the terminal.
    append_utf8(start, code < 0x20 || (code >= 0x7f && code < 0xa0) ? U' ' : code);
    ++count;
  }
  return position < text.size() ? start + "…" : start;
}

}  // namespace

void run_predict(const ModelArguments& arguments) {
  set_threads(arguments.threads);
  const norma::Device device = make_device(arguments.device);
  LoadedModel loaded = load_model(arguments.model, device);
  std::vector<std::string> texts;
  for (const auto& raw : gather_texts(arguments)) {
    texts.push_back(clean_text(raw));
    norma::check(!texts.back().empty(), "predict",
                 "a review must hold some text; number {} is empty", texts.size());
  }
  norma::check(!texts.empty(), "predict", "no text given; see `imdb predict --help`");
  const BatchOptions options = make_batch_options(loaded.config);
  for (std::size_t begin = 0; begin < texts.size(); begin += kBatch) {
    const std::size_t end = std::min(texts.size(), begin + kBatch);
    std::vector<TokenIds> tokens;
    for (std::size_t i = begin; i < end; ++i) tokens.push_back(loaded.tokenizer->encode(texts[i]));
    const auto probabilities = positive_probabilities(*loaded.model, make_batch(tokens, options),
                                                      device, loaded.state.logit_shift);
    for (std::size_t i = begin; i < end; ++i) {
      const float p = probabilities[i - begin];
      std::printf("%s  %.4f  %s\n", p >= 0.5F ? "positive" : "negative", p >= 0.5F ? p : 1 - p,
                  excerpt(texts[i]).c_str());
    }
  }
}

}  // namespace imdb
