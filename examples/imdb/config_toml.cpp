// config.toml: read by toml++, written by hand so that every key carries its help as a comment.
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "imdb/config.h"
#include "imdb/files.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

std::string toml_value(const TrainConfig& config, const ConfigField& field) {
  const std::string text = get_field(config, field);
  // The escapes of JSON strings are escapes of TOML's basic strings too.
  if (std::holds_alternative<std::string TrainConfig::*>(field.member))
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // TOML tells 1 (integer) from 1.0 (float).
  if (std::holds_alternative<double TrainConfig::*>(field.member) &&
      text.find_first_of(".e") == std::string::npos)
    return text + ".0";
  return text;
}

const char* wanted_type(const ConfigField& field) {
  constexpr const char* names[] = {"a boolean", "an integer", "a number", "a string"};
  return names[field.member.index()];
}

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

std::string closest_hint(std::string_view key) {
  // The same letters in another spelling (maxLength, max-length) are the usual mistake.
  const auto bare = [](std::string_view text) {
    std::string letters;
    for (char c : text)
      if (std::isalnum(static_cast<unsigned char>(c)))
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters;
  };
  for (const auto& field : config_fields())
    if (bare(field.key) == bare(key))
      return fmt::format("; did you mean {} in [{}]?", field.key, field.section);
  return "; `imdb train --help` lists all options";
}

void apply_node(TrainConfig& config, const std::string& section, std::string_view key,
                const toml::node& node, const std::string& file) {
  const auto where =
      fmt::format("{}, line {}: {}.{}", file, node.source().begin.line, section, key);
  const ConfigField* field = find_config_field(key);
  norma::check(field != nullptr && section == field->section, "config", "{}: unknown key{}", where,
               closest_hint(key));
  const bool fits = std::visit(
      [&](auto member) {
        using T = std::remove_reference_t<decltype(config.*member)>;
        if constexpr (std::is_same_v<T, double>)
          return node.is_floating_point() || node.is_integer();
        else
          return node.is<T>();
      },
      field->member);
  norma::check(fits, "config", "{}: must be {}; got {}", where, wanted_type(*field),
               type_name(node));
  std::string text;
  if (const auto* s = node.as_string())
    text = s->get();
  else if (const auto* b = node.as_boolean())
    text = b->get() ? "true" : "false";
  else if (const auto* i = node.as_integer())
    text = std::to_string(i->get());
  else if (const auto* d = node.as_floating_point())
    text = fmt::format("{}", d->get());
  set_field(config, *field, text, where);
}

}  // namespace

std::string to_toml(const TrainConfig& config) {
  std::string text =
      "# Configuration of an imdb run. Train it again: imdb train --config config.toml\n";
  std::string section;
  for (const auto& field : config_fields()) {
    if (section != field.section) {
      section = field.section;
      text += fmt::format("\n[{}]\n", section);
    }
    const auto line = fmt::format("{} = {}", field.key, toml_value(config, field));
    text += fmt::format("{:<32} # {}\n", line, field.help);
  }
  return text;
}

std::vector<std::string> apply_toml(TrainConfig& config, std::string_view text,
                                    const std::string& file) {
  toml::table table;
  try {
    table = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw norma::ValueError(
        "config",
        fmt::format("{}, line {}, column {}: not valid TOML: {}", file, error.source().begin.line,
                    error.source().begin.column, error.description()));
  }
  std::vector<std::string> keys;
  for (const auto& [section, node] : table) {
    const std::string name(section.str());
    const toml::table* entries = node.as_table();
    bool known = false;
    for (const auto& field : config_fields()) known = known || name == field.section;
    norma::check(entries != nullptr && known, "config",
                 "{}, line {}: {}: unknown section; use [run], [data], [model] and [train]", file,
                 node.source().begin.line, name);
    for (const auto& [key, value] : *entries) {
      apply_node(config, name, key.str(), value, file);
      keys.emplace_back(key.str());
    }
  }
  return keys;
}

std::vector<std::string> apply_toml_file(TrainConfig& config, const std::filesystem::path& path) {
  return apply_toml(config, read_file(path), path.string());
}

TrainConfig read_complete_config(const std::filesystem::path& path) {
  TrainConfig config;
  const auto keys = apply_toml_file(config, path);
  std::string missing;
  for (const auto& field : config_fields())
    if (std::find(keys.begin(), keys.end(), field.key) == keys.end())
      missing += fmt::format("{}{}.{}", missing.empty() ? "" : ", ", field.section, field.key);
  norma::check(missing.empty(), "config", "{} must name every option; it lacks {}", path.string(),
               missing);
  validate(config);
  return config;
}

}  // namespace imdb
