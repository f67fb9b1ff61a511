// The Large Movie Review Dataset (Maas et al., ACL 2011): 25,000 training and 25,000 test reviews.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "imdb/words.h"

namespace imdb {

/// One labelled review. `train/pos/12_9.txt` has id 12, rating 9 and label 1.
struct Review {
  std::string text;                  ///< by `clean_text`: valid UTF-8
  std::vector<std::uint32_t> words;  ///< by `WordSplitter`, as numbers of the data set's lexicon
  std::int64_t movie = -1;           ///< the number in the title id `tt0453418`; -1 if unknown
  std::int32_t id = 0;
  std::int16_t rating = 0;  ///< stars, 1..10
  std::int16_t label = 0;   ///< 1 positive, 0 negative

  /// The name in the archive, without the split's folder: "pos/12_9.txt".
  std::string name() const;
};

/// All labelled reviews, each side sorted by (label, id) whatever the order in the archive was.
struct Dataset {
  std::string source;         ///< the path, or the name given for memory
  std::vector<Review> train;  ///< the official training set; see `split_dev`
  std::vector<Review> test;   ///< the official test set: for the final number only
  Lexicon words;              ///< every distinct token of train and test
  bool movies_known = false;  ///< every training review has its movie
  std::vector<std::string>
      warnings;  ///< such as "train/pos: 12 reviews, but urls_pos.txt lists 20"
};

/// Reads the reviews of `aclImdb_v1.tar.gz`, any repacked tar or zip, or an unpacked tree (a folder
/// above, at or below `aclImdb`). Takes the files named `(train|test)/(pos|neg)/<id>_<rating>.txt`
/// and `urls_(pos|neg).txt` in any order and skips everything else, among it `unsup`. Decompression
/// runs on the calling thread, cleaning and word splitting on a second one.
///
/// Throws norma::FileError: missing or damaged archive, no reviews in it, one of the four folders
/// empty, a review twice, a review over 1 MiB, more than a million reviews.
Dataset read_dataset(const std::filesystem::path& path);

/// The same from an archive in memory; `name` stands in error texts and as `source`.
Dataset read_dataset_memory(std::string_view bytes, const std::string& name);

/// The built-in sample: 1,000 + 1,000 reviews, without movies.
Dataset read_sample();

/// A division of the training set: sorted indices into `Dataset::train`.
struct DevSplit {
  std::vector<std::int32_t> train;
  std::vector<std::int32_t> dev;
  bool by_movie = false;  ///< no movie has reviews on both sides
};

/// Cuts about `fraction` of the training set off as development set, equally many of each class.
///
/// By movie if all movies are known: reviews of one film share names and words, so a random cut
/// would flatter the model. Otherwise a random cut within each class, and `by_movie` is false. A
/// pure function of the set of reviews, `fraction` and `seed`. `fraction = 0` leaves `dev` empty.
/// Throws norma::ValueError unless 0 <= fraction < 1 and both sides get both classes.
DevSplit split_dev(const std::vector<Review>& reviews, double fraction, std::uint64_t seed);

/// What a file name of the data set says; used by the reader.
struct EntryName {
  enum class Kind { foreign, review, urls };
  Kind kind = Kind::foreign;
  bool test = false;
  std::int16_t label = 0;
  std::int32_t id = 0;
  std::int16_t rating = 0;
};
EntryName parse_entry_name(std::string_view path);

}  // namespace imdb
