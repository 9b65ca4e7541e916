// The split into training and validation.
#include "data/segments.h"

#include <set>

#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

std::vector<int64_t> positions_of(const Segments& segments) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < segments.count(); ++i) {
    const TokenSegment segment = segments.segment(i);
    EXPECT_EQ(segments.first_token(i), static_cast<int64_t>(positions.size()));
    for (int64_t p = segment.begin; p < segment.end; ++p) positions.push_back(p);
  }
  EXPECT_EQ(segments.tokens(), static_cast<int64_t>(positions.size()));
  return positions;
}

void expect_partition(const Split& split, int64_t tokens) {
  std::vector<int64_t> all = positions_of(split.train);
  const std::vector<int64_t> held_out = positions_of(split.validation);
  all.insert(all.end(), held_out.begin(), held_out.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<int64_t>(all.size()), tokens);
  for (int64_t i = 0; i < tokens; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
}

TEST(Segments, AllOfAStoreIsItsDocuments) {
  const Segments all = Segments::all(fake_store({3, 1, 5}));
  EXPECT_EQ(all.count(), 3);
  EXPECT_EQ(all.find(3), 1);
  EXPECT_EQ(all.segment(2).begin, 4);
  EXPECT_EQ(all.segment(2).end, 9);
}

TEST(Split, WithoutAFractionAllIsForTraining) {
  ASSERT_VALUE(const Split split, split_for_validation(fake_store({3, 1, 5}), 0));
  EXPECT_EQ(split.train.tokens(), 9);
  EXPECT_EQ(split.validation.tokens(), 0);
}

TEST(Split, ManyDocumentsAreSplitByTheirHash) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 5000; ++i) lengths.push_back(1 + i % 7);
  const auto store = fake_store(lengths);
  ASSERT_VALUE(const Split split, split_for_validation(store, 0.1));
  expect_partition(split, store->tokens());
  EXPECT_NEAR(static_cast<double>(split.validation.count()), 500, 70);  // three standard deviations
  EXPECT_EQ(split.train.count() + split.validation.count(), 5000) << "documents stay whole";
  lengths.resize(4000);  // documents keep their side as others go
  ASSERT_VALUE(const Split fewer, split_for_validation(fake_store(lengths), 0.1));
  for (int64_t i = 0; i < fewer.validation.count(); ++i)
    EXPECT_EQ(fewer.validation.segment(i).begin, split.validation.segment(i).begin);
}

TEST(Split, ATinyFractionOfManyDocumentsHoldsOutOne) {
  ASSERT_VALUE(const Split split, split_for_validation(fake_store(std::vector<int64_t>(100, 2)), 1e-9));
  EXPECT_EQ(split.validation.count(), 1);
}

TEST(Split, OneDocumentIsSplitInBlocks) {
  const auto store = fake_store({100000});
  ASSERT_VALUE(const Split split, split_for_validation(store, 0.1));
  expect_partition(split, 100000);
  EXPECT_NEAR(static_cast<double>(split.validation.tokens()), 10000, 2000);
  const int64_t block = (100000 + 63) / 64;
  for (int64_t i = 0; i < split.validation.count(); ++i) EXPECT_EQ(split.validation.segment(i).begin % block, 0);
  EXPECT_LT(split.train.count(), 64) << "neighbouring blocks are one segment";
  ASSERT_VALUE(const Split again, split_for_validation(store, 0.1));
  EXPECT_EQ(positions_of(split.validation), positions_of(again.validation));
}

TEST(Split, FewDocumentsKeepTheirEdgesAsSegments) {
  const auto store = fake_store({700, 1, 650, 64, 65});
  ASSERT_VALUE(const Split split, split_for_validation(store, 0.3));
  expect_partition(split, store->tokens());
  std::set<int64_t> begins;
  for (const Segments* side : {&split.train, &split.validation})
    for (int64_t i = 0; i < side->count(); ++i) begins.insert(side->segment(i).begin);
  for (int64_t i = 0; i < store->documents(); ++i) EXPECT_TRUE(begins.contains(store->document_begin(i)));
}

TEST(Split, SomethingIsLeftOnEachSide) {
  for (double fraction : {0.001, 0.5, 0.999}) {
    ASSERT_VALUE(const Split split, split_for_validation(fake_store({128}), fraction));
    EXPECT_EQ(split.train.tokens(), 64);
    EXPECT_EQ(split.validation.tokens(), 64);
  }
}

TEST(Split, AnEmptyStoreGivesEmptySides) {
  ASSERT_VALUE(const Split split, split_for_validation(fake_store({}), 0.5));
  EXPECT_EQ(split.train.tokens(), 0);
  EXPECT_EQ(split.validation.tokens(), 0);
}

TEST(Split, AFractionOutsideItsRangeIsAUsageError) {
  for (double fraction : {-0.1, 1.0, std::nan("")})
    EXPECT_ERROR(split_for_validation(fake_store({9}), fraction), ErrorKind::usage, "validation_fraction");
}

}  // namespace
}  // namespace ingot
