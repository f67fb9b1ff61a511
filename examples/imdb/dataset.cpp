#include "imdb/dataset.h"

#include <norma/core/error.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "imdb/archive.h"
#include "imdb/random.h"
#include "imdb/sample.h"
#include "imdb/text.h"

namespace imdb {

using norma::check;
using norma::FileError;

namespace {

constexpr std::uint64_t kMaxReviewBytes = 1 << 20;  // the longest real one has 13,704
constexpr std::uint64_t kMaxUrlsBytes = 64 << 20;
constexpr std::size_t kMaxReviews = 1'000'000;

// A queue between two threads that holds at most so many batches, so that a fast reader does not
// pile up the archive in memory.
template <class T>
class Channel {
 public:
  // False when the consumer has gone.
  bool push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.size() < kCapacity || closed_; });
    if (closed_) return false;
    queue_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }
  // Nothing when closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
    if (queue_.empty()) return std::nullopt;
    T value = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    return value;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t kCapacity = 16;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> queue_;
  bool closed_ = false;
};

struct RawReview {
  EntryName name;
  std::string bytes;
};
using RawBatch = std::vector<RawReview>;

// Reads a number of at most nine digits off the front of `text`.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::size_t digits = 0;
  std::int32_t value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == 9) return std::nullopt;
    value = value * 10 + (text[digits++] - '0');
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

// The title number of each line; -1 where a line has none.
std::vector<std::int64_t> parse_urls(std::string_view text) {
  std::vector<std::int64_t> movies;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::int64_t movie = -1;
    if (const std::size_t at = line.find("/tt"); at != std::string_view::npos) {
      std::string_view rest = line.substr(at + 3);
      if (const auto number = take_number(rest)) movie = *number;
    }
    movies.push_back(movie);
  }
  return movies;
}

// Folders of the data set, indexed [test][label].
template <class T>
using PerFolder = std::array<std::array<T, 2>, 2>;

std::string folder_name(bool test, int label) {
  return std::string(test ? "test" : "train") + (label ? "/pos" : "/neg");
}

// The second thread: turns raw reviews into clean, split ones.
class Collector {
 public:
  explicit Collector(Dataset& dataset) : dataset_(dataset) {}

  void consume(Channel<RawBatch>& channel) {
    while (std::optional<RawBatch> batch = channel.pop())
      for (RawReview& raw : *batch) add(raw);
  }

 private:
  void add(const RawReview& raw) {
    auto& side = raw.name.test ? dataset_.test : dataset_.train;
    check<FileError>(side.size() < kMaxReviews, "read_dataset",
                     "'{}' must hold at most {} reviews a side; got more", dataset_.source,
                     kMaxReviews);
    Review review;
    review.text = clean_text(raw.bytes);
    review.id = raw.name.id;
    review.rating = raw.name.rating;
    review.label = raw.name.label;
    words_.clear();
    splitter_.split(review.text,
                    [&](std::string_view word) { words_.push_back(dataset_.words.add(word)); });
    review.words = words_;
    side.push_back(std::move(review));
  }

  Dataset& dataset_;
  WordSplitter splitter_;
  std::vector<std::uint32_t> words_;
};

void finish_side(Dataset& dataset, bool test,
                 const std::array<std::vector<std::int64_t>, 2>& movies) {
  auto& side = test ? dataset.test : dataset.train;
  const auto key = [](const Review& r) { return std::pair(r.label, r.id); };
  std::sort(side.begin(), side.end(),
            [&](const Review& a, const Review& b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(
      side.begin(), side.end(), [&](const Review& a, const Review& b) { return key(a) == key(b); });
  check<FileError>(twice == side.end(), "read_dataset",
                   "'{}' must hold each review once; got {} twice; give one copy of the data",
                   dataset.source,
                   twice == side.end() ? "" : (test ? "test/" : "train/") + twice->name());
  std::array<std::size_t, 2> counts = {};
  for (Review& review : side) {
    const auto label = static_cast<std::size_t>(review.label);
    ++counts[label];
    if (static_cast<std::size_t>(review.id) < movies[label].size())
      review.movie = movies[label][static_cast<std::size_t>(review.id)];
  }
  for (int label = 0; label < 2; ++label) {
    const auto l = static_cast<std::size_t>(label);
    check<FileError>(counts[l] > 0, "read_dataset",
                     "'{}' must hold reviews named {}/<id>_<rating>.txt; got none{}",
                     dataset.source, folder_name(test, label),
                     dataset.train.empty() && dataset.test.empty()
                         ? " nor any in the other folders; give aclImdb_v1.tar.gz"
                         : "");
    if (!movies[l].empty() && movies[l].size() != counts[l])
      dataset.warnings.push_back(fmt::format("{}: {} reviews, but its list of movies has {} lines",
                                             folder_name(test, label), counts[l],
                                             movies[l].size()));
  }
}

template <class ReadEntries>
Dataset read(const std::string& source, ReadEntries&& read_all) {
  Dataset dataset;
  dataset.source = source;
  PerFolder<std::vector<std::int64_t>> movies;
  Channel<RawBatch> channel;
  Collector collector(dataset);
  std::exception_ptr failure;
  std::thread worker([&] {
    try {
      collector.consume(channel);
    } catch (...) {
      failure = std::current_exception();
    }
    channel.close();
  });

  std::exception_ptr read_failure;
  try {
    constexpr std::size_t kBatch = 256;
    RawBatch batch;
    read_all(
        [](std::string_view path) -> std::uint64_t {
          switch (parse_entry_name(path).kind) {
            case EntryName::Kind::review:
              return kMaxReviewBytes;
            case EntryName::Kind::urls:
              return kMaxUrlsBytes;
            default:
              return 0;
          }
        },
        [&](std::string_view path, std::string content) {
          const EntryName name = parse_entry_name(path);
          if (name.kind == EntryName::Kind::urls) {
            movies[name.test][static_cast<std::size_t>(name.label)] = parse_urls(content);
            return;
          }
          batch.push_back({name, std::move(content)});
          if (batch.size() == kBatch) channel.push(std::exchange(batch, {}));
        });
    channel.push(std::move(batch));
  } catch (...) {
    read_failure = std::current_exception();
  }
  channel.close();
  worker.join();
  if (failure) std::rethrow_exception(failure);
  if (read_failure) std::rethrow_exception(read_failure);

  finish_side(dataset, false, movies[0]);
  finish_side(dataset, true, movies[1]);
  dataset.movies_known = std::all_of(dataset.train.begin(), dataset.train.end(),
                                     [](const Review& review) { return review.movie >= 0; });
  return dataset;
}

}  // namespace

std::string Review::name() const {
  return fmt::format("{}/{}_{}.txt", label ? "pos" : "neg", id, rating);
}

EntryName parse_entry_name(std::string_view path) {
  EntryName name;
  const auto take_component = [&path] {
    const std::size_t slash = path.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
    return last;
  };
  std::string_view file = take_component();
  std::string_view folder = take_component();
  const auto set_side = [&name](std::string_view side) {
    name.test = side == "test";
    return side == "train" || side == "test";
  };
  if (file == "urls_pos.txt" || file == "urls_neg.txt") {
    name.label = file == "urls_pos.txt";
    if (set_side(folder)) name.kind = EntryName::Kind::urls;
    return name;
  }
  if ((folder != "pos" && folder != "neg") || !set_side(take_component())) return name;
  name.label = folder == "pos";
  const auto id = take_number(file);
  if (!id || file.empty() || file[0] != '_') return name;
  file.remove_prefix(1);
  const auto rating = take_number(file);
  if (!rating || *rating > 10 || file != ".txt") return name;
  name.id = *id;
  name.rating = static_cast<std::int16_t>(*rating);
  name.kind = EntryName::Kind::review;
  return name;
}

Dataset read_dataset(const std::filesystem::path& path) {
  return read(path.string(), [&](const EntryFilter& filter, const EntrySink& sink) {
    read_entries(path, filter, sink);
  });
}

Dataset read_dataset_memory(std::string_view bytes, const std::string& name) {
  return read(name, [&](const EntryFilter& filter, const EntrySink& sink) {
    read_entries_memory(bytes, name, filter, sink);
  });
}

Dataset read_sample() { return read_dataset_memory(sample_archive(), "built-in sample"); }

DevSplit split_dev(const std::vector<Review>& reviews, double fraction, std::uint64_t seed) {
  check(fraction >= 0 && fraction < 1, "split_dev", "fraction must be in [0, 1); got {}", fraction);
  DevSplit split;
  split.by_movie = !reviews.empty() && std::all_of(reviews.begin(), reviews.end(),
                                                   [](const Review& r) { return r.movie >= 0; });
  // Groups that must stay together. In a map: an order that does not depend on hashing.
  std::map<std::int64_t, std::vector<std::int32_t>> groups;
  std::array<std::int64_t, 2> counts = {};
  for (std::size_t i = 0; i < reviews.size(); ++i) {
    groups[split.by_movie ? reviews[i].movie : static_cast<std::int64_t>(i)].push_back(
        static_cast<std::int32_t>(i));
    ++counts[static_cast<std::size_t>(reviews[i].label)];
  }
  std::vector<std::int64_t> order;
  for (const auto& [group, members] : groups) order.push_back(group);
  shuffle(order, mix(seed, 0x646576));

  // Take whole groups in random order as long as they fit into what each class still wants.
  std::array<std::int64_t, 2> wanted;
  for (std::size_t l = 0; l < 2; ++l)
    wanted[l] = static_cast<std::int64_t>(fraction * static_cast<double>(counts[l]) + 0.5);
  for (std::int64_t group : order) {
    const auto& members = groups[group];
    std::array<std::int64_t, 2> has = {};
    for (std::int32_t i : members) ++has[static_cast<std::size_t>(reviews[i].label)];
    const bool fits = has[0] <= wanted[0] && has[1] <= wanted[1];
    auto& side = fits ? split.dev : split.train;
    side.insert(side.end(), members.begin(), members.end());
    for (std::size_t l = 0; l < 2 && fits; ++l) wanted[l] -= has[l];
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.dev.begin(), split.dev.end());

  const auto has_both = [&](const std::vector<std::int32_t>& side) {
    std::array<bool, 2> seen = {};
    for (std::int32_t i : side) seen[static_cast<std::size_t>(reviews[i].label)] = true;
    return seen[0] && seen[1];
  };
  check(has_both(split.train) && (fraction == 0 || has_both(split.dev)), "split_dev",
        "both sides must get reviews of both classes; got {} for training and {} for development; "
        "change the fraction {} or give more data",
        split.train.size(), split.dev.size(), fraction);
  return split;
}

}  // namespace imdb
