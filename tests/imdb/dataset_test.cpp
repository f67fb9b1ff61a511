#include "imdb/dataset.h"

#include <norma/core/error.h>

#include <algorithm>
#include <map>
#include <set>

#include "../support/catch.h"
#include "make_archive.h"
#include "real_data.h"

using namespace imdb;
using namespace imdb_test;

namespace {

Dataset from(const std::vector<File>& files, Format format = Format::tar_gz) {
  return read_dataset_memory(make_archive(files, format), "test archive");
}

std::string failure(const std::string& bytes) {
  try {
    read_dataset_memory(bytes, "test archive");
  } catch (const norma::FileError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

bool same(const std::vector<Review>& a, const std::vector<Review>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Review& x, const Review& y) {
    return x.text == y.text && x.movie == y.movie && x.id == y.id && x.rating == y.rating &&
           x.label == y.label;
  });
}

using Catch::Contains;

}  // namespace

TEST_CASE("entry names of the data set are recognized, foreign ones are not") {
  const EntryName name = parse_entry_name("some/where/aclImdb/test/pos/123_10.txt");
  CHECK(name.kind == EntryName::Kind::review);
  CHECK(name.test);
  CHECK(name.label == 1);
  CHECK(name.id == 123);
  CHECK(name.rating == 10);
  CHECK(parse_entry_name("train/neg/0_1.txt").kind == EntryName::Kind::review);
  CHECK(parse_entry_name("aclImdb/train/urls_neg.txt").kind == EntryName::Kind::urls);
  for (const char* foreign :
       {"aclImdb/train/unsup/0_0.txt", "aclImdb/train/urls_unsup.txt", "aclImdb/README",
        "train/pos/._0_9.txt", "train/pos/0_9.txt.bak", "train/pos/_9.txt", "train/pos/0_.txt",
        "train/pos/0-9.txt", "train/pos/9999999999_9.txt", "train/pos/0_11.txt", "pos/0_9.txt",
        "trains/pos/0_9.txt", "aclImdb/train/labeledBow.feat", "", "/", "0_9.txt"})
    CHECK(parse_entry_name(foreign).kind == EntryName::Kind::foreign);
}

TEST_CASE("every form of archive gives the same reviews") {
  const std::vector<File> files = small_dataset();
  const Dataset expected = from(files);
  REQUIRE(expected.train.size() == 8);
  REQUIRE(expected.test.size() == 8);
  CHECK(expected.movies_known);
  CHECK(expected.warnings.empty());
  CHECK(expected.train[5].name() == "pos/1_9.txt");
  CHECK(expected.train[5].text == "A pos review, number 1 of train.");
  CHECK(expected.train[5].rating == 9);
  CHECK(expected.train[5].movie == 110000);
  CHECK(expected.words[expected.train[5].words[1]] == "pos");
  for (Format format : {Format::tar, Format::tar_xz, Format::zip}) {
    const Dataset other = from(files, format);
    CHECK(same(other.train, expected.train));
    CHECK(same(other.test, expected.test));
  }
}

TEST_CASE("the order of the entries does not matter") {
  std::vector<File> files = small_dataset();
  const Dataset expected = from(files);
  std::reverse(files.begin(), files.end());
  const Dataset reversed = from(files);
  CHECK(same(reversed.train, expected.train));
  CHECK(same(reversed.test, expected.test));
  CHECK(split_dev(reversed.train, 0.5, 7).dev == split_dev(expected.train, 0.5, 7).dev);
}

TEST_CASE("foreign entries are skipped") {
  std::vector<File> files = small_dataset();
  const Dataset expected = from(files);
  files.insert(files.begin(), {"aclImdb/", "", AE_IFDIR});
  files.push_back({"aclImdb/README", "read me"});
  files.push_back({"aclImdb/train/unsup/0_0.txt", "no label"});
  files.push_back({"aclImdb/train/urls_unsup.txt", "http://x/title/tt1/\n"});
  files.push_back({"aclImdb/train/pos/._7_9.txt", std::string(100, '\0')});
  files.push_back({"aclImdb/train/pos/8_9.txt", "/etc/passwd", AE_IFLNK});
  files.push_back({"../../train/labeledBow.feat", "9 0:9"});
  const Dataset dataset = from(files);
  CHECK(same(dataset.train, expected.train));
  CHECK(same(dataset.test, expected.test));
}

TEST_CASE("an unpacked tree reads like its archive, from any of its levels") {
  const TemporaryFolder folder;
  std::vector<File> files = small_dataset();
  const Dataset expected = from(files);
  for (const File& file : files) write_file(folder.path, file.path, file.content);
  write_file(folder.path, "aclImdb/train/unsup/0_0.txt", "no label");
  write_file(folder.path, "aclImdb/notes.txt", "foreign");
  CHECK(same(read_dataset(folder.path).train, expected.train));
  CHECK(same(read_dataset(folder.path / "aclImdb").test, expected.test));
  CHECK(same(read_dataset(folder.path / "aclImdb" / "").test, expected.test));

  const auto packed = write_file(folder.path, "packed/data.bin", make_archive(files));
  CHECK(same(read_dataset(packed).train, expected.train));
}

TEST_CASE("damaged and foreign archives are one clear line") {
  const std::string good = make_archive(small_dataset(50));
  REQUIRE(failure(good) == "no error");
  CHECK_THAT(failure(good.substr(0, good.size() / 2)), Contains("truncated gzip stream"));
  CHECK_THAT(failure(good.substr(0, good.size() - 4)), Contains("truncated gzip stream"));
  CHECK_THAT(failure(""), Contains("test archive"));
  CHECK_THAT(failure("this is no archive at all, just a line of text\n"),
             Contains("must be a tar or zip archive"));
  CHECK_THAT(failure(std::string("\x1f\x8b\x08\0\0\0", 6)), Contains("truncated"));
  CHECK_THAT(failure(std::string("\x1f\x8b garbage that is not deflate data", 36)),
             Contains("undamaged gzip"));

  std::string flipped_trailer = good;  // the CRC-32 is the trailer's first half
  flipped_trailer[flipped_trailer.size() - 8] ^= 1;
  CHECK_THAT(failure(flipped_trailer), Contains("incorrect data check"));
  int silent = 0;
  for (std::size_t at = 40; at < good.size(); at += 97) {
    std::string flipped = good;
    flipped[at] ^= 0x10;
    silent += failure(flipped) == "no error";
  }
  CHECK(silent == 0);

  const std::string tar = make_archive(small_dataset(50), Format::tar);
  CHECK_THAT(failure(tar.substr(0, 700)), Contains("damaged") || Contains("Truncated"));
}

TEST_CASE("archives that lack what is needed say so") {
  CHECK_THAT(failure(make_archive({})), Contains("none"));
  CHECK_THAT(failure(make_archive({{"aclImdb/README", "x"}})),
             Contains("got none nor any in the other folders"));
  std::vector<File> files = small_dataset();
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const File& f) { return f.path.find("test/pos") != f.path.npos; }),
              files.end());
  CHECK_THAT(failure(make_archive(files)), Contains("test/pos"));

  files = small_dataset();
  files.push_back({"copy/train/pos/1_8.txt", "again"});
  CHECK_THAT(failure(make_archive(files)), Contains("twice"));

  files = small_dataset();
  files.push_back({"train/pos/99_8.txt", std::string((1 << 20) + 1, 'x')});
  CHECK_THAT(failure(make_archive(files)), Contains("at most 1048576 bytes"));
}

TEST_CASE("a missing file says how to get one") {
  CHECK_THROWS_WITH(read_dataset("/nonexistent/data.tar.gz"),
                    Contains("must exist") && Contains("make imdb-data"));
}

TEST_CASE("lists of movies that do not fit are a warning") {
  std::vector<File> files = small_dataset();
  files.erase(files.begin());  // train/neg/0
  const Dataset dataset = from(files);
  REQUIRE(dataset.warnings.size() == 1);
  CHECK_THAT(dataset.warnings[0], Contains("train/neg: 3 reviews") && Contains("4 lines"));
  CHECK(dataset.movies_known);
}

TEST_CASE("the development split shares no movie with training and is balanced") {
  const Dataset dataset = from(small_dataset(60));
  const DevSplit split = split_dev(dataset.train, 0.1, 3);
  CHECK(split.by_movie);
  CHECK(split.dev.size() == 12);
  CHECK(split.train.size() + split.dev.size() == dataset.train.size());
  std::set<std::int64_t> train_movies, dev_movies;
  for (std::int32_t i : split.train) train_movies.insert(dataset.train[i].movie);
  int positive = 0;
  for (std::int32_t i : split.dev) {
    dev_movies.insert(dataset.train[i].movie);
    positive += dataset.train[i].label;
  }
  CHECK(positive == 6);
  for (std::int64_t movie : dev_movies) CHECK(train_movies.count(movie) == 0);

  CHECK(split_dev(dataset.train, 0.1, 3).dev == split.dev);
  CHECK(split_dev(dataset.train, 0.1, 4).dev != split.dev);
}

TEST_CASE("the development split: no movies, no fraction, wrong fraction") {
  const Dataset dataset = from(small_dataset(20, false));
  CHECK_FALSE(dataset.movies_known);
  const DevSplit split = split_dev(dataset.train, 0.25, 1);
  CHECK_FALSE(split.by_movie);
  CHECK(split.dev.size() == 10);
  int positive = 0;
  for (std::int32_t i : split.dev) positive += dataset.train[i].label;
  CHECK(positive == 5);

  const DevSplit all = split_dev(dataset.train, 0, 1);
  CHECK(all.dev.empty());
  CHECK(all.train.size() == 40);
  CHECK_THROWS_AS(split_dev(dataset.train, 1, 1), norma::ValueError);
  CHECK_THROWS_AS(split_dev(dataset.train, -0.1, 1), norma::ValueError);
  CHECK_THROWS_AS(split_dev(dataset.train, 0.001, 1), norma::ValueError);
}

TEST_CASE("the built-in sample is 1,000 + 1,000 clean reviews") {
  const Dataset sample = read_sample();
  REQUIRE(sample.train.size() == 1000);
  REQUIRE(sample.test.size() == 1000);
  CHECK_FALSE(sample.movies_known);
  for (const Review& review : sample.train) {
    REQUIRE(review.label == (review.rating >= 7));
    REQUIRE(review.text.find("<br") == std::string::npos);
    REQUIRE(review.words.size() > 3);
  }
}

TEST_CASE("the real archive", "[real]") {
  const char* path = real_data();
  if (path == nullptr) return;
  const Dataset dataset = read_dataset(path);
  CHECK(dataset.train.size() == 25000);
  CHECK(dataset.test.size() == 25000);
  CHECK(dataset.movies_known);
  CHECK(dataset.warnings.empty());
  std::map<std::int64_t, int> movies;
  for (const Review& review : dataset.train) ++movies[review.movie];
  CHECK(movies.size() == 3456);
  CHECK(std::max_element(movies.begin(), movies.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second == 30);
  const DevSplit split = split_dev(dataset.train, 0.1, 0);
  CHECK(split.dev.size() == 2500);
  std::set<std::int64_t> train_movies;
  for (std::int32_t i : split.train) train_movies.insert(dataset.train[i].movie);
  for (std::int32_t i : split.dev) REQUIRE(train_movies.count(dataset.train[i].movie) == 0);
}
