// Rows of tokens: targets, visibility, positions.
#include "data/sequences.h"

#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests
using Values = std::vector<int32_t>;
constexpr int32_t X = kIgnored;

std::shared_ptr<const SequenceSource> packed(std::shared_ptr<const TokenStore> store, int64_t length,
                                             bool mask = true) {
  return make_sequences(Segments::all(std::move(store)), {length, true, mask}).value();
}
std::shared_ptr<const SequenceSource> unpacked(std::shared_ptr<const TokenStore> store, int64_t length) {
  return make_sequences(Segments::all(std::move(store)), {length, false, true}).value();
}

OwnedRow row_of(const SequenceSource& source, int64_t index) {
  OwnedRow row(source.length(index));
  const Status status = source.fill(index, row.view());
  EXPECT_TRUE(status.ok());
  return row;
}

TEST(Packed, DocumentsStandEndToEndAndSeeOnlyThemselves) {
  const auto source = packed(fake_store({3, 1, 6}), 5);
  ASSERT_EQ(source->count(), 2);
  const OwnedRow first = row_of(*source, 0);
  EXPECT_EQ(first.ids, (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(first.targets, (Values{1, 2, X, X, X}));
  EXPECT_EQ(first.segment_start, (Values{0, 0, 0, 3, 4}));
  EXPECT_EQ(first.positions, (Values{0, 1, 2, 0, 0}));
  const OwnedRow second = row_of(*source, 1);
  EXPECT_EQ(second.ids, (Values{5, 6, 7, 8, 9}));
  EXPECT_EQ(second.targets, (Values{6, 7, 8, 9, X}));
  EXPECT_EQ(second.segment_start, (Values{0, 0, 0, 0, 0}));
  EXPECT_EQ(second.positions, (Values{0, 1, 2, 3, 4}));
}

TEST(Packed, WithoutADocumentMaskARowIsOneText) {
  const auto source = packed(fake_store({3, 1, 6}), 5, false);
  const OwnedRow row = row_of(*source, 0);
  EXPECT_EQ(row.targets, (Values{1, 2, 3, 4, X}));
  EXPECT_EQ(row.segment_start, (Values{0, 0, 0, 0, 0}));
  EXPECT_EQ(row.positions, (Values{0, 1, 2, 3, 4}));
}

TEST(Packed, TheLastPromptTokenPredictsTheFirstAnswerToken) {
  const auto store = fake_store({6, 4}, {3, 2});
  EXPECT_EQ(row_of(*packed(store, 10), 0).targets, (Values{X, X, 3, 4, 5, X, X, 8, 9, X}));
  EXPECT_EQ(row_of(*packed(store, 10, false), 0).targets, (Values{X, X, 3, 4, 5, X, X, 8, 9, X}));
  EXPECT_EQ(row_of(*packed(store, 2), 1).targets, (Values{3, X})) << "a prompt that began in the row before";
  EXPECT_EQ(row_of(*packed(store, 3), 1).targets, (Values{4, 5, X}));
  EXPECT_EQ(row_of(*packed(store, 5), 1).ids, (Values{5, 6, 7, 8, 9}));
}

TEST(Packed, APromptThatIsTheWholeRowHasNoTargets) {
  EXPECT_EQ(row_of(*packed(fake_store({8}, {7}), 4), 0).targets, (Values{X, X, X, X}));
  EXPECT_EQ(row_of(*packed(fake_store({8}, {100}), 4), 1).targets, (Values{X, X, X, X}));
}

TEST(Packed, AnIncompleteLastSequenceIsDropped) {
  EXPECT_EQ(packed(fake_store({3, 3, 5}), 5)->count(), 2);
  EXPECT_EQ(packed(fake_store({5}), 5)->count(), 1);
  EXPECT_EQ(packed(fake_store({1}), 1)->count(), 1);
  EXPECT_EQ(row_of(*packed(fake_store({1}), 1), 0).targets, Values{X});
}

TEST(Packed, ACorpusWithoutOneWholeSequenceIsAnInputError) {
  EXPECT_ERROR(make_sequences(Segments::all(fake_store({3, 1})), {5, true, true}), ErrorKind::input,
               "not one whole sequence: 4 tokens in 2 documents, sequence_length 5");
  EXPECT_ERROR(make_sequences(Segments::all(fake_store({})), {5, false, true}), ErrorKind::input,
               "not one whole sequence");
  EXPECT_ERROR(make_sequences(Segments::all(fake_store({3})), {0, true, true}), ErrorKind::usage,
               "sequence_length is 0");
}

TEST(Packed, NoTokenIsLostOrRepeatedAndNoTargetCrossesADocument) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 60; ++i) lengths.push_back(1 + i * 37 % 23);
  const auto store = fake_store(lengths);
  for (int64_t length : {1, 2, 7, 16, 100}) {
    const auto source = packed(store, length);
    int64_t position = 0;
    for (int64_t i = 0; i < source->count(); ++i) {
      const OwnedRow row = row_of(*source, i);
      for (size_t t = 0; t < row.ids.size(); ++t, ++position) {
        ASSERT_EQ(row.ids[t], position % 1000);
        const int64_t document = store->document_at(position), begin = store->document_begin(document);
        const int64_t start = std::max<int64_t>(0, static_cast<int64_t>(t) - (position - begin));
        ASSERT_EQ(row.segment_start[t], start);
        ASSERT_EQ(row.positions[t], static_cast<int64_t>(t) - start);
        const bool predicts = t + 1 < row.ids.size() && position + 1 < store->document_end(document);
        ASSERT_EQ(row.targets[t], predicts ? (position + 1) % 1000 : X);
      }
    }
  }
}

TEST(Packed, ASplitPacksItsOwnSegments) {
  const auto store = fake_store({640});
  const Split split = split_for_validation(store, 0.3).value();
  const auto source = make_sequences(split.validation, {64, true, true}).value();
  const OwnedRow row = row_of(*source, 0);
  EXPECT_EQ(row.ids[0], split.validation.segment(0).begin);
  EXPECT_EQ(row.ids[1], row.ids[0] + 1);
}

// Documents of 2^33 tokens each; no file could hold them here.
class HugeStore final : public TokenStore {
 public:
  static constexpr int64_t kDocument = (int64_t{1} << 33) + 1, kDocuments = 1000;
  int64_t tokens() const override { return kDocument * kDocuments; }
  int64_t documents() const override { return kDocuments; }
  int64_t document_end(int64_t document) const override { return (document + 1) * kDocument; }
  uint64_t document_hash(int64_t document) const override { return hash_bytes(std::to_string(document)); }
  uint64_t fingerprint() const override { return 1; }
  Status read(int64_t position, std::span<int32_t> out) const override {
    for (int32_t& token : out) token = static_cast<int32_t>(position++ % 1000003);
    return {};
  }
};

TEST(Packed, MoreThanTwoToThe31TokensAreCountedIn64Bits) {
  const auto source = packed(std::make_shared<HugeStore>(), 1024);
  EXPECT_EQ(source->count(), HugeStore::kDocument * HugeStore::kDocuments / 1024);
  const int64_t index = source->count() - 1, position = index * 1024;
  const OwnedRow row = row_of(*source, index);
  EXPECT_EQ(row.ids[0], position % 1000003);
  const int64_t edge = 500 * HugeStore::kDocument;
  const OwnedRow across = row_of(*source, edge / 1024);
  const auto at = static_cast<size_t>(edge % 1024);
  EXPECT_EQ(across.positions[at], 0);
  EXPECT_EQ(across.segment_start[at], static_cast<int32_t>(at));
  EXPECT_EQ(across.targets[at - 1], X);
  const auto rows = unpacked(std::make_shared<HugeStore>(), 1000);
  EXPECT_EQ(rows->count(), HugeStore::kDocuments * ((HugeStore::kDocument - 1 + 999) / 1000));
  EXPECT_EQ(row_of(*rows, rows->count() - 1).ids.back(), (HugeStore::kDocument * HugeStore::kDocuments - 1) % 1000003);
  const Split split = split_for_validation(std::make_shared<HugeStore>(), 0.1).value();
  EXPECT_EQ(split.train.tokens() + split.validation.tokens(), HugeStore::kDocument * HugeStore::kDocuments);
}

TEST(Unpacked, ADocumentIsARowAndALongOneSeveral) {
  const auto source = unpacked(fake_store({3, 9, 1, 5, 4}, {0, 5, 0, 0, 0}), 4);
  // 3 | 9: 4 4 and a remainder of one, which predicts nothing | 1: predicts nothing | 5: 4 | 4
  ASSERT_EQ(source->count(), 5);
  EXPECT_EQ(row_of(*source, 0).ids, (Values{0, 1, 2}));
  EXPECT_EQ(row_of(*source, 0).targets, (Values{1, 2, X}));
  EXPECT_EQ(row_of(*source, 1).ids, (Values{3, 4, 5, 6}));
  EXPECT_EQ(row_of(*source, 1).targets, (Values{X, X, X, X}));
  EXPECT_EQ(row_of(*source, 2).ids, (Values{7, 8, 9, 10}));
  EXPECT_EQ(row_of(*source, 2).targets, (Values{8, 9, 10, X}));
  EXPECT_EQ(row_of(*source, 3).ids, (Values{13, 14, 15, 16}));
  EXPECT_EQ(row_of(*source, 4).positions, (Values{0, 1, 2, 3}));
  EXPECT_EQ(row_of(*source, 4).segment_start, (Values{0, 0, 0, 0}));
}

TEST(Rows, PaddingSeesItselfAloneAndPredictsNothing) {
  OwnedRow row(3);
  fill_padding(row.view(), 9, 5);
  EXPECT_EQ(row.ids, (Values{9, 9, 9}));
  EXPECT_EQ(row.targets, (Values{X, X, X}));
  EXPECT_EQ(row.segment_start, (Values{5, 6, 7}));
  EXPECT_EQ(row.positions, (Values{0, 0, 0}));
}

}  // namespace
}  // namespace ingot
